"""The HTTP API under ``/api/v1``: one file for each group of routes, all JSON in `models`."""

from typing import Any

from fastapi import FastAPI

from askwise.web.api import docs, questions, results, sitting, stream, studies
from askwise.web.api.models import Problem

PREFIX = "/api/v1"
REFUSALS = {
    400: "The request cannot be read, or names another host.",
    401: "No token, or another one.",
    403: "Not with this link, or from this page.",
    404: "No such study or question.",
    409: "It contradicts what is recorded, or the study is paused.",
    413: "Too many bytes.",
    422: "Refused: the message says why.",
    429: "Too many requests.",
    503: "The storage does not answer; try again.",
}
"""What each status means."""


def include(app: FastAPI) -> None:
    """Add all routes of the API."""
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": words} for status, words in REFUSALS.items()
    }
    for group in (studies, questions, sitting, results, stream):
        app.include_router(group.router, prefix=PREFIX, responses=refusals)
    app.include_router(docs.router, prefix=PREFIX, include_in_schema=False)
