"""How things move: each by itself, and only near the agent where it is the agent that moves them."""

import numpy as np
import pytest
import torch
from fetching import AHEAD, WORLD, checkpoint, normalized, recorded, windows

from compdiffuser.domains import PLANE, Group, Space
from compdiffuser.planning.recorded.calibration import LEVELS, Calibration
from compdiffuser.planning.recorded.moves import Moves, alone, measure_moves
from compdiffuser.planning.training import normalizer_of
from compdiffuser.types import Episodes


def per_metre() -> float:
    """Normalized units of a metre along x."""
    return float((normalized([1, 0, 0, 0]) - normalized([0, 0, 0, 0]))[0, 0])


def chunk(ant, ball) -> list[torch.Tensor]:
    """The paths [1, H, 2] of both, from places [H, 2] in metres."""
    both = normalized(*np.concatenate([np.broadcast_to(ant, (24, 2)), np.broadcast_to(ball, (24, 2))], axis=1))
    return list(WORLD.space.groups(both[None]).values())


def test_one_group_is_measured_as_before():
    single = Calibration((0.5,), (1.0,), tuple(np.linspace(0, 2, len(LEVELS))), reach=1.0, advance=0.5, step=0.1)
    assert single.moves == (Moves(1.0, 0.5, longest=0.1 * 3, gap=0.1 * 3),)
    assert [single.fewest_chunks(far) for far in (0.9, 1.1, 2.0)] == [1, 2, 3]
    assert set(single.to_dict()) == {"probes", "usual", "errors", "reach", "advance", "step"}
    assert Calibration.from_dict(single.to_dict()) == single


def test_a_ball_that_never_moves_may_lie_as_inexactly_as_plans_end():
    data = windows(seed=1)
    columns = [column for group in WORLD.space.positions[1:] for column in group.columns]
    data.states[:, columns] = data.states[0, columns]
    ball = measure_moves(data, data.sample(64, torch.Generator().manual_seed(0)), 8)[1]
    assert ball.longest == ball.gap > 0


def test_a_ball_is_carried_and_the_agent_is_near():
    usual = checkpoint().calibration
    agent, ball = usual.groups
    assert (agent.near, agent.carried, ball.carried) == (0.0, False, True)
    assert 0.8 * AHEAD < ball.usual / per_metre() < 2.2 * AHEAD, "y has a larger scale than x"
    assert ball.near / per_metre() < 3 * AHEAD
    assert Calibration.from_dict(usual.to_dict()) == usual


def test_what_moves_by_itself_is_near_everywhere():
    """Two agents that walk about, each on its own."""
    one, other = recorded(seed=1).observations, recorded(seed=2).observations
    both = np.concatenate([one[:, :2], other[:, :2]], axis=1)
    episodes = Episodes.from_terminals(both, both[:, :2], np.arange(len(both)) % 60 == 59)
    normalizer = normalizer_of(episodes, WORLD.space)
    data = type(windows()).from_episodes(episodes, WORLD.space, normalizer, 24)
    moves = measure_moves(data, data.sample(500, torch.Generator().manual_seed(0)), 8)
    assert not moves[1].carried


def test_a_ball_that_moves_alone_is_measured_and_one_that_trembles_is_not():
    moves = checkpoint().calibration.groups
    line = np.linspace([0, 0], [3, 0], 24)
    trembling = np.random.default_rng(0).normal(1, 0.05, (24, 2))
    behind = line - [AHEAD, 0]
    measured = [alone(chunk(ant, ball), moves).item() for ant, ball in (
        (behind, line), ([4, 4], line), ([4, 4], [1, 1]), ([4, 4], trembling),
    )]  # fmt: skip
    assert measured[0] == measured[2] == 0
    assert measured[1] == pytest.approx(3 * per_metre(), rel=1e-4)
    assert measured[3] < 0.6 * per_metre()


def test_what_the_agent_carried_in_between_does_not_count():
    """Alone at first, then taken along, then alone again."""
    moves = checkpoint().calibration.groups
    ball = np.concatenate([np.tile([0.0, 0.0], (8, 1)), np.linspace([0, 0], [4, 0], 8), np.tile([4.0, 0.0], (8, 1))])
    ant = np.concatenate([np.tile([4.0, 4.0], (8, 1)), ball[8:16] - [AHEAD, 0], np.tile([0.0, 4.0], (8, 1))])
    assert alone(chunk(ant, ball), moves).item() == 0


def test_the_groups_share_their_limits_and_a_single_one_keeps_its_own():
    rng = np.random.default_rng(0)
    states = rng.uniform([0, 0, 5, -3, 1], [4, 4, 9, 2, 2], (50, 5)).astype(np.float32)
    episodes = Episodes.from_terminals(states, states, np.arange(50) == 49)
    both = normalizer_of(episodes, Space((0, 1, 4, 2, 3), (Group("agent", (0, 1)), Group("ball", (3, 4)))))
    assert both.low[0] == both.low[3] == states[:, 0].min()
    assert both.high[1] == both.high[4] == states[:, 1].max()
    assert (both.low[2], both.high[2]) == (states[:, 4].min(), states[:, 4].max())
    assert normalizer_of(episodes, PLANE).low == tuple(states[:, :2].min(axis=0).tolist())
