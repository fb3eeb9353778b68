"""The experimenter's first page: all studies of the server."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.web.access import HOW, Owner, OwnersForm, gate, owner
from askwise.web.desk import key_of
from askwise.web.lens import Lens
from askwise.web.lookup import TheStudy, studies
from askwise.web.pages.frame import go, with_forms
from askwise.web.problems import Denied
from askwise.web.templating import page

router = APIRouter()


@router.get("/")
def home(request: Request, token: str | None = None) -> Response:
    """All studies; the printed link, with the token in it, becomes a cookie and an address without it."""
    if token is not None:
        if not gate(request).is_token(token):
            raise Denied("token", "be that of this server", "another", HOW)
        response = go(request, "/")
        gate(request).sign_in(response)
        return response
    owner(request)
    listed = [(served, studies(request).is_paused(served)) for served in studies(request)]
    return with_forms(request, "studies.html", {"studies": listed})


@router.get("/studies/{study}/hint")
def hint(request: Request, study: TheStudy, access: Owner) -> dict[str, Any]:
    """Whether a study should go on, for the list."""

    def short() -> str:
        lens = Lens.of(study.study, {})
        return study.study.status(lens.context, lens.participant).short_hint

    key = (study.id, "hint", key_of(study.study))
    return {"hint": studies(request).desk.get(key, short)}


@router.post("/sign-out")
def sign_out(request: Request, form: OwnersForm) -> Response:
    """Take the cookie of this browser away."""
    response = page(request, "signed_out.html", {})
    gate(request).sign_out(response)
    return response
