"""Requests that nobody should send, against a real server: does anything fail, hang, leak or answer without a sentence?

    python benchmarks/fuzz_http.py --requests 100000 --out results/fuzz_http.json --hardware "two CPU cores"

A third is made up from the server's own OpenAPI document, a third by hand from sound requests with something wrong in
them, and a third is not quite HTTP. The same seed makes the same requests. A failure is an answer of 500 or more, a
traceback in the log, an error without a sentence in JSON, or no answer at all.
"""

from __future__ import annotations

import json
import random
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from figures import Figures
from reproduce import command, resident
from serving import served

CONTINUE = re.compile(rb"\AHTTP/1\.1 100[^\r]*\r\n\r\n")
LEAVES = 0.3
"""Seconds after which most clients that did not quite speak HTTP go away."""
MODEL = "robotics-pointmaze-umaze-v0"
SOUND: dict[str, Any] = {
    "model": MODEL, "start": [-1, 1], "goal": [-1, -1], "steps": 1, "repeats": 1, "candidates": 1, "chunks": 1,
}  # fmt: skip
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, -1e308, 1e-320, "", "x", "0", "-1",
    "1e400", "NaN", "\x00", "\ud800", "ﬀ", "'; --", "../..", "n" * 5000, [], [[]], [None], [1], [1, 2], [1] * 3000,
    {}, {"a": 1}, [[1, 2]] * 3, ["1", "2"], "auto", "autoregressive", "heun", "overlap", MODEL,
]  # fmt: skip
TOKENS = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "PRI", "get", "", "G" * 200, "G\x01T"]
PATHS = [
    "/", "/healthz", "/metrics", "/v1/models", "/v1/plan", "/v1/plan/stream", "/v1/drive", "/v1/scene",
    "/openapi.json", "/docs",
    "/static/main.js", "/static/../settings.py", "//", "/%00", "/%ff", "/v1/plan/", "*", "http://localhost/healthz",
    "/v1/models?" + "a=1&" * 500, "/" + "a" * 9000, "/é", "/v1/plan#x", "?", "/v1//plan",
]  # fmt: skip
HEADERS = [
    "host: localhost", "Host: LOCALHOST", "host: evil.example", "host:", "host: [::1]:99", "content-length: 0",
    "content-length: -1", "content-length: 99999999999999999999", "content-length: 5", "transfer-encoding: chunked",
    "transfer-encoding: gzip", "content-type: application/json", "content-type: text/plain", "content-encoding: gzip",
    "content-type: application/json; charset=utf-16", "expect: 100-continue", "upgrade: websocket",
    "connection: upgrade", "connection: close", "origin: null", "origin: https://evil.example", "range: bytes=0-1",
    "authorization: Bearer x", "if-none-match: *", "accept-encoding: x" * 3, "x: " + "y" * 9000, "x\x00: 1", ": empty",
    "sec-fetch-site: cross-site", "access-control-request-method: POST", " folded", "cookie: " + "a=b; " * 400,
]  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    out: Path = Path("results/fuzz_http.json")
    hardware: str = "this machine"
    requests: int = 5_000
    seed: int = 0
    clients: int = 16
    patience: float = 60.0
    """Seconds after which a request counts as unanswered."""


@dataclass
class Found:
    """What the requests came to."""

    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """What must not be, with the beginning of the request."""
    memory: list[tuple[int, float]] = field(default_factory=list)
    """Requests answered, and MiB of the server."""


def main() -> None:
    options = tyro.cli(Benchmark)
    asked = {"requests": options.requests, "seed": options.seed, "clients": options.clients}
    told = command("python benchmarks/fuzz_http.py", options, ("requests", "seed", "clients"))
    note = Figures(options.out, told, options.hardware, "fuzzing", about=asked).note
    with served("--device", "cpu", "--models", MODEL, "--timeout", "5") as (address, server, log):
        schema = json.load(urllib.request.urlopen(f"{address}/openapi.json"))
        begun = time.perf_counter()
        found = bombard(address, server, schema, options)
        seconds = time.perf_counter() - begun
        alive = ask(address, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", options.patience)
    tracebacks = log().count("Traceback")
    note("requests", sum(found.statuses.values()), "")
    note("requests per second", options.requests / seconds, "1/s")
    note("answers of 500 and more", bad(found.statuses), "", target=0)
    note("tracebacks in the log", tracebacks, "", target=0)
    note("failures of any kind", len(found.failures), "", target=0)
    note("server is well afterwards", int(status_of(alive) == 200), "", target=1, bound="at least")
    settled = [memory for number, memory in found.memory if number >= options.requests // 2] or [0.0]
    note("memory of the server half-way", settled[0], "MiB")
    note("memory of the server at the end", settled[-1], "MiB", target=round(1.1 * settled[0]))
    print("answers:", dict(sorted(found.statuses.items())))
    for failure in found.failures[:20]:
        print("failure:", failure)
    if tracebacks:
        print(log()[-4000:])


def bombard(address: str, server: subprocess.Popen[str], schema: dict[str, Any], options: Benchmark) -> Found:
    """All requests, from several clients at once."""
    found, lock = Found(), threading.Lock()
    numbers = iter(range(options.requests))

    def client() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            rng = random.Random(f"{options.seed} {number}")
            make = rng.choice((from_schema, by_hand, not_quite_http))
            request = make(rng, schema)
            leaves = make is not_quite_http and rng.random() < 0.95  # the others find out whether the server gives up
            reply = ask(address, request, LEAVES if leaves else options.patience)
            problem = None if leaves and status_of(reply) == -1 else judged(reply, request.startswith(b"HEAD"))
            with lock:
                found.statuses[status_of(reply)] += 1
                if problem is not None:
                    found.failures.append(f"{problem}: {request[:300]!r} -> {reply[:300]!r}")
                if number % 50 == 0:
                    found.memory.append((number, resident(server.pid)))

    threads = [threading.Thread(target=client) for _ in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def from_schema(rng: random.Random, schema: dict[str, Any]) -> bytes:
    """An operation that the document names, with values of the kinds it names, or of others."""
    path = rng.choice(list(schema["paths"]))
    method, operation = rng.choice(list(schema["paths"][path].items()))
    query = {
        each["name"]: value(rng, each["schema"], schema)
        for each in operation.get("parameters", [])
        if rng.random() < 0.8
    }
    body = b""
    if "requestBody" in operation:
        body = dumped(value(rng, operation["requestBody"]["content"]["application/json"]["schema"], schema))
    return http(method.upper(), path, query, body)


def value(rng: random.Random, schema: dict[str, Any], document: dict[str, Any], depth: int = 0) -> Any:
    """A value that a schema describes; at times another one."""
    if rng.random() < 0.1 or depth > 6:
        return rng.choice(STRANGE)
    if "$ref" in schema:
        return value(rng, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document, depth + 1)
    if "anyOf" in schema:
        return value(rng, rng.choice(schema["anyOf"]), document, depth + 1)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: value(rng, part, document, depth + 1) for name, part in fields.items() if rng.random() < 0.9}
    if kind == "array":
        return [value(rng, schema["items"], document, depth + 1) for _ in range(rng.choice((0, 1, 2, 2, 2, 3, 65)))]
    plain = {
        "integer": lambda: rng.choice((schema.get("minimum", 0), 1, rng.randint(-5, 300), 10**9)),
        "number": lambda: rng.choice((0, -1, 1, rng.uniform(-3, 3), rng.gauss(0, 1e6))),
        "boolean": lambda: rng.random() < 0.5,
        "string": lambda: rng.choice((MODEL, "0,0", "-1,1", "auto", "euler", "x" * rng.randint(0, 300))),
    }
    return plain.get(kind, lambda: rng.choice(STRANGE))()  # type: ignore[arg-type]


def by_hand(rng: random.Random, schema: dict[str, Any]) -> bytes:
    """A sound request in which something is wrong."""
    asked = dict(SOUND)
    for name in rng.sample(
        [*SOUND, "seed", "wave", "order", "rule", "score", "blending", "unknown"], rng.randint(0, 2)
    ):
        asked[name] = rng.choice(STRANGE)
    kind = rng.randrange(4)
    if kind == 0:
        numbers = {
            name: ",".join(map(str, asked[name])) if isinstance(asked[name], list) else asked[name] for name in asked
        }
        return http("GET", "/v1/plan/stream", numbers)
    if kind == 1:
        states = [[-1, 1 - 0.02 * t] for t in range(100)]
        drive = {name: asked[name] for name in ("model", "start", "goal")}
        return http("POST", "/v1/drive", {}, dumped(drive | {"states": rng.choice((states[:3], rng.choice(STRANGE)))}))
    body = dumped(asked)
    if kind == 2:
        body = rng.choice((
            body[: rng.randrange(len(body))], b"[" * 60_000, b"\xff\xfe" + body, body * 2, body.replace(b"1", b"NaN"),
            body.decode().encode("utf-16"), b"", b"{" + b'"model":1,' * 4000 + b'"a":1}', b" " * 65_537, b"null",
        ))  # fmt: skip
    return http("POST", "/v1/plan", {}, body, rng.sample(HEADERS, rng.choice((0, 0, 1, 2))))


def not_quite_http(rng: random.Random, schema: dict[str, Any]) -> bytes:
    """Lines in the place of lines, with a body or without; at times no lines at all."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randint(1, 3000))
    version = rng.choice(["HTTP/1.1"] * 6 + ["HTTP/1.0", "HTTP/2", "HTTP/9.9", "", "http/1.1"])
    lines = [f"{rng.choice(TOKENS)} {rng.choice(PATHS)} {version}", *rng.sample(HEADERS, rng.randint(0, 5))]
    if rng.random() < 0.7:
        lines.insert(1, "host: localhost")
    end = rng.choice(["\r\n"] * 6 + ["\n", "\r", "\r\n\r\n"])
    body = rng.choice([b"", b"{}", b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n", b"\xff" * 10, dumped(SOUND)])
    request = end.join([*lines, "", ""]).encode("utf-8", "surrogatepass") + body
    return request[: rng.randrange(1, len(request))] if rng.random() < 0.1 else request


def dumped(body: Any) -> bytes:
    return json.dumps(body).encode()


def http(method: str, path: str, query: dict[str, Any], body: bytes = b"", headers: list[str] | None = None) -> bytes:
    text = {name: each if isinstance(each, str) else json.dumps(each) for name, each in query.items()}
    asked = urllib.parse.urlencode(text, errors="replace") if text else ""
    lines = [f"{method} {path}{'?' + asked if asked else ''} HTTP/1.1", "host: localhost", "connection: close"]
    if body or method == "POST":
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *(headers or []), "", ""]).encode() + body


def answered(reply: bytes) -> bool:
    """Whether a reply that tells its length is whole."""
    head, gap, body = CONTINUE.sub(b"", reply).partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(gap and length and len(body) >= int(length[1]))


def ask(address: str, request: bytes, patience: float) -> bytes:
    """What comes back, up to its end, the end of the connection or the end of our patience."""
    host, port = address.removeprefix("http://").split(":")
    reply = b""
    try:
        with socket.create_connection((host, int(port)), timeout=patience) as own:
            own.sendall(request)
            while len(reply) < 200_000 and not answered(reply) and (data := own.recv(65_536)):
                reply += data
    except TimeoutError:
        return reply or b"no answer in time"
    except OSError:
        pass  # it hung up on us, which may be its answer to what is not HTTP
    return CONTINUE.sub(b"", reply)


def status_of(reply: bytes) -> int:
    """0 where the connection was closed without a word, -1 where nothing came in time."""
    if reply == b"no answer in time":
        return -1
    found = re.match(rb"HTTP/1\.1 (\d{3})", reply)
    return int(found[1]) if found else 0


def judged(reply: bytes, head_only: bool = False) -> str | None:
    """What is wrong with an answer, which may be a head alone; None where nothing is."""
    status = status_of(reply)
    if status == -1:
        return "no answer"
    if bad(Counter([status])):
        return f"answer {status}"
    head, _, body = reply.partition(b"\r\n\r\n")
    if length := re.search(rb"content-length: (\d+)", head):
        body = body[: int(length[1])]  # another answer may follow
    if status >= 400 and body and not head_only:
        try:
            told = json.loads(body)["detail"]
        except (ValueError, KeyError, TypeError):
            return f"no sentence with {status}"
        if not isinstance(told, str) or "\n" in told or len(told) > 2000:
            return f"no sentence with {status}"
    if b"event: error" in body and b"failed; the server" in body:
        return "a failure in a stream"
    return None


def bad(statuses: Counter[int]) -> int:
    """Answers that say that the server failed."""
    return sum(count for status, count in statuses.items() if status >= 500)


if __name__ == "__main__":
    main()
