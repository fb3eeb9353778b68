"""Every question and what became of it, with amend and void."""

import re

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.errors import Refused
from askwise.study import labels
from askwise.web import answers
from askwise.web.access import Owner, OwnersForm
from askwise.web.desk import key_of
from askwise.web.lens import Lens
from askwise.web.lookup import TheStudy, studies
from askwise.web.pages.frame import framed, go
from askwise.web.problems import status_of
from askwise.web.quality import contradicting
from askwise.web.studies import Served

router = APIRouter(prefix="/studies/{study}/answers")
_PAGE = re.compile("[0-9]{1,9}")


@router.get("")
def show(request: Request, study: TheStudy, access: Owner) -> Response:
    """Questions, newest first."""
    return _page(request, study)


@router.post("/{question}/amend")
def amend(request: Request, study: TheStudy, question: int, form: OwnersForm) -> Response:
    """Replace an answer; a conflict is shown in words above the table."""
    told = {key: str(form.get(key, "")).strip() for key in ("answer", "reason", "seen")}
    try:
        answers.amend(study.study, question, **told)
    except Refused as error:
        return _page(request, study, error)
    return _done(request, study, question)


@router.post("/{question}/void")
def void(request: Request, study: TheStudy, question: int, form: OwnersForm) -> Response:
    """Take a question out of the model."""
    told = {key: str(form.get(key, "")).strip() for key in ("reason", "seen")}
    try:
        answers.void(study.study, question, **told)
    except Refused as error:
        return _page(request, study, error)
    return _done(request, study, question)


def _done(request: Request, study: Served, question: int) -> Response:
    studies(request).tell_others(study)
    return go(request, f"/studies/{study.id}/answers?changed={question}#q{question}")


def _page(request: Request, study: Served, error: Refused | None = None) -> Response:
    query, entries = request.query_params, study.study.history()
    chosen = {key: query.get(key, "") for key in ("participant", "status")}
    number = query.get("page", "1")
    some, place = answers.page_of(
        answers.selected(entries, **chosen), int(number) if _PAGE.fullmatch(number) else 1
    )
    values = {
        "rows": [answers.shown(study.study.space, entry) for entry in some],
        "against": _contradicting(request, study),
        "place": place,
        "chosen": chosen,
        "people": list(dict.fromkeys(entry.participant or "(no name)" for entry in entries)),
        "choices": answers.choices(study.study),
        "examples": study.study.plan.kind.examples(labels(study.study.size)),
        "changed": query.get("changed"),
        "tab": "answers",
        "notice": error,
    }
    return framed(request, study, "answers.html", values, 200 if error is None else status_of(error))


def _contradicting(request: Request, study: Served) -> dict[int, float | None]:
    """The answers that all others make unlikely."""
    lens = Lens.of(study.study, request.query_params)
    answered = [entry for entry in study.study.history() if entry.status == "answered"]
    key = (study.id, "contradicting", lens.participant, key_of(study.study))
    return studies(request).desk.get(key, lambda: contradicting(study.study, lens.participant, answered))
