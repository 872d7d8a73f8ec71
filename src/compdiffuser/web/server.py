"""Running the application: one socket, one process, an orderly end."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Sequence

import uvicorn

from compdiffuser.types import UserError
from compdiffuser.web.app import create_app
from compdiffuser.web.library import Library
from compdiffuser.web.settings import Settings

CONNECTIONS = 512


def serve(settings: Settings, models: Sequence[str] = ()) -> None:
    """Serve until told to stop; then running requests get `settings.grace` seconds to end."""
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    library = Library(models, settings.device)
    library.load()
    listener = bind(settings.host, settings.port)
    config = uvicorn.Config(
        create_app(settings, library), log_level="warning", access_log=False, server_header=False,
        limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=int(settings.grace),
    )  # fmt: skip
    port = listener.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    reach = "from this machine only" if settings.on_loopback else "from other machines too"
    print(
        f"The page is at http://{host}:{port} and can be reached {reach}; Ctrl-C ends it.", file=sys.stderr, flush=True
    )
    if not settings.on_loopback and settings.token is None:
        print("There is no token: whoever reaches this machine may plan.", file=sys.stderr, flush=True)
    uvicorn.Server(config).run(sockets=[listener])


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, or a sentence about why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(CONNECTIONS)
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener
