"""The application: routes, guards and what they share."""

import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio.to_thread
import torch
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from askwise import plugins
from askwise.errors import Refused
from askwise.web import api, health, logs, pages, problems
from askwise.web.access import Gate
from askwise.web.guards import Guards
from askwise.web.logs import Watch
from askwise.web.media import Store
from askwise.web.memory import use_less
from askwise.web.metrics import Metrics
from askwise.web.presenting import Presenting
from askwise.web.serverfile import ServerFile
from askwise.web.settings import Settings
from askwise.web.studies import Studies
from askwise.web.templating import STATIC, Assets


def create(settings: Settings) -> FastAPI:
    """The application with these settings; refuses study files with mistakes."""
    torch.set_num_threads(1)  # more are slower here, and the last bits would depend on the machine
    for module in settings.imports:
        plugins.use(module)
    file = ServerFile(settings.keeps)
    studies = Studies(settings, file)
    presenting = Presenting(Store(settings.media), settings.present)
    for config in studies.configs:
        presenting.check(config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
        with _at_signal(studies.changes.end):
            yield
        presenting.close()
        studies.close()

    app = FastAPI(
        title="askwise",
        version=version("askwise"),
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # these would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.settings, app.state.studies, app.state.presenting = settings, studies, presenting
    app.state.gate = Gate(file, secure=settings.is_public_https, root_path=settings.root_path)
    app.add_exception_handler(Refused, problems.refused)
    app.add_exception_handler(RequestValidationError, problems.invalid)
    app.add_exception_handler(HTTPException, problems.not_served)
    api.include(app)
    pages.include(app)
    app.include_router(health.router)
    app.mount("/static", Assets(directory=STATIC), name="static")
    if settings.origins:  # without cookies: only with a participant's token
        headers = ["Authorization", "Content-Type", "Idempotency-Key"]
        shared = {"allow_methods": ["GET", "POST"], "allow_headers": headers}
        app.add_middleware(CORSMiddleware, allow_origins=list(settings.origins), **shared)  # type: ignore[arg-type]
    app.state.metrics = Metrics(settings.notes)
    app.add_middleware(Watch, metrics=app.state.metrics)
    app.add_middleware(
        Guards,
        root=settings.root_path,
        host=settings.host,
        hosts=settings.hosts,
        origins=settings.origins,
        largest=settings.largest,
        rate=settings.rate,
    )
    return app


def from_environment() -> FastAPI:
    """The application of a worker."""
    use_less()
    settings = Settings.from_environment()
    logs.configure(settings.log)
    return create(settings)


@contextmanager
def _at_signal(do: Callable[[], None]) -> Iterator[None]:
    """Do this as soon as the server is told to end: those who wait for news would keep it waiting."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if callable(before):
                signal.signal(number, partial(_both, do, before))
    yield


def _both(do: Callable[[], None], before: Callable[[int, Any], Any], number: int, frame: Any) -> None:
    do()
    before(number, frame)
