import numpy as np
import pytest

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.presets import PRESETS, preset
from compdiffuser.types import Episodes, UserError


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
    assert (record.step_limit, record.ogbench_step_limit) == (limit, 1000)
    assert (record.replan_distance, record.replan_delta, record.max_replans) == (distance, 50, 10)
    assert (record.expert, record.controller, record.plan_dims) == ("ant", "inverse-dynamics", (0, 1))
    assert record.expert_noise == (1.0 if record.recipe == "explore" else 0.2)


@pytest.mark.parametrize("name", PRESETS)
def test_an_episode_is_long_enough_for_a_chunk(name):
    record = preset(name)
    states = np.zeros((record.episode_steps, 2), np.float32)
    episode = Episodes.from_terminals(states, states, np.arange(len(states)) == len(states) - 1)
    padding = record.front_padding, record.back_padding
    windows = Windows.from_episodes(
        episode, (0, 1), Normalizer.from_data(states), record.horizon, *padding, stride=record.stride
    )
    assert len(windows) > 0
    assert record.overlap < record.horizon / 2 + 8
    assert record.horizon % 8 == 0


def test_plans_of_ants_begin_from_scaffolds_and_those_of_points_from_noise():
    for name, record in PRESETS.items():
        assert record.scaffold == (0.25 if name.startswith("antmaze-") else None)


@pytest.mark.parametrize("size", ["medium", "large"])
def test_chunks_of_explore_data_last_as_long_as_the_papers(size):
    record = preset(f"antmaze-{size}-explore-v0")
    assert record.horizon * record.stride == 192


def test_points_need_no_expert():
    assert all(not record.expert for name, record in PRESETS.items() if "pointmaze" in name)
    with pytest.raises(UserError, match="did you mean 'antmaze-giant-stitch-v0'"):
        preset("antmaze-gigant-stitch-v0")
