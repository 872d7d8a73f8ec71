"""The door of the server: who may come in, how much they may bring, and what every reply says about itself."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compdiffuser.web.metrics import Metrics
from compdiffuser.web.settings import Settings, host_name

log = logging.getLogger("compdiffuser.web")

POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:",
        "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    )
)  # fmt: skip
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
BODY_SECONDS = 10.0  # for a request's body to arrive
ROUTES = (
    "/v1/plan",
    "/v1/plan/stream",
    "/v1/models",
    "/v1/scene",
    "/v1/drive",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/",
)


class Refused(Exception):
    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


class Guard:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                route = scope["path"] if scope["path"] in ROUTES else "other"
                self.metrics.request(route, message["status"])
            await send(message)

        try:
            self._admit(scope["path"], Headers(scope=scope))
            body = await self._body(scope, receive)
        except Refused as refusal:
            await _refuse(answer, refusal)
            return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            await self.app(scope, again, answer)
        except Exception:
            if begun:
                raise
            log.exception("a request failed")
            await _refuse(answer, Refused(500, "this request failed; the server's log says why"))

    def _admit(self, path: str, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        if "*" not in self.settings.hosts and host_name(host) not in self.settings.hosts:
            raise Refused(421, f"this server does not answer for the host '{host[:100]}'")
        if not path.startswith(("/v1/", "/metrics")):
            return
        origin = headers.get("origin")
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        elsewhere |= origin is not None and origin.partition("://")[2].lower() != host
        if elsewhere and origin not in self.settings.origins:
            raise Refused(403, "pages of other sites may not use this server")
        if self.settings.token is not None:
            given = headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self.settings.token}".encode()):
                wrong = "this is not the token of this server" if given else "this server asks for a token"
                raise Refused(401, wrong, **{"www-authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, as long as it is small and comes in time."""
        most = self.settings.limits.body_bytes
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdigit() and int(told) > most:
            raise Refused(413, f"a request may have {most} bytes, this one has {told}")
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the request ended before its body")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise Refused(413, f"a request may have {most} bytes, this one has more")
        except TimeoutError:
            raise Refused(408, f"the request's body did not arrive within {BODY_SECONDS:g} s") from None
        return bytes(body)


def raw_reply(status: int, sentence: str) -> bytes:
    """A whole refusal, for a connection without a request that the application could answer."""
    body = json.dumps({"detail": sentence}).encode()
    own = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{n}: {v}" for n, v in (HEADERS | own).items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _refuse(send: Send, refusal: Refused) -> None:
    body = json.dumps({"detail": str(refusal)}).encode()
    about = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    raw = [(name.encode(), value.encode()) for name, value in (about | refusal.headers).items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
