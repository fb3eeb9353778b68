"""What goes wrong, as a status and JSON (or a page) that says what to do."""

import json
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException

from askwise.errors import Conflict, Failed, NotFound, Refused, Unavailable
from askwise.web.templating import page


class Denied(Refused):
    """Who asks did not prove that they may."""

    status = 401


class Forbidden(Refused):
    """Whoever asks, it is not done."""

    status = 403


class TooMany(Refused):
    """More requests than one address may make."""

    status = 429


class TooLarge(Refused):
    """More bytes than a request may have."""

    status = 413


def too_large() -> TooLarge:
    """The refusal of a body that is too large."""
    return TooLarge("request", "have fewer bytes", "too many", "Send less at once.")


_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (Unavailable, 503),
    (Failed, 503),
    (Refused, 422),
)


def status_of(error: Refused) -> int:
    """The HTTP status of a refusal."""
    given = getattr(error, "status", None)
    return given or next(status for kind, status in _STATUS if isinstance(error, kind))


def document_of(error: Refused) -> dict[str, Any]:
    """A refusal as JSON."""
    parts = {name: getattr(error, name) for name in ("what", "expected", "got", "advice")}
    return {"error": {**parts, "message": str(error)}}


def answer_to(request: Request, error: Refused) -> Response:
    """The response that a refusal gets: JSON for programs, a page for people."""
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in (429, 503):
        headers["Retry-After"] = "1"
    if _wants_page(request):
        return page(request, "problem.html", {"error": error, "status": status}, status, headers)
    # escaped, since halves of characters cannot be sent otherwise
    text = json.dumps(document_of(error))
    return Response(text, status, headers, media_type="application/json")


async def refused(request: Request, error: Exception) -> Response:
    """Handles every refusal of askwise."""
    assert isinstance(error, Refused)
    return answer_to(request, error)


async def invalid(request: Request, error: Exception) -> Response:
    """Handles what does not fit the description of the API."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    expected = f"fit the description of the API ({str(first['msg']).lower()})"
    advice = "See /api/v1/docs."
    return answer_to(request, Refused(where or "request", expected, repr(first.get("input")), advice))


async def not_served(request: Request, error: Exception) -> Response:
    """Handles addresses and methods that there are not."""
    assert isinstance(error, HTTPException)
    advice = "See /api/v1/docs."
    if error.status_code == 405:
        refusal = Refused("method", "be one that this address takes", request.method, advice)
    elif error.status_code == 404:
        refusal = Refused("address", "exist", repr(request.url.path), advice)
    elif error.status_code == 413:
        refusal = too_large()
    else:
        refusal = Refused("request", "be one that can be read", str(error.detail), advice)
    refusal.status = error.status_code  # type: ignore[attr-defined]
    response = answer_to(request, refusal)
    response.headers.update(error.headers or {})
    return response


def unexpected(request: Request) -> Response:
    """The response where something happened that should not; what it was is in the log."""
    refusal = Refused("server", "work", "an error of its own", "Look at its log; nothing was lost.")
    refusal.status = 500  # type: ignore[attr-defined]
    return answer_to(request, refusal)


def _wants_page(request: Request) -> bool:
    path = get_route_path(request.scope)
    return "text/html" in request.headers.get("accept", "") and not path.startswith("/api/")
