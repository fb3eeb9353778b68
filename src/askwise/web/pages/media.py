"""What options look or sound like: served so that it can do nothing to our pages."""

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from askwise.errors import NotFound
from askwise.web.lookup import presenting

router = APIRouter()
_FOREVER = "private, max-age=31536000, immutable"  # a name stands for its bytes
_FRAMED = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; media-src data:; font-src data:; frame-ancestors 'self'"
)
"""Policy of HTML: an origin of its own, which reaches neither our pages, nor cookies, nor any server."""
_ALONE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"


@router.get("/media/{name}")
def media(request: Request, name: str) -> Response:
    """A picture, a sound, a film, or a page in a sandbox."""
    found = presenting(request).store.find(name)
    if found is None:
        raise NotFound("media", "exist", repr(name), "Load the page again.")
    path, kind = found
    framed = kind.startswith("text/html")
    headers = {
        "Cache-Control": _FOREVER,
        "Content-Security-Policy": _FRAMED if framed else _ALONE,
        "X-Frame-Options": "SAMEORIGIN" if framed else "DENY",
    }
    return FileResponse(path, headers=headers, media_type=kind)
