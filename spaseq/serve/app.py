"""The application: all routes, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

import spaseq
from spaseq.engine import Engine
from spaseq.serve.errors import add_handlers
from spaseq.serve.newest.letters import Letters
from spaseq.serve.routes import graphs, health, matches, paths, queries, sparql, streams, trial
from spaseq.serve.security import Guard
from spaseq.serve.service import ServerState
from spaseq.serve.settings import Settings

_PAGE: Final = Path(__file__).parent / "page"


class Application(FastAPI):
    """The ASGI application of an engine; ``service`` exists from startup on."""

    def __init__(self, engine: Engine, settings: Settings, letters: Letters) -> None:
        super().__init__(
            title="spaseq",
            version=spaseq.__version__,
            summary="Sequences of SPARQL graph patterns over streams of RDF graphs",
            docs_url=None,  # they load scripts from another site
            redoc_url=None,
            lifespan=_life,
        )
        self.service = self.state.service = ServerState(engine, settings, letters)
        add_handlers(self)
        for part in (queries, trial, matches, streams, graphs, sparql, paths, health):
            self.include_router(part.router)
        if _PAGE.is_dir():
            self.mount("/page", StaticFiles(directory=_PAGE), name="page")
        self.add_api_route("/", _page, include_in_schema=False)


def create_app(engine: Engine, settings: Settings | None = None, letters: Letters | None = None) -> Guard:
    """Return the guarded application. It owns the engine from now on, and closes it at shutdown.

    ``letters`` is the engine's ``dead_letters``, for ``GET /letters``.
    """
    settings = settings or Settings()
    return Guard(Application(engine, settings, letters or Letters(settings.limits)), settings)


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    service: ServerState = app.state.service
    await service.start()
    try:
        yield
    finally:
        await service.stop()


async def _page() -> Response:
    index = _PAGE / "index.html"
    if not index.is_file():
        return PlainTextResponse("spaseq: GET /openapi.json lists what there is\n")
    return FileResponse(index)
