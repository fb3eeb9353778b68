"""The participants' page."""

import hashlib
import re

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.study import Page
from askwise.web.access import gate
from askwise.web.guards import POLICY
from askwise.web.lookup import presenting, studies
from askwise.web.studies import Served, id_of
from askwise.web.templating import page

router = APIRouter()
_WAYS = {"binary": "yes_no", "duel": "better", "winner": "best", "ranking": "ranking", "worst": "worst"}
"""How a question is answered, by its kind or, of a batch, by what the page asks for."""


@router.get("/p/{link}")
def start(request: Request, link: str) -> Response:
    """The page of a study for whoever has this link.

    Its script asks and tells by the API, with the pass of this person as bearer token.
    """
    access = gate(request).admitted(link)
    assert access.link is not None
    study = studies(request).get(id_of(access.link.study))
    cookies = Response()
    who = access.participant or gate(request).guest(request, cookies, access.link)
    settings = study.config.page
    way = _WAYS[settings.answer if study.study.feedback == "batch" else study.study.feedback]
    values = {
        "study": study,
        "page": settings,
        "way": way,
        "key": hashlib.sha256(f"{study.id} {access.link.id} {who}".encode()).hexdigest()[:16],
        "started": _has_begun(study, who),
        "person": gate(request).pass_of(access.link, who),
        "title": settings.title or study.config.question,
        "instructions": paragraphs(settings.instructions) or _default(settings, way),
        "consent": paragraphs(settings.consent),
        "thanks": paragraphs(settings.thanks or settings.words["recorded"]),
    }
    headers = {"Content-Security-Policy": _policy(request, study)}
    response = page(request, "participant.html", values, headers=headers)
    response.raw_headers += [pair for pair in cookies.raw_headers if pair[0] == b"set-cookie"]
    return response


def _has_begun(study: Served, who: str) -> bool:
    """Whether they answered a question here; what others recorded of them needed no consent of this page."""
    if who not in study.study.participants():
        return False
    return any(entry.participant == who and entry.seen is not None for entry in study.study.history())


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, which empty lines separate."""
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _default(settings: Page, way: str) -> list[str]:
    return [settings.words[f"how_{way}"], settings.words["how_keys"]]


def _policy(request: Request, study: Served) -> str:
    """That of all pages, with media from where the study says."""
    stimulus = presenting(request).stimulus(study)
    origins = "".join(f" {origin}" for origin in (stimulus.origins if stimulus else ()))
    policy = POLICY
    for directive in ("img-src 'self'", "media-src 'self'"):
        policy = policy.replace(directive, directive + origins)
    return policy
