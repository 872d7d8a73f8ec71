"""Connections that say nothing, say it slowly, or do not listen: they keep nobody else out. All on real sockets."""

import json
import re
import socket
import subprocess
import sys
import threading
import time

import pytest
from live import client, demanding, get, serving

from compdiffuser.web import connections
from compdiffuser.web.settings import Settings


def dial(address: str, data: bytes = b"", buffer: int | None = None) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    own = socket.socket()
    if buffer is not None:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    own.settimeout(20)
    own.connect((host, int(port)))
    own.sendall(data)
    return own


def rest(own: socket.socket) -> bytes:
    """All that still comes, until the other side ends the connection."""
    found = b""
    try:
        while data := own.recv(65_536):
            found += data
    except ConnectionResetError:
        pass
    return found


def told(reply: bytes) -> tuple[int, str]:
    """Status and sentence of a raw reply."""
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"default-src 'none'" in head
    return int(head.split()[1]), json.loads(body)["detail"]


@pytest.fixture
def hasty(monkeypatch):
    """A server that waits for fractions of a second only."""
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.7)
    monkeypatch.setattr(connections, "READ_SECONDS", 0.5)
    monkeypatch.setattr(connections, "MOMENT", 0.1)


HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("words", [b"", b"G"])
def test_who_has_asked_is_not_closed_for_a_newcomer(library, words):
    """Though nobody has listened yet: many may come before the server reads what the first of them said."""
    with serving(Settings(connections_per_address=4), library) as (address, app):
        busy, health = threading.Event(), app.state.service.health
        app.state.service.health = lambda: (busy.set(), time.sleep(0.5), health())[-1]
        spoken = [dial(address, HEALTH)]
        assert busy.wait(5)
        app.state.service.health = health
        spoken += [dial(address, HEALTH) for _ in range(2)]
        others = [dial(address, words) for _ in range(4 * connections.CROWD)]
        assert [b"200 OK" in rest(own) for own in spoken] == [True] * 3
        for own in others:
            own.close()


def test_newcomers_leave_who_has_just_come_the_time_to_speak(library):
    with serving(Settings(connections_per_address=4), library) as (address, _):
        slow = dial(address)
        others = [dial(address) for _ in range(20)]
        assert get(address, "/healthz")[0] == 200, "all the others have been let in"
        slow.sendall(HEALTH)
        assert b"200 OK" in rest(slow)
        for own in others:
            own.close()


def test_after_a_moment_silent_connections_make_room(library, hasty, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 20.0)
    with serving(Settings(connections_per_address=4), library) as (address, _):
        silent = [dial(address, b"G" * (number % 2)) for number in range(20)]
        time.sleep(0.2)
        assert get(address, "/healthz")[0] == 200
        closed = [rest(own) for own in silent[:17]]
        assert closed == [b""] * 17
        for own in silent[17:]:
            own.setblocking(False)
            with pytest.raises(BlockingIOError):
                own.recv(1)
            own.close()


def test_more_files_are_asked_for_where_there_may_be_too_few():
    """In a process of its own, since the limit of this one is not ours to change."""
    script = (
        "import resource; from compdiffuser.web.connections import raised_open_files as raised;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300));"
        "print(raised(50), raised(200), raised(900), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "100 200 300 (300, 300)\n"


@pytest.mark.slow
def test_520_silent_connections_lock_nobody_out(folder):
    """A server as a user starts it."""
    command = [sys.executable, "-m", "compdiffuser", "serve", "--port", "0", "--device", "cpu", "--models", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        silent = []
        try:
            address = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line)))
            silent += [dial(address) for _ in range(260)]
            silent += [dial(address, b"GET /healthz HT") for _ in range(260)]
            assert get(address, "/healthz")[0] == 200
            assert client.Client(address).plan("tiny", (0, 0), (8, 8), steps=1, candidates=1)["n_chunks"] >= 1
            status = get(address, "/healthz", host="LOCALHOST")[0]
            assert status == 200
        finally:
            for own in silent:
                own.close()
            server.terminate()
            server.wait(timeout=20)


def test_a_head_that_does_not_come_is_not_waited_for(library, hasty):
    with serving(Settings(), library) as (address, _):
        assert rest(dial(address)) == b""
        assert told(rest(dial(address, b"GET / HTTP/1.1\r\nhost: local"))) == (
            408, "the request's head did not arrive within 0.7 s",
        )  # fmt: skip
        dripping = dial(address, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                dripping.sendall(b"x: 1\r\n")
            except OSError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("a head may take for ever")


def test_a_second_head_has_its_own_time_and_is_not_waited_for_either(library, hasty):
    request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with serving(Settings(), library) as (address, _):
        own = dial(address)
        for _ in range(3):
            time.sleep(0.3)  # less than it may be silent, but not less in all
            own.sendall(request)
            assert b"200 OK" in own.recv(15, socket.MSG_WAITALL)
            while b"running" not in own.recv(65_536):
                pass
        own.sendall(request[:20])
        assert told(rest(own))[0] == 408


def test_who_does_not_read_is_not_written_to_for_ever(library, hasty):
    many = 3000
    with serving(Settings(), library) as (address, _):
        own = dial(address, b"GET /static/main.js HTTP/1.1\r\nhost: localhost\r\n\r\n" * many, buffer=4096)
        time.sleep(1.5)
        assert 0 < rest(own).count(b"HTTP/1.1 200") < many
        assert get(address, "/healthz")[0] == 200


def test_where_all_are_busy_further_ones_are_refused_in_json(library, hasty):
    path = (
        b"GET /v1/plan/stream?model=tiny&start=0,0&goal=8,8&candidates=200&steps=20 HTTP/1.1\r\nhost: localhost\r\n\r\n"
    )
    with serving(Settings(connections_per_address=2), library) as (address, app):
        begun = app.state.service.submit
        app.state.service.submit = lambda job: (demanding(job), begun(job))
        busy = [dial(address, path) for _ in range(2)]
        for own in busy:
            assert own.recv(10)
        status, sentence = told(rest(dial(address, b"GET /healthz HTTP/1.1\r\n")))
        assert (status, sentence) == (
            503, "there are 2 connections from this address already, all of them busy; try again later",
        )  # fmt: skip
        assert rest(dial(address)) == b"", "who cannot be let in and says nothing is let go"
        busy.pop().close()
        for _ in range(100):
            if get(address, "/healthz")[0] == 200:
                break
        busy.pop().close()


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00" * 4, b"GET / HTTP/1.1\r\n\r\n", b"HELO\r\n\r\n", b"GET /" + b"a" * 20_000]
)
def test_what_is_no_request_is_told_so_in_json(address, data):
    status, sentence = told(rest(dial(address, data)))
    assert status == 400
    assert sentence == "this is not an HTTP request, or its head has more than 16384 bytes"


@pytest.mark.parametrize("host", ["LOCALHOST", "LocalHost:80", "127.0.0.1"])
def test_hosts_are_the_same_in_capitals(address, host):
    assert get(address, "/v1/models", host=host, origin=f"http://{host.lower()}")[0] == 200
    assert Settings(host="LOCALHOST").on_loopback
