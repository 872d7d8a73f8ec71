"""Connections, watched: how many there may be, and how long each may keep the server waiting. uvicorn does neither.

A connection is *silent* while no request on it is under way, else *busy*. Silent ones never keep others out: where
there are too many, those that have been silent for longest are closed. Each is given a moment to speak, in which there
may be several times as many, and none is closed that has sent a whole request's head. Where too many are busy, a
further request is refused. A connection that does not send a head in time is closed too, and one that does not read
what it was sent.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from compdiffuser.web.guard import raw_reply
from compdiffuser.web.metrics import Metrics
from compdiffuser.web.settings import Settings

HEAD_SECONDS = 10.0
"""For a request's head to arrive, from the first byte on or from the beginning of the connection."""
READ_SECONDS = 30.0
"""For a client to read anything of what it was sent."""
HEAD_BYTES = 16 * 1024
SWEEP_SECONDS = 1.0
MOMENT = 1.0
"""Seconds that a silent connection has for itself, however many others come."""
CROWD = 8
"""Times as many connections as otherwise that there may be for this moment."""
OTHER_FILES = 256
"""Open files that are no connections."""
ANY = object()
"""Every address."""


class Door:
    """All connections of a server."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.most, self.most_each = settings.connections, settings.connections_per_address
        self.metrics = metrics
        self.inside: dict[Connection, None] = {}
        self.silent: dict[Connection, None] = {}
        """Those that are silent, longest first."""
        self._files = raised_open_files(CROWD * self.most + OTHER_FILES) - OTHER_FILES
        self._sweeping: asyncio.TimerHandle | None = None

    def enter(self, new: Connection) -> None:
        """Take a connection in, in the place of silent ones where there are too many."""
        self.inside[new] = None
        self.hush(new)
        for most, address in ((self.most_each, new.address), (self.most, ANY)):
            self._make_room(most, address)
        if self._sweeping is None:
            self._sweeping = new.loop.call_later(SWEEP_SECONDS, self._sweep, new.loop)

    def leave(self, connection: Connection) -> None:
        self.inside.pop(connection, None)
        self.silent.pop(connection, None)

    def hush(self, connection: Connection) -> None:
        """A connection is silent from now on."""
        connection.silent_since = time.monotonic()
        self.silent.pop(connection, None)
        if connection in self.inside:
            self.silent[connection] = None

    def hear(self, connection: Connection) -> None:
        """A connection is busy."""
        connection.silent_since = None
        self.silent.pop(connection, None)

    def refusal(self, asking: Connection) -> str | None:
        """Why a silent connection cannot become busy; None where it can."""
        if len(self.inside) - len(self.silent) < min(self.most, self.most_each):
            return None
        busy = [each for each in self.inside if each.silent_since is None]
        own = [each for each in busy if each.address == asking.address]
        for others, most, where in ((own, self.most_each, "from this address"), (busy, self.most, "here")):
            if len(others) >= most:
                return f"there are {len(others)} connections {where} already, all of them busy; try again later"
        return None

    def _make_room(self, most: int, address: object) -> None:
        """Close silent connections of an address, longest first, until there are few enough."""
        if len(self.inside) <= most:
            return
        there = len(self.inside) if address is ANY else sum(each.address == address for each in self.inside)
        crowd = max(most, min(CROWD * most, self._files))
        now = time.monotonic()
        for each in list(self.silent) if there > most else ():
            if there <= most or (there <= crowd and now - (each.silent_since or now) < MOMENT):
                return
            if address in (ANY, each.address) and not each.has_asked:
                self.leave(each)
                each.transport.abort()
                there -= 1

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        for connection in list(self.inside):
            connection.look(now)
        self._sweeping = loop.call_later(SWEEP_SECONDS, self._sweep, loop) if self.inside else None


class Connection(H11Protocol):
    """HTTP on one connection."""

    def __init__(self, door: Door, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.door = door
        self.address: str | None = None
        self.silent_since: float | None = None
        """When it began to wait for a request's head; None while a request is under way."""
        self._idle = False  # between two requests
        self._begun = False  # whether a part of the head has come
        self._unread, self._read_at = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else None
        self._read_at = time.monotonic()
        self.door.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._under_way and (refusal := self.door.refusal(self)) is not None:
            self._end(503, refusal)
            return
        if self._idle:
            self.door.hush(self)
        self._idle, self._begun = False, True
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        self._idle, self._begun = True, False
        super().on_response_complete()
        self._note()

    def send_400_response(self, msg: str) -> None:
        self._end(400, f"this is not an HTTP request, or its head has more than {HEAD_BYTES} bytes")

    def look(self, now: float) -> None:
        """Close the connection where it has kept the server waiting for too long."""
        if self.silent_since is not None and now - self.silent_since > HEAD_SECONDS:
            if self._begun:
                self._end(408, f"the request's head did not arrive within {HEAD_SECONDS:g} s")
            else:
                self.transport.abort()
            return
        unread = self.transport.get_write_buffer_size()
        if unread == 0 or unread < self._unread:
            self._read_at = now
        elif now - self._read_at > READ_SECONDS:
            self.transport.abort()
        self._unread = unread

    @property
    def has_asked(self) -> bool:
        """Whether a whole head has come that was not read yet."""
        try:
            with self.transport.get_extra_info("socket").dup() as own:
                return b"\r\n\r\n" in own.recv(HEAD_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            return False

    @property
    def _under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _note(self) -> None:
        if self._under_way:
            self.door.hear(self)
        elif self.silent_since is None:
            self.door.hush(self)

    def _end(self, status: int, sentence: str) -> None:
        """Say why, unless something else is being said, and close."""
        if self.transport.is_closing():
            return
        if not (self._under_way and self.cycle.response_started):
            self.door.metrics.request("other", status)
            self.transport.write(raw_reply(status, sentence))
        self.transport.close()


def raised_open_files(wanted: int) -> int:
    """How many files this process may have open, once it has asked for as many as `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft
