"""The comparison with OGBench's agents, without them: names, shapes and measures, on agents that are made up here."""

import numpy as np
import pytest
import torch

from compdiffuser.baselines import METHODS, Sizes
from compdiffuser.baselines.goals import Experience, GoalMix, Trajectories
from compdiffuser.baselines.presets import config_for
from compdiffuser.presets import preset
from compdiffuser.types import UserError

ALL = ("gcivl", "gciql", "qrl", "crl", "gcbc", "hiql")
LIST = """# pointmaze-medium-stitch-v0 (GCIVL)
python main.py --agent=agents/gcivl.py --env_name=pointmaze-medium-stitch-v0 --agent.actor_p_trajgoal=0.5
python main.py --agent=agents/gcivl.py --env_name=pointmaze-giant-stitch-v0 --agent.alpha=3.0
python main.py --agent=agents/gcivl.py --env_name=another-maze-v0 --agent.alpha=1.0
"""


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("against_agents")


@pytest.fixture
def names(benchmark_script):
    return benchmark_script("translating")


def small(method: str):
    config = config_for(method, preset("pointmaze-medium-stitch-v0"), {"hidden": (8, 6), "batch": 4})
    return METHODS[method].agent(config, Sizes(4, 3, 4), (0,))


def as_ogbench(weights, names, method: str) -> dict:
    """The weights of an agent of ours, nested as OGBench nests them: ensembles lead, singles have no such dimension."""
    params: dict = {}
    for name, place in (names.NETWORKS[method] | ({} if method == "hiql" else names.ACTOR)).items():
        *keys, last = f"modules_{place}".split("/")
        node = params
        for key in keys:
            node = node.setdefault(key, {})
        if name in weights:
            node[last] = weights[name][0].numpy()
            continue
        count = sum(key.startswith(f"{name}.layers.") for key in weights) // 2
        layers = {}
        for number in range(count):
            weight, bias = (weights[f"{name}.layers.{number}.{part}"][0].numpy() for part in ("weight", "bias"))
            copies = len(weight) > 1
            layers[f"Dense_{number}"] = {
                "kernel": weight if copies else weight[0], "bias": bias[:, 0] if copies else bias[0, 0]
            }  # fmt: skip
            layers[f"LayerNorm_{number}"] = {"scale": np.ones(1), "bias": np.zeros(1)}
        if "actor" in last:
            layers = {"mean_net": layers.pop(f"Dense_{count - 1}"), "actor_net": layers}
        node[last] = {**node.get(last, {}), **layers}
    return params


@pytest.mark.parametrize("method", ALL)
def test_every_weight_has_a_place_with_ogbench(names, method):
    weights = small(method).double().state_dict()
    found = names.weights_of(as_ogbench(weights, names, method), method)
    assert found.keys() == weights.keys()
    for name, value in weights.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("method", ALL)
def test_a_batch_is_filled_by_name(script, names, method):
    agent = small(method)
    data = Trajectories.from_episodes(script.numbered_walks(2))
    kind = type(agent.draw(Experience(data), torch.Generator()))
    plain = {"observations": 1, "next_observations": 2, "actions": 3, "value_goals": 4, "actor_goals": 5}
    high = {"low_actor_goals": 6, "high_actor_goals": 7, "high_actor_targets": 8}
    drawn = {name: np.full((2, 3), float(number)) for name, number in (plain | high).items()}
    del drawn["actor_goals" if method == "hiql" else "high_actor_goals"]
    batch = names.batch_of({**drawn, "masks": np.array([1.0, 0.0])}, kind)
    seen = {name: value[0, 0, 0].item() for name, value in batch._asdict().items() if name != "reached"}
    assert seen["observations"] == 1
    assert seen.get("actor_goals", seen.get("goals")) == (7 if method == "hiql" else 5)
    if method == "hiql":
        assert (seen["subgoals"], seen["waypoints"], seen["waypoint_goals"]) == (6, 8, 8)
    if "reached" in kind._fields:
        assert batch.reached.tolist() == [[0, 1]]


def test_settings_that_differ_are_named(script, tmp_path, capsys):
    with pytest.raises(UserError, match=f"'{tmp_path}' is no checkout of OGBench: it has no impls/hyperparameters"):
        script.other_settings("gcivl", tmp_path, {})
    (tmp_path / "impls").mkdir()
    (tmp_path / "impls" / "hyperparameters.sh").write_text(LIST)
    defaults = {"lr": 3e-4, "value_hidden_dims": [512, 512, 512], "actor_p_trajgoal": 1.0, "discount": 0.995}
    assert script.other_settings("gcivl", tmp_path, defaults) == [
        "pointmaze-medium-stitch-v0: discount is 0.995 there and 0.99 here",
        "pointmaze-giant-stitch-v0: alpha is 3.0 there and 10 here",
        "pointmaze-giant-stitch-v0: actor_p_trajgoal is 1.0 there and 0.5 here",
    ]
    assert "alpha is 3.0 there" in capsys.readouterr().out
    assert script.other_settings("hiql", tmp_path, defaults) == []


def test_how_goals_are_drawn_does_not_matter_where_none_are(names):
    explore = config_for("gcivl", preset("antmaze-medium-explore-v0"))
    told = names.settings_of(explore)
    assert "actor_geom_sample" not in told
    assert told["actor_p_randomgoal"] == 1
    assert told["value_geom_sample"] is True


@pytest.mark.parametrize("first", [True, False])
def test_targets_move_before_an_update_where_asked_for(script, first):
    agent = small("gcivl")
    data = Experience(Trajectories.from_episodes(script.numbered_walks(2)))
    learner = script.Fed(agent, targets_first=first)
    learner.batch = agent.draw(data, torch.Generator().manual_seed(0))
    training = script.train_config(agent.config, 1, updates_per_replay=1)
    script.Updater(learner, training, torch.device("cpu")).update(0, 0.0)
    weights, targets = (list(network.parameters()) for network in (agent.values, agent.targets))
    begun = small("gcivl").targets.parameters()
    for weight, target, old in zip(weights, targets, begun, strict=True):
        torch.testing.assert_close(target, old if first else old.lerp(weight, 0.005))
        assert not torch.equal(weight, old)


def test_the_furthest_of_all_counts(script):
    found = {"one": torch.tensor([1.0, 2.0]), "two": torch.tensor([2.0])}
    assert script.furthest(found, {**found, "two": torch.tensor([4.0]), "three": torch.zeros(1)}) == 0.5


def test_distances_of_goals_can_be_read_off_batches(script):
    """Two actors' goals: always 10 steps ahead or at the end, and any of all states."""
    data = script.numbered_walks(20)
    pair = object.__new__(script.Pair)
    pair.states = len(data.observations)
    experience = Experience(Trajectories.from_episodes(data))
    batch = experience.subgoal_batch(
        (1, 20_000), GoalMix(), GoalMix(trajectory=0.0, random=1.0), 0.99, 10, torch.Generator().manual_seed(0)
    )
    near, far = pair._shares(batch, "subgoals"), pair._shares(batch, "actor_goals")
    assert near[0] == 0  # none lies elsewhere
    assert near[10].item() == pytest.approx(9 / 200, abs=0.01)
    assert near[11] == 1
    assert far[0].item() == pytest.approx(1 - 0.5 / 20, abs=0.01)
