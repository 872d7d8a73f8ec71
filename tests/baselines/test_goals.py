import numpy as np
import pytest
import torch

from compdiffuser.baselines.goals import ACTOR_GOALS, VALUE_GOALS, Experience, GoalMix, Trajectories, hindsight, later
from compdiffuser.types import Episodes, UserError

LENGTHS = (300, 2, 1, 40)
N = sum(LENGTHS)


def numbered(lengths=LENGTHS, width: int = 1) -> Episodes:
    """Episodes whose states are their own row numbers, so that every row can be read off a batch."""
    terminals = np.zeros(sum(lengths), bool)
    terminals[np.cumsum(lengths) - 1] = True
    rows = np.arange(sum(lengths), dtype=np.float32)[:, None]
    return Episodes.from_terminals(np.hstack([rows + 1000 * d for d in range(width)]), rows / 10, terminals)


def trajectories(**options) -> Trajectories:
    return Trajectories.from_episodes(numbered(), **options)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_only_rows_with_a_next_state_are_drawn_and_all_of_them():
    data = trajectories()
    assert data.transitions.tolist() == [*range(299), 300, *range(303, 342)]
    assert data.last[[0, 298, 300, 302, 310]].tolist() == [299, 299, 301, 302, 342]
    assert data.first[[0, 298, 301, 302, 342]].tolist() == [0, 0, 300, 302, 303]
    drawn = data.draw((4, 5000), generator())
    assert sorted(set(drawn.flatten().tolist())) == data.transitions.tolist()


def test_episodes_are_drawn_alike_where_asked_for():
    data = trajectories()
    assert data.begins.tolist() == [0, 300, 303]
    drawn = data.draw((4, 20_000), generator(), by_episode=True).flatten()
    assert sorted(set(drawn.tolist())) == data.transitions.tolist()
    shares = torch.bincount(data.first[drawn], minlength=304)[data.begins] / len(drawn)
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), atol=0.01, rtol=0)
    within = torch.bincount(drawn, minlength=N)[303:342] * 39 / (len(drawn) / 3)
    torch.testing.assert_close(within, torch.ones(39), atol=0.2, rtol=0)


def test_episodes_with_gaps_between_them_are_packed():
    whole = numbered()
    gaps = Episodes(whole.observations, whole.actions, np.array([5, 303]), np.array([3, 4]))
    data = Trajectories.from_episodes(gaps)
    assert data.observations[:, 0].tolist() == [5, 6, 7, 303, 304, 305, 306]
    assert data.transitions.tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("mix", [VALUE_GOALS, ACTOR_GOALS, GoalMix(0.0, 1.0, 0.0), GoalMix(0.1, 0.0, 0.9)])
def test_goals_come_from_where_the_mix_says(mix):
    """From row 100 of 300, chance shares are known: a random row is the present one with probability 1/339."""
    data, count = trajectories(), 200_000
    rows = torch.full((1, count), 100)
    goals = hindsight(data, rows, mix, 0.99, generator())
    others = (goals > 299) | (goals < 100)
    share = 339 - 199  # transitions outside rows 100 … 298
    assert (goals == 100).float().mean().item() == pytest.approx(mix.current + mix.random / 339, abs=0.004)
    assert others.float().mean().item() == pytest.approx(mix.random * share / 339, abs=0.004)


def test_geometric_goals_have_the_discounts_distances():
    data, count, discount = trajectories(), 400_000, 0.9
    ahead = later(data, torch.zeros(1, count, dtype=torch.int64), torch.rand(1, count, generator=generator()), discount)
    for k in (1, 2, 5, 10):
        expected = (1 - discount) * discount ** (k - 1)
        assert (ahead == k).float().mean().item() == pytest.approx(expected, abs=0.003)
    assert ahead.float().mean().item() == pytest.approx(1 / (1 - discount), rel=0.02)
    # What lies beyond the end is the end: 41 steps or more from 258 on.
    near_end = torch.full((1, count), 258)
    ends = later(data, near_end, torch.rand(1, count, generator=generator(1)), discount) == 299
    assert ends.float().mean().item() == pytest.approx(discount**40, abs=0.003)


def test_uniform_goals_are_every_later_row_alike():
    data, count = trajectories(), 100_000
    goals = later(data, torch.full((1, count), 294), torch.rand(1, count, generator=generator()), None)
    shares = torch.bincount(goals.flatten() - 294, minlength=6) / count
    assert shares.tolist() == pytest.approx([0, 0.2, 0.2, 0.2, 0.2, 0.2], abs=0.006)


def test_a_batch_holds_transitions_and_their_goals():
    experience = Experience(trajectories())
    batch = experience.batch((3, 4000), VALUE_GOALS, ACTOR_GOALS, 0.99, generator())
    rows = batch.observations[..., 0]
    assert batch.observations.shape == (3, 4000, 1)
    assert torch.equal(batch.next_observations[..., 0], rows + 1)
    torch.testing.assert_close(batch.actions[..., 0], rows / 10)
    assert torch.equal(batch.reached.bool(), batch.value_goals[..., 0] == rows)
    assert 0.17 < batch.reached.mean() < 0.23
    # Every seed has a batch of its own, and the same generator gives the same one.
    assert not torch.equal(rows[0], rows[1])
    again = experience.batch((3, 4000), VALUE_GOALS, ACTOR_GOALS, 0.99, generator())
    assert all(torch.equal(one, other) for one, other in zip(batch, again, strict=True))


@pytest.mark.parametrize(("dims", "expected"), [((0, 1), [0, 1000]), ((0, 2), [0, 2000]), ((2,), [2000])])
def test_goals_may_be_some_of_the_dimensions(dims, expected):
    data = Trajectories.from_episodes(numbered(width=3), dims)
    batch = Experience(data).batch((1, 50), GoalMix(1.0, 0.0, 0.0), GoalMix(1.0, 0.0, 0.0), 0.99, generator())
    offsets = batch.value_goals - batch.observations[..., :1]
    assert (offsets == torch.tensor(expected, dtype=torch.float32)).all()


def test_subgoals_lie_some_steps_ahead_and_not_beyond_the_goal_or_the_end():
    experience = Experience(trajectories())
    mix = GoalMix(0.0, 0.5, 0.5, geometric=False)
    batch = experience.subgoal_batch((2, 5000), VALUE_GOALS, mix, 0.99, 25, generator())
    rows, subgoals, goals = (field[..., 0].long() for field in (batch.observations, batch.subgoals, batch.actor_goals))
    last = experience.data.last[rows]
    assert torch.equal(subgoals, torch.minimum(rows + 25, last))
    same_way = (goals >= rows) & (goals <= last)
    expected = torch.where(same_way, torch.minimum(subgoals, goals), subgoals)
    assert torch.equal(batch.waypoints[..., 0].long(), expected)
    assert torch.equal(batch.waypoint_goals, batch.waypoints)
    assert (expected < subgoals).float().mean() > 0.03


def test_another_sampler_takes_the_place_of_hindsight():
    seen = []

    def first_of_the_episode(data, rows, mix, discount, generator):
        seen.append((mix, discount))
        return data.first[rows]

    experience = Experience(trajectories(), first_of_the_episode)
    batch = experience.batch((1, 100), VALUE_GOALS, ACTOR_GOALS, 0.98, generator())
    assert seen == [(VALUE_GOALS, 0.98), (ACTOR_GOALS, 0.98)]
    assert set(batch.value_goals.flatten().tolist()) <= {0, 300, 303}


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.5), (-0.1, 1.0, 0.1), (0, 0, 0)])
def test_shares_that_are_none_are_named(shares):
    with pytest.raises(UserError, match="add up to 1, not"):
        GoalMix(*shares)


def test_data_that_cannot_be_used_is_named():
    with pytest.raises(UserError, match="an episode of at least 2 states"):
        Trajectories.from_episodes(numbered((1, 1)))
    with pytest.raises(UserError, match="there is no dimension 4"):
        trajectories(goal_dims=(0, 4))
