"""A client for `compdiffuser serve`. It needs no PyTorch and, copied beside a program, nothing but Python.

client = Client("http://127.0.0.1:8000")
plan = client.plan("pointmaze-giant-stitch-v0", (0, 0), (28, 4))
print(plan["ok"], plan["n_chunks"], len(plan["states"]))
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any


class Refused(RuntimeError):
    """The server said no, in one sentence; `retry_after` says when to come back where its queue was full."""

    def __init__(self, status: int, sentence: str, retry_after: int | None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after


class Broken(RuntimeError):
    """The connection ended before the last event."""


class Client:
    def __init__(self, address: str, token: str | None = None, timeout: float = 120.0) -> None:
        self.address = address.rstrip("/")
        self.timeout = timeout
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    def models(self) -> dict[str, Any]:
        """The planners of the server, their mazes, and what a request may ask for: names and limits."""
        return json.load(self._open("/v1/models"))

    def plan(self, model: str, start: Sequence[float], goal: Sequence[float], **options: Any) -> dict[str, Any]:
        """One plan; where it is not `ok`, its `verdict` says why.

        Options: chunks, candidates, order, rule, score, blending, steps, repeats, seed, wave, include_candidates,
        via, avoid, margin, plans.
        """
        return json.load(self._open("/v1/plan", {"model": model, "start": start, "goal": goal, **options}))

    def stream(
        self, model: str, start: Sequence[float], goal: Sequence[float], **options: Any
    ) -> Iterator[tuple[str, Any]]:
        """The denoising as it happens: (event, data) until ("plan", …) or ("error", …); else `Broken` is raised."""
        ends = {"start": ",".join(map(str, start)), "goal": ",".join(map(str, goal))}
        yield from self._events(
            "/v1/plan/stream?" + urllib.parse.urlencode({"model": model, **ends, **options}, doseq=True)
        )

    def drive(self, plan: dict[str, Any], **options: Any) -> Iterator[tuple[str, Any]]:
        """Follow a plan in the real environment: (event, data) until ("end", …) or ("error", …).

        New plans on the way pass what this one passes, and keep out of the same regions.
        """
        body = {name: plan[name] for name in ("model", "start", "goal", "states")}
        body |= {name: plan[name] for name in ("via", "avoid") if plan.get(name)}
        yield from self._events("/v1/drive", body | options)

    def scene(self, model: str) -> dict[str, Any]:
        """What moves in a planner's world, limb by limb, for drawing it in three dimensions."""
        return json.load(self._open("/v1/scene?" + urllib.parse.urlencode({"model": model})))

    def _events(self, path: str, body: Any = None) -> Iterator[tuple[str, Any]]:
        with self._open(path, body) as lines:
            kind = ""
            for line in lines:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
                    if kind in ("plan", "end", "error"):
                        return
        raise Broken("the server ended the connection before it had answered")

    def _open(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers | ({"content-type": "application/json"} if data else {})
        try:
            return urllib.request.urlopen(
                urllib.request.Request(self.address + path, data, headers), timeout=self.timeout
            )
        except urllib.error.HTTPError as error:
            with error:
                body = error.read()
            try:
                sentence = json.loads(body)["detail"]
            except (ValueError, KeyError, TypeError):  # a proxy on the way answers in its own words
                sentence = f"the server answered {error.code} {error.reason}"
            after = error.headers.get("retry-after")
            # A proxy may give a date in the place of seconds.
            raise Refused(error.code, sentence, int(after) if after and after.isdecimal() else None) from None
