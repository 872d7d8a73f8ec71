"""What `/v1/models` lists, `/v1/plan` takes: orders, step rules, scores and blendings; too much is refused."""

import shlex

import numpy as np
import pytest
from live import client, get

from compdiffuser.cli import main
from compdiffuser.planning.plan import Plan
from compdiffuser.types import UserError

QUICK = {"steps": 2, "repeats": 1, "candidates": 2, "chunks": 2, "wave": 2}


def test_every_listed_choice_is_taken_and_told(tiny_client):
    offer = tiny_client.models()
    for name, listed in (("rule", "rules"), ("score", "scores"), ("blending", "blendings"), ("order", "orders")):
        for choice in offer[listed]:
            plan = tiny_client.plan("tiny", (0, 0), (8, 8), **QUICK, **{name: choice})
            assert plan["options"][name] == choice
        with pytest.raises(client.Refused, match=r"unknown .* 'nothing'; choose one of") as refusal:
            tiny_client.plan("tiny", (0, 0), (8, 8), **QUICK, **{name: "nothing"})
        assert refusal.value.status == 422


def test_choices_change_the_plan_and_reproduce_makes_it_again(tiny_client, tmp_path):
    usual = tiny_client.plan("tiny", (0, 0), (8, 8), **QUICK)
    plan = tiny_client.plan("tiny", (0, 0), (8, 8), **QUICK, rule="heun", score="overlap", blending="linear")
    assert not np.allclose(plan["states"], usual["states"])
    words = shlex.split(plan["reproduce"]["shell"].replace("--png plan.png", f"--save {tmp_path}/plan.npz"))
    assert main(words[1:]) in (0, 3)
    np.testing.assert_allclose(Plan.load(tmp_path / "plan.npz").states, plan["states"], atol=1e-4)
    made = {}
    exec(plan["reproduce"]["python"].replace("plan.png", str(tmp_path / "plan.png")), made)
    np.testing.assert_allclose(made["plan"].states, plan["states"], atol=1e-4)


def test_a_stream_takes_them_too(address):
    path = "/v1/plan/stream?model=tiny&start=0,0&goal=8,8&steps=1&candidates=1&chunks=1"
    assert b"event: plan" in get(address, f"{path}&rule=heun&score=overlap&blending=linear")[2]
    assert get(address, f"{path}&rule=nothing")[0] == 422


def test_a_rule_of_two_calls_counts_twice(tiny_client):
    heavy = {"chunks": 48, "steps": 64, "repeats": 1}
    assert tiny_client.plan("tiny", (0, 0), (8, 8), candidates=1, **heavy)["n_chunks"] == 48
    with pytest.raises(client.Refused, match="evaluations per candidate; at most 4000 are allowed here"):
        tiny_client.plan("tiny", (0, 0), (8, 8), candidates=1, rule="heun", **heavy)


@pytest.mark.parametrize("most", [2**31, 10**30])
def test_too_many_candidates_and_chunks_are_refused_in_a_sentence(tiny_client, library, most):
    for name, limit in (("chunks", 48), ("candidates", 256)):
        with pytest.raises(client.Refused, match=rf"{name} may be at most {limit} here|{name}: ") as refusal:
            tiny_client.plan("tiny", (0, 0), (8, 8), **{name: most})
        assert refusal.value.status == 422
    planner = library.get("tiny")
    with pytest.raises(UserError, match=f"numbers of candidates must be at most 65536, not {most}"):
        planner.plan((0, 0), (8, 8), n_candidates=most)
    with pytest.raises(UserError, match=f"numbers of chunks must be at most 1024, not {most}"):
        planner.plan((0, 0), (8, 8), n_chunks=most)
