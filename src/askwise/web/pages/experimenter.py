"""The experimenter's pages."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from askwise.web.access import HOW, OwnersForm, gate, owner
from askwise.web.lookup import TheStudy, studies
from askwise.web.problems import Denied
from askwise.web.templating import page

router = APIRouter()


@router.get("/")
def home(request: Request, token: str | None = None) -> Response:
    """All studies; the printed link, with the token in it, becomes a cookie and an address without it."""
    if token is not None:
        if not gate(request).is_token(token):
            raise Denied("token", "be that of this server", "another", HOW)
        response = RedirectResponse(f"{request.scope.get('root_path', '')}/", 303)
        gate(request).sign_in(response)
        return response
    owner(request)
    return page(request, "studies.html", {"studies": list(studies(request)), "csrf": gate(request).csrf})


@router.get("/studies/{study}")
def show(request: Request, study: TheStudy) -> Response:
    """One study."""
    owner(request)
    links = [link for link in gate(request).file.kept.links.values() if link.study == study.name]
    shown = [(link, gate(request).pass_of(link)) for link in links if not link.revoked]
    return page(request, "study.html", {"study": study, "links": shown, "csrf": gate(request).csrf})


@router.post("/studies/{study}/links")
def add_link(request: Request, study: TheStudy, form: OwnersForm) -> Response:
    """A new link for participants."""
    name = str(form.get("participant", "")).strip() or None
    gate(request).file.add_link(study.name, name)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/studies/{study.id}", 303)
