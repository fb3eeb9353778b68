"""News of a study as server-sent events."""

import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from askwise.web.access import Owner
from askwise.web.lookup import TheStudy, studies

router = APIRouter(tags=["results"], prefix="/studies/{study}")


@router.get("/events", response_class=StreamingResponse)
def events(request: Request, study: TheStudy, access: Owner) -> StreamingResponse:
    """Server-sent events: ``{"last": N, "answers": N, "open": N}``, now and after every change."""

    async def stream() -> AsyncIterator[str]:
        async for last in studies(request).changes.of(study.id, study.study):
            if last is None:
                yield ": still here\n\n"
                continue
            news = {"last": last, "answers": study.study.count(), "open": study.study.count("open")}
            yield f"data: {json.dumps(news)}\n\n"

    headers = {"X-Accel-Buffering": "no"}  # of nginx, which would keep events back
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)
