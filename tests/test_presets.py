import json
from dataclasses import fields, replace

import numpy as np
import pytest

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import BODIES, DOMAINS, Body, Domain
from compdiffuser.domains.mazes import Maze
from compdiffuser.presets import (
    PRESETS,
    ChunkConfig,
    EvaluationConfig,
    ExecutionConfig,
    Preset,
    RecordingConfig,
    own_preset,
    preset,
)
from compdiffuser.registering import register
from compdiffuser.types import Episodes, UserError

RECORDS = (RecordingConfig("stitch", 10, 20), ChunkConfig(scaffold=0.25), ExecutionConfig(), EvaluationConfig())


@pytest.mark.parametrize(
    ("name", "limit", "distance"),
    [
        ("antmaze-medium-stitch-v0", 1000, 4.0),
        ("antmaze-large-stitch-v0", 2000, 4.0),
        ("antmaze-giant-stitch-v0", 2000, 4.0),
        ("antmaze-medium-explore-v0", 1000, 2.0),
        ("antmaze-large-explore-v0", 1000, 2.0),
    ],
)
def test_ants_have_the_papers_limits(name, limit, distance):
    record = preset(name)
    assert (record.evaluation.step_limit, record.evaluation.benchmark_step_limit) == (limit, 1000)
    assert record.execution == ExecutionConfig(replan_distance=distance, max_replans=10, replan_delta=50)
    assert (record.domain.body.experts, record.domain.controller, record.space.dims) == (("ant",), None, (0, 1))
    assert record.recording.noise == (1.0 if record.recording.recipe == "explore" else 0.2)


@pytest.mark.parametrize("name", PRESETS)
def test_an_episode_is_long_enough_for_a_chunk(name):
    record = preset(name)
    chunks = record.chunks
    states = np.zeros((record.recording.steps, max(record.space.dims) + 1), np.float32)
    episode = Episodes.from_terminals(states, states, np.arange(len(states)) == len(states) - 1)
    windows = Windows.from_episodes(
        episode, record.space, Normalizer.from_data(record.space.planned(states)), chunks.horizon, chunks.front_padding,
        chunks.back_padding, stride=chunks.stride,
    )  # fmt: skip
    assert len(windows) > 0
    assert chunks.overlap < chunks.horizon / 2 + 8
    assert chunks.horizon % 8 == 0


def test_all_plans_begin_from_scaffolds_those_of_ogbenchs_points_with_more_noise():
    for name, record in PRESETS.items():
        assert record.chunks.scaffold == (0.6 if name.startswith("pointmaze") else 0.25)


@pytest.mark.parametrize(("size", "episodes", "steps"), [("arena", 5000, 201), ("medium", 8000, 501)])
def test_ants_with_a_ball_plan_for_both(size, episodes, steps):
    record = preset(f"antsoccer-{size}-stitch-v0")
    assert record.recording == RecordingConfig("soccer", episodes, steps, noise=0.2)
    assert record.space.dims == (0, 1, 15, 16)
    assert (record.evaluation.step_limit, record.evaluation.benchmark_step_limit) == (5000, 1000)
    assert (record.chunks.horizon * record.chunks.stride, record.chunks.overlap * record.chunks.stride) == (160, 64)


@pytest.mark.parametrize("size", ["medium", "large"])
def test_chunks_of_explore_data_last_as_long_as_the_papers(size):
    chunks = preset(f"antmaze-{size}-explore-v0").chunks
    assert chunks.horizon * chunks.stride == 192


def test_points_need_no_expert():
    assert all(record.domain.body.experts == () for name, record in PRESETS.items() if "pointmaze" in name)
    with pytest.raises(UserError, match="did you mean 'antmaze-giant-stitch-v0'"):
        preset("antmaze-gigant-stitch-v0")


@pytest.mark.parametrize("name", PRESETS)
def test_a_description_gives_the_same_preset(name):
    assert Preset.from_dict(json.loads(json.dumps(preset(name).to_dict()))) == preset(name)


def test_a_world_that_is_not_registered_here_can_still_be_planned_in_and_drawn():
    maze = Maze.drawn("ell", ["####", "#..#", "##.#", "####"], unit=1, origin=(0, 0))
    elsewhere = own_preset("theirs", Domain("theirs", object, maze=maze)).planning((0, 1, 3))
    read = Preset.from_dict(json.loads(json.dumps(elsewhere.to_dict())))
    assert (read.name, read.space, read.chunks) == ("theirs", elsewhere.space, elsewhere.chunks)
    np.testing.assert_array_equal(read.maze.walls, maze.walls)
    with pytest.raises(UserError, match="'theirs' has no simulator; register a Domain of that name"):
        read.domain.open()


@pytest.fixture
def forgotten():
    """What is registered is forgotten afterwards."""
    before = [(known, dict(known)) for known in (BODIES, DOMAINS, PRESETS)]
    yield
    for known, content in before:
        known.clear()
        known.update(content)


@pytest.mark.usefixtures("forgotten")
def test_a_name_is_registered_once():
    world = Domain("mine")
    assert register(world) is world
    assert preset("mine").domain is world
    with pytest.raises(UserError, match="there is already a world 'mine'"):
        register(world)
    with pytest.raises(UserError, match="there is already a dataset 'pointmaze-giant-stitch-v0'"):
        register(Domain("other"), replace(preset("pointmaze-giant-stitch-v0"), domain=Domain("other")))


def test_a_world_brings_datasets_of_its_own_only():
    own = own_preset("garden-v0", Domain("garden"))
    with pytest.raises(UserError, match="dataset 'garden-v0' is of the world 'garden', not of 'street'"):
        register(Domain("street"), own)
    with pytest.raises(UserError, match="two datasets of 'garden' have the same name"):
        register(Domain("garden"), own, own)
    with pytest.raises(UserError, match="tasks must be at least 0, not -3"):
        Domain("garden", tasks=-3)
    with pytest.raises(UserError, match=r"plans in antmaze-medium hold the agent's place.*1 is not among \[0, 2\]"):
        PRESETS["antmaze-medium-stitch-v0"].planning((0, 2))


@pytest.mark.usefixtures("forgotten")
def test_a_body_of_ones_own_is_registered_with_its_world():
    """A learned controller asks for its body by name."""

    class Beetle(Body):
        name = "beetle"

    class Another(Body):
        """A body that forgot to take a name of its own."""

    beetle = Beetle()
    register(Domain("garden", body=beetle))
    register(Domain("lawn", body=Beetle()))
    assert BODIES["beetle"] is beetle
    with pytest.raises(UserError, match="there is already a body 'point'"):
        register(Domain("street", body=Another()))
    assert "street" not in DOMAINS


@pytest.mark.parametrize(
    ("record", "name"),
    [(record, field.name) for record in RECORDS for field in fields(record) if field.name != "recipe"],
)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "3", True])
def test_numbers_that_cannot_be_are_named(record, name, value):
    with pytest.raises(UserError, match=f"{name} must be .*, not {value!r}"):
        replace(record, **{name: value})


def test_what_does_not_go_together_is_named():
    with pytest.raises(UserError, match="overlap must be less than the horizon 8, not 8"):
        ChunkConfig(horizon=8, overlap=8)
    with pytest.raises(UserError, match="scaffold must be positive or None, not 0"):
        ChunkConfig(scaffold=0.0)
    with pytest.raises(UserError, match="names its recipe"):
        RecordingConfig("", 10, 20)
