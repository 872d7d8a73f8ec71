import numpy as np
import pytest
import torch
from test_agents import NoSynchronization

from compdiffuser.baselines.augmented import KINDS, Augmentation, Stitched
from compdiffuser.baselines.checkpoint import load
from compdiffuser.baselines.goals import LATER, VALUE_GOALS, GoalMix, Trajectories
from compdiffuser.cli.contestants import baseline_identity
from compdiffuser.cli.evaluate import Eval
from compdiffuser.cli.train import Train
from compdiffuser.data.augment import Clusters
from compdiffuser.types import Episodes, UserError

PLACES = {"A": (0, 0), "B": (10, 0), "C": (20, 0), "D": (0, 10), "E": (10, 10)}
WAYS = ("AAABBB", "BBBCCC", "DDDEEE", "AAAAAA", "CCCBBB")


def places(ways=WAYS, seed: int = 0) -> Trajectories:
    """Episodes that jump between places far apart; states scatter a little around each."""
    centers = np.array([PLACES[place] for way in ways for place in way], np.float32)
    states = centers + np.random.default_rng(seed).normal(0, 0.1, centers.shape).astype(np.float32)
    terminals = np.concatenate([np.arange(len(way)) == len(way) - 1 for way in ways])
    return Trajectories.from_episodes(Episodes.from_terminals(states, np.ones_like(states), terminals))


def goals_from(sampler, data: Trajectories, row: int, mix: GoalMix = LATER, count: int = 6000) -> torch.Tensor:
    return sampler(data, torch.full((1, count), row), mix, 0.99, torch.Generator().manual_seed(row))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_episodes_are_joined_inside_one_cluster_and_nowhere_else(kind):
    data, text = places(), "".join(WAYS)
    sampler = Augmentation(kind, clusters=5).sampler(data)
    last = data.last.tolist()
    for row in data.transitions.tolist():
        own = set(range(row + 1, last[row] + 1))
        entries = {e for e in range(len(text)) if text[e] in {text[waypoint] for waypoint in own}}
        allowed = own.union(*(range(entry, last[entry] + 1) for entry in entries))
        assert set(goals_from(sampler, data, row).tolist()) == allowed
    # From A by way of B to C, which no single episode shows; never to D or E, which none leads to.
    assert {text[goal] for goal in goals_from(sampler, data, 0)} == {"A", "B", "C"}
    assert {text[goal] for goal in goals_from(sampler, data, text.index("D"))} == {"D", "E"}


def test_as_many_goals_are_moved_as_the_probability_says():
    data = places()
    for probability in (0.0, 0.5, 1.0):
        sampler = Augmentation("ga", 5, probability).sampler(data)
        goals = goals_from(sampler, data, 12)  # D → E: the other rows of E are its own
        assert (goals <= 17).all()
        moved = goals_from(sampler, data, 2)  # A → B: 3 of 9 entries to B are its own, the others lead elsewhere
        assert (moved > 5).float().mean().item() == pytest.approx(probability * 2 / 3, abs=0.03)


def test_only_goals_later_in_the_same_episode_are_moved():
    """Present states and random ones stay: from rows of A alone no other episode's goal comes but by chance."""
    data = places()
    sampler = Augmentation("sa", 5, 1.0).sampler(data)
    assert (goals_from(sampler, data, 0, GoalMix(current=1.0, trajectory=0.0)) == 0).all()
    goals = goals_from(sampler, data, 0, VALUE_GOALS)
    assert (goals == 0).float().mean() > 0.15
    apart = "".join(WAYS).index("D")
    assert ((goals >= apart) & (goals < apart + 5)).float().mean().item() == pytest.approx(0.3 * 5 / 25, abs=0.02)


def test_states_ask_for_velocities_too_and_goals_do_not():
    """Two episodes cross the same place in opposite directions: (position, velocity)."""
    states = np.array([[0, 5], [5, 5], [10, 5], [10, -5], [5, -5], [0, -5]], np.float32).repeat(2, 0)
    states[:, 0] += np.tile([0.0, 0.1], 6)
    terminals = np.arange(12) % 6 == 5
    data = Trajectories.from_episodes(Episodes.from_terminals(states, states, terminals), goal_dims=(0,))
    by_state, by_goal = (Augmentation(kind, n, 1.0).sampler(data) for kind, n in (("sa", 6), ("ga", 3)))
    assert goals_from(by_state, data, 0).max() <= 5
    assert goals_from(by_goal, data, 0).max() > 5


def test_sampling_can_be_captured_and_follows_the_generator():
    data = places()
    sampler = Stitched(Clusters.fit(data.observations, 5))
    rows = torch.zeros(2, 50, dtype=torch.int64)
    with NoSynchronization():
        once = sampler(data, rows, VALUE_GOALS, 0.99, torch.Generator().manual_seed(1))
    assert torch.equal(once, sampler(data, rows, VALUE_GOALS, 0.99, torch.Generator().manual_seed(1)))
    assert not torch.equal(once[0], once[1])


def test_settings_that_cannot_be_are_named():
    with pytest.raises(UserError, match="unknown augmentation 'ta'; choose none, sa or ga"):
        Augmentation("ta")
    with pytest.raises(UserError, match=r"between 0 and 1, not at 1\.5"):
        Augmentation("sa", probability=1.5)
    with pytest.raises(UserError, match="40 clusters were asked for, but there are only 30 states"):
        Augmentation("sa").sampler(places())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"augment": "sa"}, "--augment belongs to baselines, not to compdiffuser"),
        ({"clusters": 9}, "--clusters belongs to baselines, not to compdiffuser"),
        ({"clusters": 9, "method": "rvs"}, "--clusters belongs to an augmentation, and --augment is none"),
        ({"overlap": 9, "method": "dd"}, "--overlap belongs to composed chunks, and dd plans in one"),
    ],
)
def test_options_without_effect_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        Train("robotics-pointmaze-umaze-v0", **options).run()


def test_the_command_trains_with_an_augmentation_and_results_say_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    states = np.random.default_rng(0).uniform(-1, 1, (60, 2)).astype(np.float32)
    np.savez("mine.npz", observations=states, actions=states, terminals=np.arange(60) % 20 == 19)
    small = {"method": "rvs", "set": ("hidden=[8]",), "steps": 2, "device": "cpu", "augment": "ga"}
    with pytest.raises(UserError, match="61 clusters were asked for, but there are only 60 states"):
        Train("mine.npz", clusters=61, **small).run()
    assert Train("mine.npz", **small).run() == 0
    checkpoint = load("runs/mine-rvs-ga", "rvs")
    assert checkpoint.record["clusters"] == 40
    assert baseline_identity(checkpoint)["augment"] == "ga"
    with pytest.raises(UserError, match="trained on data without a known environment"):
        Eval("runs/mine-rvs-ga", method="rvs", device="cpu").run()
