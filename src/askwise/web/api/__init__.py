"""The HTTP API under ``/api/v1``: one file for each group of routes, all JSON in `models`."""

from fastapi import FastAPI

from askwise.web.api import studies

PREFIX = "/api/v1"


def include(app: FastAPI) -> None:
    """Add all routes of the API."""
    for group in (studies,):
        app.include_router(group.router, prefix=PREFIX)
