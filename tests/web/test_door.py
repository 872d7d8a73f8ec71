"""Who may come in, and what every reply forbids."""

import http.client
import json
import re
import urllib.request

import pytest
from live import client, get, serving

from compdiffuser.web.settings import Settings


def test_bodies_over_64_kb_are_refused_with_or_without_a_length(address):
    host = address.removeprefix("http://")
    for chunked in (False, True):
        connection = http.client.HTTPConnection(host, timeout=20)
        body = b" " * 65_537
        connection.request(
            "POST", "/v1/plan", iter([body]) if chunked else body, {"content-type": "application/json"},
            encode_chunked=chunked,
        )  # fmt: skip
        reply = connection.getresponse()
        assert reply.status == 413
        assert "65536 bytes" in json.load(reply)["detail"]


def test_every_reply_forbids_what_the_page_does_not_need(address):
    for path in ("/", "/static/main.js", "/healthz", "/v1/nothing"):
        _, headers, _ = get(address, path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_other_hosts_and_other_sites_stay_outside(address):
    assert get(address, "/", host="evil.example")[0] == 421
    assert get(address, "/v1/models", **{"sec-fetch-site": "cross-site", "origin": "https://evil.example"})[0] == 403
    assert get(address, "/v1/models", **{"sec-fetch-site": "same-origin"})[0] == 200
    assert get(address, "/healthz", host="localhost:1")[0] == 200
    assert get(address, "/v1/models", origin="https://evil.example")[0] == 403
    assert get(address, "/v1/models", origin="null")[0] == 403
    assert get(address, "/v1/models", origin=address)[0] == 200


def test_a_proxy_may_offer_the_server_under_the_names_of_its_origins(library):
    with serving(Settings(origins=("https://lab.example:8443",)), library) as (address, _):
        assert get(address, "/", host="lab.example:8443")[0] == 200
        assert get(address, "/", host="evil.example")[0] == 421
        path = "/v1/plan/stream?model=tiny&start=0,0&goal=8,8&steps=1&candidates=1"
        status, headers, _ = get(address, path, host="lab.example:8443", origin="https://lab.example:8443")
        assert status == 200
        assert headers["cache-control"] == "no-store"
        assert headers["x-accel-buffering"] == "no"


def test_a_fault_of_the_server_is_one_sentence_with_the_same_policy(library, monkeypatch):
    with serving(Settings(), library) as (address, _):
        monkeypatch.setattr(library, "describe", lambda name: 1 / 0)
        status, headers, body = get(address, "/v1/models")
    assert status == 500
    assert json.loads(body)["detail"] == "this request failed; the server's log says why"
    assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path", ["/static/../settings.py", "/static/%2e%2e/settings.py", "/static//etc/passwd", "/static/", "/docs"]
)
def test_no_path_reaches_the_file_system(address, path):
    assert get(address, path)[0] == 404


def test_a_token_is_asked_for_where_one_is_set_and_cors_is_open_to_whom_it_was_opened(library):
    secret = "a-token-of-some-length"
    with serving(Settings(token=secret, origins=("https://lab.example",)), library) as (address, _):
        with pytest.raises(client.Refused, match="asks for a token") as refusal:
            client.Client(address).models()
        assert refusal.value.status == 401
        with pytest.raises(client.Refused, match="not the token of this server"):
            client.Client(address, "another-token-of-that-length").plan("tiny", (0, 0), (8, 8))
        assert client.Client(address, secret).models()["default"] == "tiny"
        assert get(address, "/metrics")[0] == 401
        assert get(address, "/healthz")[0] == 200
        friend = {"origin": "https://lab.example", "sec-fetch-site": "cross-site", "authorization": f"Bearer {secret}"}
        status, headers, _ = get(address, "/v1/models", **friend)
        assert (status, headers["access-control-allow-origin"]) == (200, "https://lab.example")


def test_the_page_asks_nobody_else_and_all_its_parts_are_there(address):
    from importlib.resources import files

    page = urllib.request.urlopen(address).read().decode()
    static = files("compdiffuser.web").joinpath("static")
    for file in static.iterdir():
        text = file.read_text(encoding="utf-8")
        loads = re.findall(r"(?:src|url|from|import|fetch)\W{1,3}https?://", text)
        linked = re.findall(r'<a href="https://', text)
        assert not loads, file.name
        assert text.count("https://") == len(linked), "nothing but links that people follow"
        assert text.count("http://") == text.count("http://www.w3.org/"), file.name
        for line in text.splitlines():
            if ' from "./' in line:
                assert static.joinpath(line.split('"./')[1].split('"')[0]).is_file(), line
    assert 'src="/static/main.js"' in page
    tag = get(address, "/static/main.js")[1]["etag"]
    assert get(address, "/static/main.js", **{"if-none-match": tag})[0] == 304
