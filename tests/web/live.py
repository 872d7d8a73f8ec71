"""A server in a thread, and the client to talk to it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fastapi import FastAPI

from compdiffuser import client as client
from compdiffuser.web.app import create_app
from compdiffuser.web.library import Library
from compdiffuser.web.scheduler import Job
from compdiffuser.web.server import Server, bind, configured
from compdiffuser.web.settings import Settings


@contextmanager
def serving(settings: Settings, library: Library, grace: int = 1) -> Iterator[tuple[str, FastAPI]]:
    """A running server: its address, and the application for looking inside. It is told to stop at the end."""
    app = create_app(settings, library)
    listener = bind("127.0.0.1", 0)
    config = configured(app, replace(settings, grace=grace))
    server = Server(config, app.state.service.scheduler.close)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join()


def get(address: str, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body, whatever they are."""
    host = address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=20)
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.headers, reply.read()


def demanding(job: Job) -> None:
    """Let nothing be certified for a job: all its waves are made."""
    job.planner = job.planner.with_config(certify=1e-9)
