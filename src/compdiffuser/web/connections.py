"""Connections, watched: how many there may be, and how long each may keep the server waiting. uvicorn does neither.

A connection is *silent* while no request on it is under way. Silent ones never keep others out: where there are too
many, the one that has been silent for longest is closed. One that does not send a request's head in time is closed
too, and one that does not read what it was sent.
"""

from __future__ import annotations

import asyncio
import select
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
REFUSED_SECONDS = 2.0
"""That a connection which cannot be taken in gets for its request, so that it can be answered."""


class Door:
    """All connections of a server."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.most, self.most_each = settings.connections, settings.connections_per_address
        self.metrics = metrics
        self.inside: dict[Connection, None] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def refusal(self, new: Connection) -> str | None:
        """Take a connection in, in the place of a silent one where there are too many; else, why it cannot be."""
        own = [each for each in self.inside if each.address == new.address]
        for others, most, where in ((own, self.most_each, "from this address"), (list(self.inside), self.most, "here")):
            if len(others) < most:
                continue
            silent = (each for each in others if each.silent_since is not None)
            in_turn = sorted(silent, key=lambda each: each.silent_since or 0.0)
            if not in_turn:
                return f"there are {len(others)} connections {where} already, all of them busy; try again later"
            longest = next((each for each in in_turn if not each.fresh), in_turn[0])
            self.leave(longest)
            longest.transport.abort()
        self.inside[new] = None
        if self._sweeping is None:
            self._sweeping = new.loop.call_later(SWEEP_SECONDS, self._sweep, new.loop)
        return None

    def leave(self, connection: Connection) -> None:
        self.inside.pop(connection, None)

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
        self._refusal: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else None
        self.silent_since = self._read_at = time.monotonic()
        self._refusal = self.door.refusal(self)
        if self._refusal is not None:
            self.loop.call_later(REFUSED_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self.door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self._end(503, self._refusal)
            return
        if self._idle:
            self.silent_since = time.monotonic()
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
    def fresh(self) -> bool:
        """Whether its first words have come and were not read yet: a whole request, very likely."""
        if self._begun:
            return False
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    @property
    def _under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _note(self) -> None:
        if self._under_way:
            self.silent_since = None
        elif self.silent_since is None:
            self.silent_since = time.monotonic()

    def _end(self, status: int, sentence: str) -> None:
        """Say why, unless something else is being said, and close."""
        if self.transport.is_closing():
            return
        if not (self._under_way and self.cycle.response_started):
            self.door.metrics.request("other", status)
            self.transport.write(raw_reply(status, sentence))
        self.transport.close()
