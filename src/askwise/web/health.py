"""For those who run the server: whether it lives, whether it is ready, and its metrics."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from askwise.web.access import Owner
from askwise.web.lookup import studies

router = APIRouter(include_in_schema=False)


@router.get("/health")
async def health() -> PlainTextResponse:
    """The process lives."""
    return PlainTextResponse("ok\n")


@router.get("/ready")
def ready(request: Request) -> PlainTextResponse:
    """The storage answers, so that questions can be asked; else 503."""
    studies(request).names()
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(request: Request, access: Owner) -> PlainTextResponse:
    """Numbers of requests and their times, for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")
