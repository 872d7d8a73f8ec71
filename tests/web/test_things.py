"""Planners of several things, and of postures: what a client is told of them, gives, and sees."""

import numpy as np
import pytest
import torch
from browser import POSED, SOCCER
from live import client

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.score import worst_chunk
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import Domain, Space
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.judge import TESTS
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.planning.recorded.support import measure_support
from compdiffuser.presets import Preset
from compdiffuser.types import Episodes
from compdiffuser.web.library import Library

pytestmark = pytest.mark.slow
QUICK = {"chunks": 2, "candidates": 1, "steps": 2, "repeats": 1}


@pytest.fixture
def soccer(arena):
    return client.Client(arena)


def test_what_moves_is_told_and_a_goal_may_be_the_balls_alone(soccer):
    plain, posed = soccer.models()["models"]
    assert (plain["title"], posed["title"]) == ("Ant and ball, arena", "Ant and ball, arena (17D)")
    assert [(group["name"], group["asked"]) for group in plain["groups"]] == [("agent", False), ("ball", True)]
    assert (plain["start_columns"], plain["goal_columns"]) == ([0, 1, 2, 3], [2, 3])
    assert (posed["start_columns"], posed["goal_columns"]) == ([0, 1, 15, 16], [15, 16])
    assert plain["drivable"]
    assert posed["drivable"]
    example = plain["example"]
    assert len(example["start"]) == 4
    assert len(example["goal"]) == 2
    plan = soccer.plan(SOCCER, example["start"], example["goal"], include_candidates=True, **QUICK)
    assert len(plan["states"][0]) == len(plan["candidates"][0]["path"][0]) == 4
    with pytest.raises(Exception, match=r"the goal's ball .* lies in a wall"):
        soccer.plan(SOCCER, example["start"], [-4, 0], **QUICK)


def test_a_start_of_places_alone_gets_the_posture_in_which_the_body_waits(soccer):
    start, goal = [4.0, 8.0, 8.0, 8.0], [16.0, 8.0]
    plan = soccer.plan(POSED, start, goal, **QUICK)
    assert len(plan["start"]) == 17
    assert np.array(plan["start"])[[0, 1, 15, 16]].tolist() == start
    assert 0.3 < plan["start"][2] < 1, "the torso's height"
    again = soccer.plan(POSED, start, goal, **QUICK)
    assert again["states"] == plan["states"]


def test_frames_and_candidates_hold_the_columns_that_were_asked_for(soccer):
    asked = {"model": POSED, "start": (4, 8, 8, 8), "goal": (16, 8), **QUICK}
    told = dict(soccer.stream(**asked, columns="2,15"))
    assert told["wave"]["columns"] == [2, 15]
    assert len(told["frame"]["points"]) == 2 * told["wave"]["points"] * len(told["frame"]["rows"])
    assert len(told["plan"]["candidates"][0]["path"][0]) == 2
    with pytest.raises(Exception, match="there is no 17"):
        list(soccer.stream(**asked, columns="17"))


def test_a_candidate_says_which_test_it_failed_and_where(soccer):
    told = dict(soccer.stream(model=SOCCER, start=(0, 0, 12, 0), goal=(20, 20), **QUICK | {"chunks": 1}))
    plan = told["plan"]
    assert not plan["ok"]
    assert plan["why"].startswith("None of ")
    worst = plan["candidates"][-1]
    assert (
        {piece["test"] for piece in worst["failed"]}
        == {name for name, share in worst["measures"].items() if share is None or share > 1}
        <= set(TESTS)
    )
    for piece in worst["failed"]:
        assert all(len(point) == 4 for point in piece["path"])
        assert len(piece["path"]) >= 2


def test_a_scene_has_limbs_that_a_planned_state_moves(soccer):
    scene = soccer.scene(SOCCER)
    assert scene["pose"] == [[0, 0], [1, 1], [2, 15], [3, 16]]
    kinds = [shape["kind"] for limb in scene["limbs"] for shape in limb["shapes"]]
    assert kinds.count("capsule") == 12
    assert [joint["kind"] for limb in scene["limbs"] for joint in limb["joints"]].count("hinge") == 8
    assert len(scene["qpos"]) == 22
    with pytest.raises(Exception, match="there is no model 'nobody'"):
        soccer.scene("nobody")


def test_the_worst_chunk_is_counted_within_its_chain():
    chains = Chains.build(torch.zeros(2, 2), torch.zeros(2, 2), torch.tensor([2, 3]), torch.zeros(2).long())
    assert worst_chunk(torch.tensor([0.1, 0.3, 0.9, 0.2, 0.4]), chains) == [1, 0]


def bare(folder, dims: int):
    """A planner of data without a world."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    states = rng.uniform(-3, 3, (40, 1, dims)) + np.linspace(0, 4, 30)[None, :, None]
    states = states.reshape(-1, dims).astype(np.float32)
    episodes = Episodes.from_terminals(states, np.zeros_like(states), np.arange(len(states)) % 30 == 29)
    preset = Preset(f"bare{dims}", Domain(f"bare{dims}", space=Space.of(range(dims))))
    network = DiT1dConfig(width=16, depth=1, heads=2, patch=4)
    denoiser = Denoiser(DenoiserConfig(16, 4, dim=dims, network=network))
    normalizer = Normalizer.from_data(states)
    windows = Windows.from_episodes(episodes, preset.space, normalizer, 16)
    calibration = calibrate(denoiser, windows, 4)
    made = Checkpoint(denoiser, normalizer, calibration, preset, support=measure_support(windows))
    return made.save(folder / preset.name)


def test_data_without_a_world_has_recorded_places_and_an_example(tmp_path):
    library = Library([str(bare(tmp_path, dims)) for dims in (1, 3)], "cpu")
    line, space = (library.describe(name) for name in ("bare1", "bare3"))
    assert (line.drivable, space.drivable) == (False, False)
    assert space.title == "bare3"
    assert space.start_columns == [0, 1, 2]
    assert len(space.recorded[0]) == 2
    assert len(space.example["start"]) == 3
    low, high = np.array(space.low), np.array(space.high)
    assert (low <= space.example["start"]).all()
    assert (space.example["start"] <= high).all()
    assert len(line.recorded[0]) == 1
