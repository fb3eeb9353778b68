"""The application: routes, guards and what they share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio.to_thread
import torch
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from askwise import plugins
from askwise.errors import Refused
from askwise.web import api, pages, problems
from askwise.web.access import Gate
from askwise.web.guards import Guards
from askwise.web.media import Store
from askwise.web.presenting import Presenting
from askwise.web.serverfile import ServerFile
from askwise.web.settings import Settings
from askwise.web.studies import Studies
from askwise.web.templating import STATIC


def create(settings: Settings) -> FastAPI:
    """The application with these settings; refuses study files with mistakes."""
    torch.set_num_threads(1)  # more are slower here, and the last bits would depend on the machine
    for module in settings.imports:
        plugins.use(module)
    file = ServerFile(settings.keeps)
    studies = Studies(settings, file)
    presenting = Presenting(Store(settings.media), settings.present)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
        yield
        presenting.close()
        studies.close()

    app = FastAPI(
        title="askwise",
        version=version("askwise"),
        root_path=settings.root_path,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # these would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.settings, app.state.studies, app.state.presenting = settings, studies, presenting
    app.state.gate = Gate(file, secure=settings.secure, root_path=settings.root_path)
    app.add_exception_handler(Refused, problems.refused)
    app.add_exception_handler(RequestValidationError, problems.invalid)
    app.add_exception_handler(HTTPException, problems.not_served)
    app.add_exception_handler(Exception, problems.unexpected)
    api.include(app)
    pages.include(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(
        Guards,
        host=settings.host,
        hosts=settings.hosts,
        origins=settings.origins,
        largest=settings.largest,
        rate=settings.rate,
    )
    return app


def from_environment() -> FastAPI:
    """The application of a worker."""
    return create(Settings.from_environment())
