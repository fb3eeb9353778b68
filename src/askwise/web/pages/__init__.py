"""Pages of HTML: the experimenter's and the participants'."""

from fastapi import FastAPI

from askwise.web.pages import answers, creating, dashboard, downloads, experimenter, links, media, participant


def include(app: FastAPI) -> None:
    """Add all pages."""
    for group in (experimenter, creating, dashboard, answers, links, downloads, participant, media):
        app.include_router(group.router, include_in_schema=False)
