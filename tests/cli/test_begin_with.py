"""`compdiffuser train --begin-with`: what comes from the planner, what is told of the data, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from compdiffuser.artifact import CONFIG
from compdiffuser.cli import main
from compdiffuser.cli.sweeping import given, read_sweep
from compdiffuser.cli.train import Train
from compdiffuser.files import read_json
from compdiffuser.planning.checkpoint import load
from compdiffuser.presets import preset

pytestmark = pytest.mark.usefixtures("few_windows")
UMAZE = "robotics-pointmaze-umaze-v0"
SMALL = ["--width", "16", "--depth", "1"]
QUICK = ["--steps", "2", "--batch", "4", "--device", "cpu"]


def walks(name: str, shift: float = 0.0, episodes: int = 10, moved: int = 10) -> str:
    """Random walks of 40 states on a plane, the first `moved` of them somewhere else."""
    states = np.random.default_rng(0).uniform(-1, 1, (episodes, 40, 2)).cumsum(axis=1)
    states[:moved] += shift
    ends = np.tile(np.arange(40) == 39, episodes)
    np.savez(name, observations=states.reshape(-1, 2), actions=np.zeros((40 * episodes, 2)), terminals=ends)
    return name


@pytest.fixture(scope="module")
def first(tmp_path_factory, few_windows) -> str:
    """A small planner of random walks."""
    folder = tmp_path_factory.mktemp("first")
    data = walks(str(folder / "mine.npz"))
    chunks = ["--horizon", "16", "--overlap", "4", "--drop", "0.25"]
    assert main(["train", data, *chunks, *SMALL, *QUICK, "--out", str(folder / "first")]) == 0
    return str(folder / "first")


@pytest.mark.slow
def test_the_planner_alone_says_how_to_go_on(first, home, capsys):
    assert main(["train", walks("new.npz", 0.1), "--begin-with", first, *QUICK, "--json"]) == 0
    out, told = capsys.readouterr()
    cut = "--horizon 16 --overlap 4 --stride 1 --dims 0,1"
    assert f"note: training begins with 'first' of 2 updates, which has {cut}\n" in told
    assert "proposal" not in told
    assert json.loads(out)["out"] == "runs/new-compdiffuser"
    old, new = load(first), load("runs/new-compdiffuser")
    assert new.denoiser.config == old.denoiser.config
    assert new.normalizer == old.normalizer
    assert (new.preset.name, new.preset.chunks.horizon) == ("new", 16)
    assert new.record["objective"] == old.record["objective"]
    assert new.record["begun_with"]["planner"] == "first"
    again = ["train", "new.npz", "--begin-with", "runs/new-compdiffuser"]
    assert main([*again, *QUICK]) == 2  # whose folder is the usual one of these walks
    assert "which lies in 'runs/new-compdiffuser'; choose another --out" in capsys.readouterr().err
    asked = ["--preset", "default", "--horizon", "16", "--dims", "2", *SMALL, "--out", "other"]
    assert main([*again, *QUICK, *asked]) == 0
    record = load("other").record
    assert (record["begun_with"]["updates"], record["objective"]["drop"]) == (4, 0.15)


@pytest.mark.slow
def test_data_outside_the_limits_is_told(first, home, capsys):
    assert main(["train", walks("far.npz", 100.0, moved=1), "--begin-with", first, *QUICK]) == 0
    told = capsys.readouterr().err
    assert "note: 10% of the states lie outside the limits of 'first', as where agent " in told
    assert main(["train", walks("further.npz", 100.0), "--begin-with", first, *QUICK]) == 2
    told = capsys.readouterr().err
    assert "'first' was trained in another place or other units than this data: 100% of the states" in told
    assert "note: 100% of the states" not in told


@pytest.mark.slow
def test_a_monolithic_planner_goes_on_as_one(home, capsys):
    walks("mine.npz")
    plans = ["train", "mine.npz", "--method", "dd", *QUICK]
    assert main([*plans, "--horizon", "32", *SMALL]) == 0
    assert main([*plans, "--begin-with", "runs/mine-dd", "--out", "second"]) == 0
    assert load("second").preset == load("runs/mine-dd").preset
    assert main([*plans, "--begin-with", "runs/mine-dd", "--horizon", "24", "--out", "third"]) == 2
    assert "which has horizon 32, not 24" in capsys.readouterr().err
    assert main(["train", "mine.npz", "--begin-with", "runs/mine-dd", *QUICK]) == 2
    assert "which has method dd, not compdiffuser" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--width", "64"], f"the training begins with '{UMAZE}', which has width 256, not 64"),
        (["--set", "heads=8"], f"the training begins with '{UMAZE}', which has heads 4, not 8"),
        (["--patch", "7"], f"the training begins with '{UMAZE}', which has patch 8, not 7"),
        (["--architecture", "unet1d"], f"the training begins with '{UMAZE}', which has architecture dit1d, not unet1d"),
        (["--preset", "paper"], f"the training begins with '{UMAZE}', which has formulation default, not paper"),
        (["--stride", "2"], f"the training begins with '{UMAZE}', which has stride 1, not 2"),
        (["--dims", "3"], f"the training begins with '{UMAZE}', which has dims 0,1, not 0,1,2"),
        (["--method", "gcbc"], "--begin-with belongs to planners, not to gcbc"),
        (["--preset", "ours"], "unknown preset 'ours'"),
    ],
)
def test_contradictions_get_one_sentence(options, sentence, home, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.training.loop.Updater.update", lambda *given: pytest.fail("something is trained"))
    assert main(["train", walks("mine.npz"), "--begin-with", UMAZE, *QUICK, *options]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_planners_that_there_are_not_get_one_sentence(home, capsys):
    walks("mine.npz")
    Path("damaged").mkdir()
    Path("damaged", CONFIG).write_text('{"kind": "planner"')
    for name, sentence in {
        "pointmaze-gigant-stitch-v0": "unknown dataset 'pointmaze-gigant-stitch-v0'; did you mean",
        "runs/missing": "there is no checkpoint at 'runs/missing'",
        "damaged": f"'damaged/{CONFIG}' is not readable JSON",
        "pointmaze-3x3-seed-1-stitch": "no planner is shipped for 'pointmaze-3x3-seed-1-stitch'",
    }.items():
        assert main(["train", "mine.npz", "--begin-with", name, *QUICK]) == 2
        told = capsys.readouterr().err
        assert sentence in told
        assert told.count("\n") == 1


def test_a_shipped_planner_keeps_its_world_on_a_file_of_walks(home):
    asked = Train(walks("mine.npz"), begin_with=UMAZE, device="cpu").check()
    known = preset(UMAZE)
    assert (asked.name, asked.domain, asked.chunks) == ("mine", known.domain, known.chunks)
    _, _, recipe, _ = Train("mine.npz", begin_with=UMAZE, device="cpu")._planner_settings()
    assert (recipe.training.batch, recipe.training.steps, recipe.model.network.width) == (128, 6_000, 256)


def test_a_sweep_takes_planners_to_begin_with(home):
    walks("mine.npz")
    Path("s.toml").write_text(
        f"[train]\ndataset = 'mine.npz'\nbegin_with = '{UMAZE}'\nsteps = 2\ndevice = 'cpu'\n[grid]\nseed = [0, 1]\n"
    )
    runs = read_sweep(Path("s.toml"), Path("sweep").absolute())
    assert [given(run.train)["begin_with"] for run in runs] == [UMAZE, UMAZE]
    # The default recipe is a setting only where a planner would bring another one.
    assert given(Train("mine.npz", preset="default")) == given(Train("mine.npz"))
    assert given(Train("mine.npz", preset="default", begin_with=UMAZE))["preset"] == "default"


@pytest.mark.slow
def test_a_killed_command_continues_and_another_beginning_is_refused(first, home, monkeypatch, capsys):
    from compdiffuser.training.updater import Updater

    update, steps = Updater.update, []

    def counted(self, step, done):
        steps.append(step)
        if len(steps) == 3:
            raise InterruptedError
        update(self, step, done)

    monkeypatch.setattr(Updater, "update", counted)
    command = ["train", walks("new.npz"), "--steps", "4", "--batch", "4", "--device", "cpu", "--checkpoint-every", "1",
               "--out", "run", "--begin-with"]  # fmt: skip
    with pytest.raises(InterruptedError):
        main([*command, first])
    assert main([*command, first]) == 0
    assert steps == [0, 1, 2, 2, 3]
    assert read_json(f"run/{CONFIG}")["record"]["outcome"]["steps"] == 4
    other = ["train", "new.npz", *QUICK, "--begin-with", first, "--out", "other"]
    assert main(other) == 0
    capsys.readouterr()
    assert main([*command, "other"]) == 2
    assert "'run' holds a run that began with other weights; choose another folder" in capsys.readouterr().err
