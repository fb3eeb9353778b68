"""Links for participants: make, copy, show as a QR code, revoke."""

import io

import segno
from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.errors import NotFound, Refused
from askwise.web.access import Owner, OwnersForm, gate
from askwise.web.lookup import TheStudy
from askwise.web.pages.frame import framed, go
from askwise.web.problems import status_of
from askwise.web.serverfile import Link
from askwise.web.studies import Served

router = APIRouter(prefix="/studies/{study}/links")
_LONGEST = 200  # characters of a name


@router.get("")
def show(request: Request, study: TheStudy, access: Owner) -> Response:
    """All links of a study."""
    return _page(request, study)


@router.post("")
def add(request: Request, study: TheStudy, form: OwnersForm) -> Response:
    """A new link, for one participant or for anybody."""
    name = str(form.get("participant", "")).strip()
    if len(name) > _LONGEST:
        error = Refused("name", f"have at most {_LONGEST} characters", len(name), "Shorten it.")
        return _page(request, study, error)
    gate(request).file.add_link(study.name, name or None)
    return go(request, f"/studies/{study.id}/links")


@router.post("/{link}/revoke")
def revoke(request: Request, study: TheStudy, link: str, form: OwnersForm) -> Response:
    """Close a link for good."""
    gate(request).file.revoke(_own(request, study, link).id)
    return go(request, f"/studies/{study.id}/links")


@router.get("/{link}/qr.svg")
def qr(request: Request, study: TheStudy, link: str, access: Owner) -> Response:
    """A link as a QR code, to be opened by a phone."""
    out = io.BytesIO()
    code = segno.make(_address(request, _own(request, study, link)), error="m")
    code.save(out, kind="svg", scale=4, border=4, dark="#000", light="#fff", xmldecl=False)
    return Response(out.getvalue(), media_type="image/svg+xml")


def _own(request: Request, study: Served, link: str) -> Link:
    found = gate(request).file.kept.links.get(link)
    if found is None or found.study != study.name or found.revoked:
        raise NotFound("link", "be a valid one to this study", repr(link), "Look at the list.")
    return found


def _address(request: Request, link: Link) -> str:
    return f"{str(request.base_url).rstrip('/')}/p/{gate(request).pass_of(link)}"


def _page(request: Request, study: Served, error: Refused | None = None) -> Response:
    links = [link for link in gate(request).file.kept.links.values() if link.study == study.name]
    counts = study.study.answers_by_participant()
    valid = [(one, _address(request, one)) for one in reversed(links) if not one.revoked]
    revoked = [one for one in reversed(links) if one.revoked]
    values = {"links": valid, "revoked": revoked, "counts": counts, "tab": "links", "notice": error}
    return framed(request, study, "links.html", values, 200 if error is None else status_of(error))
