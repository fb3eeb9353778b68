"""Pages from templates: escaped, sandboxed, with everything that they load from this server."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"

_TEMPLATES = ImmutableSandboxedEnvironment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["version"] = version("askwise")


def page(
    request: Request,
    template: str,
    values: Mapping[str, Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """A page; templates write addresses by ``url("/path")`` and ``asset("file.js")``."""
    root = request.scope.get("root_path", "").rstrip("/")

    def url(path: str) -> str:
        return f"{root}{path}"

    def asset(name: str) -> str:
        return url(f"/static/{name}?{_fingerprint(name)}")

    text = _TEMPLATES.get_template(template).render({**values, "url": url, "asset": asset})
    return HTMLResponse(text, status, dict(headers or {}))


class Assets(StaticFiles):
    """Scripts and styles; browsers keep those whose address has the fingerprint of their content."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, if there is one of this name."""
        response = await super().get_response(path, scope)
        if scope["query_string"]:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


@cache
def _fingerprint(name: str) -> str:
    """So that browsers keep a file until it changes."""
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
