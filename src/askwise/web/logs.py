"""What is logged, a line of JSON each: requests by the pattern of their address, errors by where they arose.

Never an address, a token, an answer or the message of an error, which may have one of these in it; but why an
option cannot be shown, which nobody could find out otherwise.
"""

import json
import logging
import sys
import time
import traceback

from fastapi import Request
from starlette._utils import get_route_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askwise.web.metrics import Metrics
from askwise.web.problems import unexpected

LOG = logging.getLogger("askwise.web")
_OWN = ("method", "route", "status", "ms", "study", "reason")


class _Lines(logging.Formatter):
    """A record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + "Z"
        line: dict[str, object] = {"at": at, "level": record.levelname.lower(), "event": str(record.msg)}
        line |= {name: getattr(record, name) for name in _OWN if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, where = record.exc_info
            line["error"] = kind.__name__
            line["where"] = [f"{part.filename}:{part.lineno}" for part in traceback.extract_tb(where)]
        return json.dumps(line)


def configure(requests: bool) -> None:
    """Log to standard error: errors, and on demand every request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, level in (("askwise.web", logging.INFO if requests else logging.WARNING), ("uvicorn", "ERROR")):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


class Watch:
    """ASGI middleware that counts and logs requests."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Count into these metrics."""
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), None

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            LOG.error("unexpected", exc_info=True)
            if status is None:
                await unexpected(Request(scope))(scope, receive, watched)
        finally:
            seconds, route = time.perf_counter() - began, _pattern(scope)
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            status = status or 500
            self._metrics.add(method, route, status, seconds)
            about = {"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 1)}
            LOG.info("request", extra=about)


def _pattern(scope: Scope) -> str:
    """The pattern of an address, without what stands in it."""
    route, path = str(getattr(scope.get("route"), "path", "other")), get_route_path(scope)
    is_api = path.startswith("/api/v1/") and not route.startswith("/api/")
    return f"/api/v1{route}" if is_api and route != "other" else route


_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
