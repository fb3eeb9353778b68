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
    head = {"study": study, "csrf": gate(request).csrf, "paused": studies(request).is_paused(study)}
    return page(request, template, {"notice": None, **head, **values}, status)


def go(request: Request, path: str) -> Response:
    """To another page, after a form."""
    return RedirectResponse(f"{request.scope.get('root_path', '')}{path}", 303)
