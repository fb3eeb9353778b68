"""The participants' page."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.web.access import gate
from askwise.web.lookup import studies
from askwise.web.studies import id_of
from askwise.web.templating import page

router = APIRouter()


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
    person = gate(request).pass_of(access.link, who)
    response = page(request, "participant.html", {"study": study, "participant": who, "person": person})
    response.raw_headers += [pair for pair in cookies.raw_headers if pair[0] == b"set-cookie"]
    return response
