"""Running the application: one socket, one process, an orderly end."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from compdiffuser.types import UserError
from compdiffuser.web.app import create_app
from compdiffuser.web.connections import HEAD_BYTES, Connection, Door
from compdiffuser.web.library import Library
from compdiffuser.web.settings import Settings

BACKLOG = 512
KEEP_ALIVE = 5  # seconds between two requests of a connection
LAST_WORDS = 2.0  # seconds before connections are cut, in which whoever still waits is told


def serve(settings: Settings, models: Sequence[str] = ()) -> None:
    """Serve until told to stop; then running requests get `settings.grace` seconds to end."""
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    library = Library(models, settings.device)
    library.load()
    listener = bind(settings.host, settings.port)
    app = create_app(settings, library)
    config = configured(app, settings)
    port = listener.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    reach = "from this machine only" if settings.on_loopback else "from other machines too"
    print(
        f"The page is at http://{host}:{port} and can be reached {reach}; Ctrl-C ends it.", file=sys.stderr, flush=True
    )
    if not settings.on_loopback and settings.token is None:
        print("There is no token: whoever reaches this machine may plan.", file=sys.stderr, flush=True)
    Server(config, app.state.service.scheduler.close).run(sockets=[listener])


def configured(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """uvicorn's settings: connections are watched by a `Door`, whose refusals are JSON as all others are."""
    watched: Any = partial(Connection, Door(settings, app.state.service.metrics))
    return uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, http=watched, ws="none",
        timeout_keep_alive=KEEP_ALIVE, h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_graceful_shutdown=int(settings.grace),
    )  # fmt: skip


class Server(uvicorn.Server):
    """A server that ends what is still under way with `end`, a moment before it would cut the connections."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], None]) -> None:
        super().__init__(config)
        self._end = end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        grace = (self.config.timeout_graceful_shutdown or 0) - LAST_WORDS
        ending = loop.call_later(max(grace, 0.0), loop.run_in_executor, None, self._end)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UserError where there can be none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener
