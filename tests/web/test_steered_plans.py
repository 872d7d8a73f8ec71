"""Steered plans over HTTP."""

import json
import shlex

import numpy as np
import pytest
from live import client

from compdiffuser.client import Client

START, GOAL, QUICK = (0, 0), (8, 8), {"steps": 3, "repeats": 1, "candidates": 2, "chunks": 2}
STEERED = {"via": ["4,0.5"], "avoid": ["disc:20,20,1", "box:-3,19,-1,21"], "margin": 0.25}


def test_a_steered_plan_is_judged_by_what_steered_it_and_its_lines_make_it_again(tiny_client, tmp_path, capsys):
    from compdiffuser.cli import main

    plan = tiny_client.plan("tiny", START, GOAL, **QUICK, **STEERED)
    assert {"avoid", "via"} <= set(plan["verdict"]["measures"])
    assert plan["avoid"] == ["disc:20,20,1~0.25", "box:-3,19,-1,21~0.25"]
    assert plan["via"] == STEERED["via"]
    assert plan["others"] == []
    space = {}
    exec(plan["reproduce"]["python"].replace("plan.png", f"{tmp_path}/plan.png"), space)
    np.testing.assert_allclose(space["plan"].states, plan["states"], atol=1e-3)
    words = shlex.split(plan["reproduce"]["shell"].replace("plan.png", f"{tmp_path}/plan.png"))
    main([*words[1:], "--json"])
    np.testing.assert_allclose(json.loads(capsys.readouterr().out)["states"], plan["states"], atol=1e-3)


def test_regions_with_margins_and_rooms_are_written_out_for_python(tiny_client, tmp_path):
    avoid = ["disc:20,20,1~0.25", "outside:box:-20,-20,40,40"]
    plan = tiny_client.plan("tiny", START, GOAL, **QUICK, avoid=avoid)
    space = {}
    exec(plan["reproduce"]["python"].replace("plan.png", f"{tmp_path}/plan.png"), space)
    assert [str(each) for each in space["plan"].avoid] == avoid == plan["avoid"]


def test_a_drive_passes_and_avoids_what_its_plan_does(monkeypatch):
    sent = []
    monkeypatch.setattr(Client, "_events", lambda self, path, body: iter(sent.append((path, body)) or []))
    plan = {"model": "tiny", "start": [0, 0], "goal": [1, 1], "states": [[0, 0]], "via": ["1,1"], "avoid": []}
    list(Client("http://nowhere").drive(plan, rate=2))
    assert sent == [("/v1/drive", {name: plan[name] for name in plan if name != "avoid"} | {"rate": 2})]


def test_a_stream_can_be_steered_too(tiny_client):
    kind, plan = list(tiny_client.stream("tiny", START, GOAL, **QUICK, **STEERED))[-1]
    assert kind == "plan"
    assert len(plan["avoid"]) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"avoid": ["disc:0,0,1"]}, "the start [0.0, 0.0] lies in disc:0,0,1"),
        ({"avoid": ["blob:1"]}, "a region is written disc:x,y,r"),
        ({"via": ["x"]}, "a waypoint is written x,y"),
        ({"avoid": ["polygon:0,10,2,12,2,10,0,12"]}, "the polygon crosses itself"),
        ({"plans": 99}, "plans: input should be less than or equal to 8"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(tiny_client, options, said):
    with pytest.raises(client.Refused) as told:
        tiny_client.plan("tiny", START, GOAL, **QUICK, **options)
    assert told.value.status == 422
    assert said in str(told.value)


def test_plans_to_choose_from_are_asked_for_in_one_request(tiny_client):
    plan = tiny_client.plan("tiny", START, GOAL, **QUICK, plans=2)
    assert isinstance(plan["others"], list)
