"""`compdiffuser serve` from the command line."""

import builtins
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from live import client, get

from compdiffuser.cli import main
from compdiffuser.web.settings import Settings


@pytest.fixture
def server(folder):
    command = [sys.executable, "-m", "compdiffuser", "serve", "--port", "0", "--device", "cpu", "--models", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_it_says_where_it_is_and_ends_in_order_letting_running_requests_finish(server):
    line = server.stderr.readline()
    assert "can be reached from this machine only; Ctrl-C ends it." in line
    address = line.split()[4]
    here = client.Client(address)
    assert here.models()["default"] == "tiny"
    replies = []

    def ask():
        replies.append(here.plan("tiny", (0, 0), (8, 8), steps=12, candidates=8, chunks=3))

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive() and not any(
        json.loads(get(address, "/healthz")[2])[kind] for kind in ("waiting", "running")
    ):
        time.sleep(0.01)
    server.send_signal(signal.SIGTERM)
    asking.join(timeout=30)
    assert replies[0]["n_chunks"] == 3
    assert server.wait(timeout=30) in (0, -signal.SIGTERM)
    assert "Traceback" not in server.stderr.read()


def test_a_port_that_is_taken_is_named(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--models", str(folder)]) == 2
    assert capsys.readouterr().err.startswith(f"compdiffuser: cannot listen on 127.0.0.1:{port}: ")


def test_a_missing_extra_is_named(monkeypatch, capsys):
    real = builtins.__import__

    def without_fastapi(name, *rest):
        if name == "fastapi" or name.startswith("fastapi."):
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *rest)

    for name in [
        name for name in sys.modules if name.startswith("compdiffuser.web") or name.split(".")[0] == "fastapi"
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_fastapi)
    assert main(["serve"]) == 2
    told = capsys.readouterr().err
    assert "serving needs 'fastapi'; in your clone: pip install -c constraints.txt -e '.[web]'" in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--port", "99999"], "a port lies between 0 and 65535, not at 99999"),
        (["--origins", "lab.example"], "an origin looks like https://example.org, not like 'lab.example'"),
        (["--queue", "0"], "queue must be more than 0, not 0"),
        (["--token-file", "missing.txt"], "cannot read the token in 'missing.txt': No such file or directory"),
        (["--models", "pointmaze-gaint-stitch-v0"], "did you mean 'pointmaze-giant-stitch-v0'?"),
    ],
)
def test_mistakes_are_told_in_one_sentence(arguments, sentence, capsys):
    assert main(["serve", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_short_token_is_refused(tmp_path, capsys):
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert main(["serve", "--token-file", str(file)]) == 2
    assert "a token needs at least 16 characters, this one has 6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "alone"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("lab", False)]
)
def test_loopback_is_known_when_it_is_seen(host, alone):
    assert Settings(host=host).on_loopback is alone
