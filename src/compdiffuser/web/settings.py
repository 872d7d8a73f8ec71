"""What the operator of a server decides, checked once before it starts."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field

from compdiffuser.checks import whole
from compdiffuser.types import UserError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


@dataclass(frozen=True)
class Limits:
    """The most that one request may ask for."""

    chunks: int = 48
    candidates: int = 256
    steps: int = 64
    repeats: int = 16
    evaluations: int = 4000
    """Network evaluations of chunks per candidate: K times the steps of the schedule."""
    body_bytes: int = 64 * 1024


@dataclass(frozen=True)
class Settings:
    """Everything about a server but its models."""

    host: str = "127.0.0.1"
    port: int = 8000
    device: str = "auto"
    token: str | None = None
    """Asked of every request for plans, as `Authorization: Bearer …`, where it is set."""
    origins: tuple[str, ...] = ()
    """Other web pages that may use this server, and addresses under which a proxy offers it."""
    queue: int = 64
    """Requests under way at the same time; further ones are told to come back."""
    drives: int = 4
    """Simulators that run at the same time."""
    connections: int = 512
    """Connections at the same time; beyond, those that were silent for a second are closed, and requests refused."""
    connections_per_address: int = 128
    """The same for one address: a proxy that many come through is one."""
    timeout: float = 60.0
    """Seconds after which a request is answered with what there is."""
    grace: float = 10.0
    """Seconds that running requests get when the server is told to stop."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise UserError(f"a port lies between 0 and 65535, not at {self.port}")
        if self.token is not None and len(self.token) < 16:
            raise UserError(f"a token needs at least 16 characters, this one has {len(self.token)}")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise UserError("a token is made of plain ASCII characters, since it travels in a header")
        for origin in self.origins:
            if "://" not in origin or origin.count("/") != 2:
                raise UserError(f"an origin looks like https://example.org, not like '{origin}'")
        whole(self, "connections", "connections_per_address")
        for name in ("queue", "drives", "timeout", "grace"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} must be more than 0, not {getattr(self, name)}")

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names under which the server answers.

        On loopback only its own, and those of `origins`, under which a proxy may offer it: none can pose as it.
        """
        proxies = (host_name(origin.partition("://")[2]) for origin in self.origins)
        return (*LOOPBACK, self.host.lower(), *(host.lower() for host in proxies)) if self.on_loopback else ("*",)


def host_name(address: str) -> str:
    """A host and perhaps a port, without the port."""
    return address if address.endswith("]") else address.rpartition(":")[0] or address
