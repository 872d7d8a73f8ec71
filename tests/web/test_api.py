"""Plans over HTTP: what is answered, what is refused, and in which words."""

import http.client
import io
import json
import shlex
import socket
import threading
import time
import urllib.error
import urllib.request
from email.message import Message
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from live import client, demanding, get, serving

from compdiffuser.compose import BLENDINGS, ORDERS, STEPS
from compdiffuser.planning.judge import TESTS
from compdiffuser.planning.search import SCORES, Proposal
from compdiffuser.web.library import Library
from compdiffuser.web.messages import PlanRequest
from compdiffuser.web.service import Service
from compdiffuser.web.settings import Limits, Settings
from compdiffuser.web.streaming import Film

EXPLORE = "antmaze-medium-explore-v0"
START, GOAL, QUICK = (0, 0), (8, 8), {"steps": 3, "repeats": 1, "candidates": 4}


def test_a_plan_comes_with_all_that_is_known_of_it(tiny_client):
    plan = tiny_client.plan("tiny", START, GOAL, chunks=2, include_candidates=True, seed=3, **QUICK)
    assert plan["n_chunks"] == 2
    assert np.shape(plan["states"]) == (2 * plan["horizon"] - plan["overlap"], 2)
    assert plan["tried"] == len(plan["candidates"]) == 8, "four fresh ones, and as many refined"
    assert plan["stride"] == 1
    assert plan["options"]["seed"] == 3
    assert plan["wave"] == plan["options"]["wave"]
    verdict = plan["verdict"]
    assert set(verdict["failed"]) == {name for name, share in verdict["measures"].items() if not share <= 1}
    assert plan["ok"] == (not verdict["failed"]) == (verdict["told"] == "certified")
    assert all(TESTS[name] in verdict["told"] for name in verdict["failed"])
    assert plan["origin"] == plan["candidates"][0]["origin"]
    best = plan["candidates"][0]
    assert plan["score"] == pytest.approx(best["score"], abs=1e-4)
    np.testing.assert_allclose(best["path"][0], plan["states"][0], atol=1e-3)
    assert [c["certified"] for c in plan["candidates"]] == sorted(
        (c["certified"] for c in plan["candidates"]), reverse=True
    )


@pytest.mark.parametrize("changes", [{}, {"order": "parallel", "repeats": 2, "chunks": 2}])
def test_the_lines_of_a_reply_make_the_same_plan(tiny_client, folder, changes, tmp_path, capsys):
    from compdiffuser.cli import main

    plan = tiny_client.plan("tiny", (-0.25, 0), GOAL, **{**QUICK, **changes})
    python = plan["reproduce"]["python"].replace("plan.png", f"{tmp_path}/plan.png")
    assert repr(str(folder)).replace("'", '"') in python, "a model that is given by its folder is found there"
    space = {}
    exec(python, space)
    np.testing.assert_allclose(space["plan"].states, plan["states"], atol=1e-3)
    words = shlex.split(plan["reproduce"]["shell"].replace("plan.png", f"{tmp_path}/plan.png"))
    main([*words[1:], "--json"])
    np.testing.assert_allclose(json.loads(capsys.readouterr().out)["states"], plan["states"], atol=1e-3)


def test_a_stream_begins_with_noise_and_ends_with_the_plan_that_a_request_gets(tiny_client):
    options = {**QUICK, "chunks": 2, "wave": 2}
    events = list(tiny_client.stream("tiny", START, GOAL, **options))
    kinds = [kind for kind, _ in events]
    assert kinds[:3] == ["accepted", "wave", "frame"]
    assert kinds[-2:] == ["scored", "plan"]
    assert set(events[-2][1]) == {"tried", "certified", "score"}, "the plan has the paths, once"
    wave, frame = events[1][1], events[2][1]
    rows = sum(candidate["n_chunks"] for candidate in wave["candidates"])
    assert frame["rows"] == list(range(rows))
    assert len(frame["points"]) == rows * wave["points"] * 2
    assert frame["round"] == 0
    waves = [(data["wave"], data["origin"], data["refined"]) for kind, data in events if kind == "wave"]
    assert waves[:2] == [(1, "noise", False), (2, "refined", True)]
    plan = events[-1][1]
    assert events[-2][1]["tried"] == plan["tried"]
    assert sum(candidate["refined"] for candidate in plan["candidates"]) == plan["tried"] // 2
    assert all(candidate["refined"] == (candidate["origin"] == "refined") for candidate in plan["candidates"])
    again = tiny_client.plan("tiny", START, GOAL, include_candidates=True, **options)
    assert plan["states"] == again["states"]
    assert len(plan["candidates"]) == len(again["candidates"])


def test_models_are_listed_with_their_mazes(tiny_client):
    offer = tiny_client.models()
    (tiny,) = offer["models"]
    assert offer["default"] == tiny["name"] == "tiny"
    assert tiny["maze"]["rows"][1] == "#..##..#"
    assert tiny["drivable"]
    assert set(offer["limits"]) == {"chunks", "candidates", "steps", "repeats"}


def test_what_can_be_chosen_is_what_the_registries_hold(tiny_client):
    offer = tiny_client.models()
    for kind, registry in (("orders", ORDERS), ("rules", STEPS), ("scores", SCORES), ("blendings", BLENDINGS)):
        assert offer[kind] == list(registry)


@pytest.mark.parametrize(
    ("options", "status", "sentence"),
    [
        ({"model": "../tiny"}, 404, "there is no model '../tiny'; this server has tiny"),
        ({"start": (8, 0)}, 422, "the start [8.0, 0.0] lies in a wall; an agent needs 0.6 m of room"),
        ({"goal": (8, 9.5)}, 422, "the goal [8.0, 9.5] is too close to a wall"),
        ({"start": (0, 0, 0)}, 422, "a start has 2 dimensions here"),
        ({"candidates": 0}, 422, "candidates: input should be greater than or equal to 1, not '0'"),
        ({"candidates": 1000}, 422, "candidates may be at most 256 here, not 1000"),
        ({"chunks": 49}, 422, "chunks may be at most 48 here, not 49"),
        ({"steps": 65}, 422, "steps may be at most 64 here, not 65"),
        ({"repeats": 17}, 422, "repeats may be at most 16 here, not 17"),
        ({"wave": 256}, 422, "wave may be at most 42 with up to 3 chunks here, not 256"),
        ({"chunks": 24, "steps": 64, "repeats": 16}, 422, "evaluations per candidate; at most 4000 are allowed here"),
        ({"chunks": "many"}, 422, "chunks: input should be 'auto' or a number of at least 1, not 'many'"),
        ({"order": "random"}, 422, "unknown order 'random'; choose one of parallel"),
        ({"colour": "red"}, 422, "colour: extra inputs are not permitted"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_in_one_sentence(tiny_client, options, status, sentence):
    asked = {"model": "tiny", "start": START, "goal": GOAL, **QUICK, **options}
    with pytest.raises(client.Refused) as refusal:
        tiny_client.plan(**asked)
    assert refusal.value.status == status
    assert sentence in str(refusal.value)
    with pytest.raises(client.Refused) as refusal:
        list(tiny_client.stream(**asked))
    assert refusal.value.status == status


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_begins_with_noise(tiny_client, order):
    events = list(tiny_client.stream("tiny", START, GOAL, order=order, **QUICK))
    frames = [data for kind, data in events if kind == "frame"]
    assert frames[0]["round"] == 0
    assert len(frames[0]["points"]) == len(frames[1]["points"])
    assert frames[0]["points"] != frames[1]["points"]


@pytest.mark.slow
def test_a_shipped_planner_plans_from_a_scaffold_and_shows_no_noise_that_never_was():
    options = {**QUICK, "candidates": 8}
    with serving(Settings(), Library([EXPLORE], "cpu")) as (address, _):
        ant = client.Client(address)
        plan, again = (ant.plan(EXPLORE, START, (20, 20), include_candidates=True, **options) for _ in range(2))
        events = list(ant.stream(EXPLORE, START, (20, 20), wave=plan["wave"], **options))
    assert plan["ok"], "certified in its first wave"
    assert plan["fault"] is None
    assert plan["stride"] == 4
    assert [(each["origin"], each["refined"]) for each in plan["candidates"]] == [("scaffold", False)] * 4
    assert plan["states"] == again["states"] == events[-1][1]["states"]
    wave, frames = events[1][1], [data for kind, data in events if kind == "frame"]
    assert (wave["origin"], wave["refined"]) == ("scaffold", False)
    assert frames[0]["round"] == 1, "there is no frame of pure noise"
    firsts = np.cumsum([0, *(candidate["n_chunks"] for candidate in wave["candidates"])])[:-1]
    assert frames[0]["rows"] == firsts.tolist(), "of each candidate, the one chunk that has moved"


def test_a_wave_of_two_origins_is_told_in_two_parts(library):
    asked = PlanRequest(model="tiny", start=START, goal=GOAL, chunks=2, **QUICK)
    job = Service(Settings(), library).job(asked)
    laid = torch.zeros(2, job.planner.model.horizon, 2)
    job.search.proposals = lambda: [Proposal(0, 2), *(Proposal(number, 2, "scaffold", laid) for number in (1, 2))]
    events = []
    film = Film(job.planner, job.search, SimpleNamespace(post=lambda kind, data: events.append((kind, data))))
    job.planner.advance([job.search], lambda seen: film.on_round(0, seen))
    film.on_wave()
    parts = [(data["wave"], data["origin"], len(data["candidates"])) for kind, data in events if kind == "wave"]
    assert parts == [(1, "scaffold", 2), (1, "noise", 1)], "scaffolds, which are quick, come first"
    assert [data["rows"] for kind, data in events if kind == "frame" and data["round"] == 0] == [[0, 1]]
    assert [data["tried"] for kind, data in events if kind == "scored"] == [3]


def test_a_stream_takes_any_ordinary_number(tiny_client):
    near = (0.30000000000000004, 1e-05)
    assert list(tiny_client.stream("tiny", near, GOAL, **QUICK))[-1][1]["start"] == list(near)
    with pytest.raises(client.Refused, match=r"the goal .* is not finite"):
        list(tiny_client.stream("tiny", START, ("1e999", 0), **QUICK))
    with pytest.raises(client.Refused, match="goal: input should be numbers separated by commas, such as 0"):
        list(tiny_client.stream("tiny", START, ("here", 0), **QUICK))


def test_a_stream_that_outlives_the_server_is_told_so(library):
    with serving(Settings(), library, grace=3) as (address, app):
        events = client.Client(address).stream("tiny", START, GOAL, steps=64, candidates=256, wave=40, chunks=3)
        assert next(events)[0] == "accepted"
        job = app.state.service.scheduler.jobs[0]
        demanding(job)
        job.on_round = lambda index, seen: time.sleep(0.05)
        last = []
        reading = threading.Thread(target=lambda: last.append(list(events)[-1]))
        reading.start()
    reading.join(20)
    assert last == [("error", {"detail": "the server is stopping"})]


@pytest.mark.parametrize(
    ("body", "kind", "sentence"),
    [
        ("", "application/json", "the body: field required"),
        ("{", "application/json", "the body is not JSON: "),
        ("{}", "text/plain", "the body must be a JSON object, sent with the content type application/json"),
        ("[]", "application/json", "the body must be a JSON object"),
        ("{}", "application/json", "model: field required"),
    ],
)
def test_a_broken_body_is_refused_in_one_sentence(address, body, kind, sentence):
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
    connection.request("POST", "/v1/plan", body, {"content-type": kind})
    reply = connection.getresponse()
    assert reply.status == 422
    assert sentence in json.load(reply)["detail"]


def test_a_full_server_answers_429_and_says_when_to_come_back(library):
    with serving(Settings(queue=2), library) as (address, app):
        scheduler = app.state.service.scheduler
        busy = client.Client(address).stream("tiny", START, GOAL, steps=64, candidates=256, wave=40, chunks=3)
        next(busy)
        deadline = time.monotonic() + 20
        while not scheduler.begun and time.monotonic() < deadline:
            time.sleep(0.01)
        waiting = client.Client(address).stream("tiny", START, GOAL, **QUICK)
        next(waiting)
        with pytest.raises(client.Refused, match="the queue is full") as refusal:
            client.Client(address).plan("tiny", START, GOAL, **QUICK)
        assert refusal.value.status == 429
        assert refusal.value.retry_after >= 1
        busy.close()
        assert [kind for kind, _ in waiting][-1] == "plan"


@pytest.mark.parametrize(("after", "seconds"), [("7", 7), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_a_client_is_refused_by_a_proxy_that_says_when_to_come_back(monkeypatch, after, seconds):
    def refused(request, timeout):
        headers = Message()
        headers["retry-after"] = after
        raise urllib.error.HTTPError(request.full_url, 503, "Service Unavailable", headers, io.BytesIO(b"<html>"))

    monkeypatch.setattr(urllib.request, "urlopen", refused)
    with pytest.raises(client.Refused, match="the server answered 503 Service Unavailable") as refusal:
        client.Client("http://127.0.0.1:1").models()
    assert refusal.value.retry_after == seconds


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_leaves_cancels_its_work(library, streamed):
    with serving(Settings(), library) as (address, app):
        service = app.state.service
        host, port = address.removeprefix("http://").split(":")
        slow = {"steps": 64, "candidates": 256, "wave": 40, "chunks": 3}
        if streamed:
            query = "&".join(f"{key}={value}" for key, value in slow.items())
            call = f"GET /v1/plan/stream?model=tiny&start=0,0&goal=8,8&{query} HTTP/1.1\r\nhost: localhost\r\n\r\n"
        else:
            body = json.dumps({"model": "tiny", "start": START, "goal": GOAL, **slow})
            kind = f"content-type: application/json\r\ncontent-length: {len(body)}"
            call = f"POST /v1/plan HTTP/1.1\r\nhost: localhost\r\n{kind}\r\n\r\n{body}"
        with socket.create_connection((host, int(port))) as line:
            line.sendall(call.encode())
            deadline = time.monotonic() + 20
            while not service.scheduler.begun and time.monotonic() < deadline:
                time.sleep(0.01)
        while service.scheduler.jobs and time.monotonic() < deadline:
            time.sleep(0.01)
            client.Client(address).plan("tiny", START, GOAL, steps=1, candidates=1)
        assert 'outcome="cancelled"} 1' in service.metrics.text(0, 0)


def test_metrics_are_prometheus_text(tiny_client, address):
    tiny_client.plan("tiny", START, GOAL, **QUICK)
    status, headers, body = get(address, "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = body.decode().splitlines()
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    samples = [line for line in lines if not line.startswith("#")]
    assert all(len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0 for line in samples)
    assert {"compdiffuser_requests_total", "compdiffuser_plans_total", "compdiffuser_batch_problems"} <= named
    assert any(line.startswith('compdiffuser_requests_total{route="/v1/plan",status="200"}') for line in samples)


def test_a_server_without_time_says_so(library):
    with serving(Settings(timeout=0.001), library) as (address, _):
        with pytest.raises(client.Refused, match="no plan was made in time") as refusal:
            client.Client(address).plan("tiny", START, GOAL, steps=64, candidates=256, wave=40)
        assert refusal.value.status == 504


def test_limits_are_the_operators(library):
    with serving(Settings(limits=Limits(candidates=2)), library) as (address, _):
        assert client.Client(address).models()["limits"]["candidates"] == 2
        with pytest.raises(client.Refused, match="candidates may be at most 2 here, not 3"):
            client.Client(address).plan("tiny", START, GOAL, candidates=3)
