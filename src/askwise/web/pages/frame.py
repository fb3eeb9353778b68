"""What the experimenter's pages have in common."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from askwise.web.access import gate
from askwise.web.lookup import studies
from askwise.web.studies import Served
from askwise.web.templating import page


def framed(
    request: Request, study: Served, template: str, values: Mapping[str, Any], status: int = 200
) -> Response:
    """A page about one study, with its head and its tabs."""
    head = {"study": study, "paused": studies(request).is_paused(study)}
    return with_forms(request, template, {"notice": None, **head, **values}, status)


def with_forms(request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """A page of the owner's.

    Where a page sends no referrer at all, browsers call the origin of its forms "null", which is refused.
    """
    headers = {"Referrer-Policy": "same-origin"}
    return page(request, template, {"csrf": gate(request).csrf, **values}, status, headers)


def go(request: Request, path: str) -> Response:
    """To another page, after a form."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{path}", 303)
