"""From a dataset to a result through the commands, and what they say to wrong input."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from short_ways import MEDIUM

from compdiffuser.artifact import Artifact
from compdiffuser.artifact import save as save_artifact
from compdiffuser.baselines import METHODS
from compdiffuser.baselines.checkpoint import load
from compdiffuser.baselines.goals import GoalMix
from compdiffuser.baselines.presets import config_for, goal_dims, parse_changes
from compdiffuser.baselines.training import train_baseline, train_config
from compdiffuser.cli import main
from compdiffuser.cli.evaluate import Eval
from compdiffuser.cli.train import Train
from compdiffuser.data import storage
from compdiffuser.domains import domain
from compdiffuser.presets import preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes, UserError

pytestmark = pytest.mark.slow

TINY = ("hidden=[16,16]", "batch=32")


def small(**changes) -> dict:
    options = {"method": "gcivl", "steps": 100, "set": TINY, "device": "cpu", "log_every": 50}
    return {**options, **changes}


@pytest.fixture(scope="module")
def folder(medium_file, tmp_path_factory):
    """Two seeds of a barely trained GCIVL, of a dataset whose environment is known."""
    out = tmp_path_factory.mktemp("runs") / "gcivl"
    config = config_for("gcivl", preset(MEDIUM), parse_changes("gcivl", TINY))
    train_baseline(
        "gcivl", storage.load(medium_file), preset(MEDIUM), out, config=config, training=train_config(config, 30),
        seeds=2, manifest=storage.manifest_of(medium_file), progress=False,
    )  # fmt: skip
    return out


def test_one_command_trains_and_another_evaluates(medium_file, tmp_path, capsys):
    out = tmp_path / "run"
    assert Train(str(medium_file), **small(seeds_at_once=3, out=out, json=True)).run() == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["steps"], outcome["out"]) == (100, str(out))
    checkpoint = load(out, "gcivl")
    assert checkpoint.seeds == (0, 1, 2)
    assert checkpoint.config.hidden == (16, 16)
    assert checkpoint.record["outcome"]["steps"] == checkpoint.record["updates"] == 100
    header, *lines = (out / "log.csv").read_text().splitlines()
    assert header == "step,loss,learning_rate,seconds,value,actor"
    assert [line.split(",")[0] for line in lines] == ["50", "100"]
    assert all(line.split(",")[2] == "0.0003" for line in lines)
    assert checkpoint.preset == preset(MEDIUM), "the file knows which dataset it is of"


def test_evaluation_gives_the_summary_of_planners_and_each_seed_its_weights(folder, capsys, tmp_path):
    command = Eval(
        str(folder),
        method="gcivl",
        tasks="1,2",
        episodes=1,
        workers=1,
        device="cpu",
        json=True,
        out=tmp_path / "r.json",
    )
    assert command.run() == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((tmp_path / "r.json").read_text())
    assert (result["dataset"], result["method"], result["data"]) == (MEDIUM, "gcivl", "regenerated")
    assert (result["seeds"], result["training_seeds"], result["updates"]) == ([0, 1], [0, 1], 50)
    assert (result["episodes"], result["steps_limit"]) == (4, 1000)
    assert result["settings"]["alpha"] == 10
    observation, goal = np.zeros((1, 2)), np.ones((1, 2))
    actions = []
    for seed in (0, 1, 2):
        policy = load(folder).policy(seed)
        policy.reset(observation, goal)
        actions.append(policy.act(observation, np.ones(1, bool)))
    assert not np.array_equal(actions[0], actions[1])
    assert np.array_equal(actions[0], actions[2])  # counted around


def test_tables_for_people_do_not_speak_of_planning(folder, capsys):
    assert Eval(str(folder), method="gcivl", tasks="1", episodes=1, seeds=1, workers=1, device="cpu").run() == 0
    printed = capsys.readouterr().out
    assert "% of goals reached" in printed
    assert "planning" not in printed


def test_a_run_continues_and_ends_as_if_it_had_not_stopped(medium_file, tmp_path):
    for out, steps in (("whole", (100,)), ("parts", (50, 100))):
        for number in steps:
            Train(str(medium_file), **small(steps=number, out=tmp_path / out, checkpoint_every=50)).run()
    whole, parts = load(tmp_path / "whole"), load(tmp_path / "parts")
    assert all(torch.equal(whole.weights[name], parts.weights[name]) for name in whole.weights)
    with pytest.raises(UserError, match=r"holds a run with alpha 10.*, not 1"):
        Train(str(medium_file), **small(steps=150, out=tmp_path / "parts", set=(*TINY, "alpha=1"))).run()
    with pytest.raises(UserError, match="holds a run with method gcivl, not gcbc"):
        Train(str(medium_file), **small(steps=150, out=tmp_path / "parts", method="gcbc")).run()


@pytest.mark.parametrize(("asked", "steps"), [(1, 50), (50, 50), (51, 100), (60_000, 60_000)])
def test_updates_are_whole_replays(asked, steps):
    training = train_config(config_for("gcbc", preset(MEDIUM)), asked)
    assert (training.steps, training.updates_per_replay, training.clip) == (steps, 50, None)


def test_a_run_continues_with_any_number_of_updates(medium_file, tmp_path):
    for asked, trained in ((20, 50), (60, 100), (130, 150)):
        Train(str(medium_file), **small(steps=asked, out=tmp_path)).run()
        assert load(tmp_path).record["updates"] == trained
    with pytest.raises(UserError, match="holds a run of 150 updates, more than 50; choose another folder or ask for"):
        Train(str(medium_file), **small(steps=50, out=tmp_path)).run()


def test_a_run_does_not_continue_on_other_data(medium, tmp_path):
    first, other, same_name = tmp_path / "one" / "medium.npz", tmp_path / "other.npz", tmp_path / "medium.npz"
    for path, episodes in ((first, medium), (other, medium[:100]), (same_name, medium[:100])):
        storage.save(episodes, path, {})
    Train(str(first), **small(steps=20, out=tmp_path / "run")).run()
    with pytest.raises(UserError, match="holds a run with dataset medium, not other"):
        Train(str(other), **small(steps=40, out=tmp_path / "run")).run()
    with pytest.raises(UserError, match="holds a run on other data of that name"):
        Train(str(same_name), **small(steps=40, out=tmp_path / "run")).run()


def test_goals_are_settings_too(medium_file, tmp_path):
    goals = 'actor_goals={"trajectory":0.25,"random":0.75}'
    Train(str(medium_file), **small(steps=1, out=tmp_path, set=(*TINY, goals))).run()
    # What is not named stays: later states come uniformly in the method's own mixture.
    assert load(tmp_path).config.actor_goals == GoalMix(trajectory=0.25, random=0.75, geometric=False)


def test_more_seeds_than_agents_are_told(folder, capsys):
    assert Eval(str(folder), method="gcivl", tasks="1", episodes=1, seeds=3, workers=1, device="cpu").run() == 0
    assert "agents trained: 2; the other 1 of 3 seeds repeat their weights" in capsys.readouterr().err


def test_an_older_version_of_a_method_is_named(folder, monkeypatch):
    monkeypatch.setitem(METHODS, "gcivl", METHODS["gcivl"]._replace(revision=2))
    with pytest.raises(UserError, match="was trained by another version of gcivl; train it anew"):
        load(folder)


def test_what_would_train_otherwise_than_asked_is_refused(medium, tmp_path):
    config = config_for("gcbc", preset(MEDIUM), {"hidden": (8,), "batch": 16})
    options = {"config": config, "progress": False}
    with pytest.raises(UserError, match=r"the method's batch is 16, not 1024; make loop settings with train_config"):
        train_baseline("gcbc", medium, preset(MEDIUM), tmp_path, training=TrainConfig(steps=10), **options)
    training = train_config(config, 100, checkpoint_every=75)
    with pytest.raises(UserError, match="agents after 75 updates cannot be kept where checkpoints come every 75 upd"):
        train_baseline("gcbc", medium, preset(MEDIUM), tmp_path, training=training, snapshots=(75,), **options)
    training = train_config(config, 100, checkpoint_every=50)
    for updates in (0, 150):
        with pytest.raises(UserError, match=f"agents are kept after 1 to 100 updates, .* not {updates}"):
            train_baseline("gcbc", medium, preset(MEDIUM), tmp_path, training=training, snapshots=(updates,), **options)
    for seed, seeds in ((-1, 2), (0, 1025), (2**63 - 1, 2)):
        unknown = replace(training, seed=seed)
        with pytest.raises(UserError, match="seeds are 1 to 1024 different whole numbers of at least 0, not"):
            train_baseline("gcbc", medium, preset(MEDIUM), tmp_path, training=unknown, seeds=seeds, **options)
    wild = replace(medium, actions=2.5 * medium.actions)
    with pytest.raises(UserError, match=r"gcbc acts within -1 and 1, and actions of this dataset reach 2\.5"):
        train_baseline("gcbc", wild, preset(MEDIUM), tmp_path, training=training, **options)


def test_younger_agents_are_kept(medium, tmp_path):
    config = config_for("gcbc", preset(MEDIUM), {"hidden": (8,), "batch": 16})
    training = train_config(config, 200, checkpoint_every=50)
    options = {"config": config, "training": training, "progress": False, "snapshots": (50, 150)}
    trained = train_baseline("gcbc", medium, preset(MEDIUM), tmp_path, **options)
    assert sorted(path.name for path in tmp_path.glob("after-*")) == ["after-150", "after-50"]
    younger = load(tmp_path / "after-50", "gcbc")
    assert younger.record["updates"] == 50
    name = next(iter(trained.weights))
    assert not torch.equal(younger.weights[name], trained.weights[name])


def without_actions(actions) -> Episodes:
    states = np.zeros((20, 2), np.float32)
    states[:, 0] = np.arange(20)
    return Episodes(states, actions, np.array([0]), np.array([20]))


@pytest.mark.parametrize(
    ("actions", "sentence"),
    [
        (np.zeros((20, 0), np.float32), "gcbc learns from actions, and this data has none"),
        (np.zeros((20, 2), np.float32), "gcbc learns from actions, and those of this dataset are all 0"),
    ],
)
def test_data_without_actions_are_refused(actions, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        train_baseline("gcbc", without_actions(actions), preset(MEDIUM), tmp_path)


def test_a_file_without_actions_is_refused(tmp_path, capsys):
    np.savez(tmp_path / "mine.npz", observations=np.zeros((5, 2), np.float32), terminals=np.eye(5)[-1].astype(bool))
    assert main(["train", str(tmp_path / "mine.npz"), "--method", "gcbc"]) == 2
    error = capsys.readouterr().err.strip()
    assert "gcbc learns from actions, and this data has none" in " ".join(error.split())


def test_goals_and_observations_of_the_wrong_size_are_named(folder):
    policy = load(folder).policy()
    with pytest.raises(UserError, match="a goal has 2 numbers for this policy, not 5"):
        policy.reset(np.zeros((3, 2)), np.zeros((3, 5)))
    with pytest.raises(UserError, match="an observation has 2 numbers for this policy, not 4"):
        policy.reset(np.zeros((3, 4)), np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["eval", "{folder}", "--method", "hiql"], "holds a checkpoint of gcivl, not of hiql"),
        (["eval", "{folder}"], "holds a checkpoint of gcivl; evaluate it with --method gcivl"),
        (
            ["eval", "pointmaze-giant-stitch-v0", "--method", "qrl"],
            "'runs/pointmaze-giant-stitch-v0-qrl'; train one with: compdiffuser train pointmaze-giant-stitch-v0 --m",
        ),
        (["eval", "runs/nowhere", "--method", "qrl"], "there is no baseline at 'runs/nowhere'"),
        (["eval", "runs/nowhere"], "there is no checkpoint at 'runs/nowhere'"),
        (["plan", "{folder}", "--start", "0,0", "--goal", "4,0"], "holds a baseline, not a planner"),
        (["train", MEDIUM, "--method", "qrl", "--set", "batch=8", "--set", "alpha=1"], "--set is given twice; give it"),
        (["train", MEDIUM, "--method", "qrl", "--batch", "8", "--set", "batch=16"], "batch is given twice, 8 and by"),
        (["train", MEDIUM, "--method", "qrl", "--set", "alpha=1", "alpha=2"], "alpha is given twice by --set"),
        (["train", MEDIUM, "--method", "qrl", "--set", "alpha=" + 3_000 * "["], "setting 'alpha' of qrl cannot be"),
        (["train", MEDIUM, "--method", "qrl", "--set", 'actor_goals={"random":1}'], "shares of goals are at least 0"),
        (["train", MEDIUM, "--method", "qrl", "--set", 'actor_goals={"far":1}'], "setting 'actor_goals' of qrl cannot"),
        (["eval", "{folder}", "--method", "gcvil"], "unknown method 'gcvil'; did you mean 'gcivl'?"),
        (["eval", "{folder}", "--method", "gcivl", "--no-replan"], "--replan belongs to planners, not to gcivl"),
        (["eval", "{folder}", "--method", "gcivl", "--scaffold", "0.25"], "--scaffold belongs to planners, not to"),
        (["train", MEDIUM, "--method", "hqil"], "unknown method 'hqil'; did you mean 'hiql'?"),
        (["train", MEDIUM, "--method", "compdifuser"], "did you mean 'compdiffuser'?"),
        (["train", MEDIUM, "--method", "gcbc", "--horizon", "8"], "--horizon belongs to planners, not to gcbc"),
        (["train", MEDIUM, "--seeds-at-once", "3"], "--seeds-at-once belongs to baselines, not to compdiffuser"),
        (["train", MEDIUM, "--method", "qrl", "--set", "beta=1"], "qrl has no setting 'beta'; it has learning_rate"),
        (["train", MEDIUM, "--method", "rvs", "--set", "schedule=step"], "unknown schedule 'step'; choose cosine or"),
        (["train", MEDIUM, "--method", "qrl", "--set", "alpha=x"], "setting 'alpha' of qrl cannot be 'x'"),
        (["train", MEDIUM, "--method", "qrl", "--set", "batch=2.5"], "setting 'batch' of qrl cannot be '2.5'"),
        (["train", MEDIUM, "--method", "qrl", "--set", "batch=Infinity"], "'batch' of qrl cannot be 'Infinity'"),
        (["train", MEDIUM, "--method", "qrl", "--set", "alpha=true"], "setting 'alpha' of qrl cannot be 'true'"),
        (["train", MEDIUM, "--method", "dt", "--set", 'by_episode="false"'], "setting 'by_episode' of dt cannot be"),
        (["train", MEDIUM, "--method", "qrl", "--set", "latent=20"], "a latent of 20 numbers cannot be divided"),
        (
            ["train", MEDIUM, "--method", "gcbc", "--set", "hidden=[]"],
            "one or more whole numbers of at least 1, not []",
        ),
    ],
)
def test_wrong_input_is_one_sentence(folder, capsys, arguments, sentence):
    assert main([argument.replace("{folder}", str(folder)) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_a_planners_checkpoint_is_no_baseline(tmp_path):
    save_artifact(tmp_path, Artifact("planner", 2, {"record": {"method": "compdiffuser"}}, {}))
    with pytest.raises(UserError, match="holds a checkpoint of compdiffuser, not of gcbc"):
        load(tmp_path, "gcbc")
    with pytest.raises(UserError, match="holds a planner, not a baseline"):
        load(tmp_path)


def test_damaged_checkpoints_are_named(folder, tmp_path):
    import shutil

    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"model.safetensors' is corrupt"):
        load(copy)
    config = json.loads((copy / "config.json").read_text())
    shutil.copy(folder / "model.safetensors", copy)
    (copy / "config.json").write_text(json.dumps({**config, "seeds": [0]}))
    with pytest.raises(UserError, match="another network"):
        load(copy)
    del config["goal_dims"]
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="does not describe a baseline: 'goal_dims'"):
        load(copy)


def test_settings_follow_the_dataset():
    medium, giant = preset(MEDIUM), preset("pointmaze-giant-stitch-v0")
    assert config_for("gcivl", medium).discount == 0.99
    assert config_for("gcivl", giant).discount == 0.995
    assert (config_for("qrl", medium).alpha, config_for("crl", medium).alpha) == (0.0003, 0.03)
    assert config_for("hiql", medium, {"alpha": 7}).alpha == 7
    # Where tasks ask for a position and observations have velocities too, goals are positions.
    robotics = preset("robotics-pointmaze-umaze-v0")
    assert goal_dims(robotics, 4, whole=False) == (0, 1)
    assert goal_dims(robotics, 4, whole=True) == goal_dims(medium, 4, whole=False) == (0, 1, 2, 3)


def test_families_of_environments_have_settings_of_their_own():
    ant, explore = preset("antmaze-medium-stitch-v0"), preset("antmaze-medium-explore-v0")
    humanoid = replace(ant, domain=domain("humanoidmaze-medium"))
    assert [config_for("gciql", record).alpha for record in (ant, explore, humanoid)] == [0.3, 0.01, 0.1]
    assert config_for("hiql", humanoid).subgoal_steps == 100
    assert config_for("hiql", humanoid).discount == 0.995
    assert config_for("crl", explore).actor_goals.random == 1.0
    assert config_for("gcbc", explore).actor_goals.trajectory == 1.0
