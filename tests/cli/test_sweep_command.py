"""`compdiffuser sweep`: what it refuses before any work, and what it does again when it is started again."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from compdiffuser.artifact import CONFIG
from compdiffuser.cli import main
from compdiffuser.cli.driving import drive
from compdiffuser.cli.evaluate import Eval
from compdiffuser.cli.sweeping import read_sweep
from compdiffuser.files import read_json
from compdiffuser.presets import preset
from compdiffuser.training.updater import Updater

TRAIN = """
[train]
dataset = "mine.npz"
method = "gcbc"
steps = 150
checkpoint_every = 50
device = "cpu"
set = ["hidden=[8]", "batch=8"]
"""
SEEDS = "[grid]\nseed = [0, 1]\n"
UMAZE = "robotics-pointmaze-umaze-v0"


@pytest.fixture(autouse=True)
def mine(home) -> None:
    """Random walks."""
    rng = np.random.default_rng(0)
    states, ends = rng.normal(size=(400, 2)).cumsum(0), np.arange(400) % 40 == 39
    np.savez("mine.npz", observations=states, actions=rng.uniform(-1, 1, (400, 2)), terminals=ends)


def sweep(text: str, *options: str) -> int:
    Path("s.toml").write_text(text)
    return main(["sweep", "s.toml", *options])


def models(folder: str) -> list[str]:
    return sorted(read_json(path)["parts"]["model"]["sha256"] for path in Path(folder).glob(f"*/{CONFIG}"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("steps = = 3", "'s.toml' is no TOML: "),
        ("", "'s.toml' asks for no run; name a dataset in [train]"),
        (f"runs = 3\n{TRAIN}", "must be written as [[runs]]"),
        (f"runs = []\n{TRAIN}", "'s.toml' asks for no run"),
        ("[training]\nsteps = 3", "unknown table in 's.toml' 'training'; did you mean 'train'?"),
        ("[train]\nstep = 3", "unknown field of a training 'step'; did you mean 'steps'?"),
        (f"{TRAIN}[grid]\nlerning_rate = [1e-3]", "unknown field of a training 'lerning_rate'"),
        (f"{TRAIN}[grid]\nout = ['here']", "unknown field of a training 'out'"),
        (f"{TRAIN}[grid]\nseed = []", "seed in [grid] must be a list of at least one value, not []"),
        (f"{TRAIN}[grid]\nseed = 3", "seed in [grid] must be a list of at least one value, not 3"),
        (f"{TRAIN}[grid]\nseed = [1, 'two']", "seed must be a whole number, not 'two'"),
        (f"{TRAIN}[grid]\nsteps = [100, 200]", "gives steps twice for a run"),
        (f"{TRAIN}[grid]\nseed = [1, 2, 1]", "'s.toml' asks for a run twice: seed 1"),
        (f"{TRAIN}[grid]\nseed = [0, 7]\nclusters = [40, 30]", "--clusters belongs to an augmentation"),
        (f"{TRAIN}[grid]\naugment = ['none', 'both']", "augment must be 'none' or 'sa' or 'ga', not 'both'"),
        ("[train]\nsteps = 3", "a run has no dataset"),
        ("[train]\ndataset = 'missing.npz'", "missing.npz"),
        ("[train]\ndataset = 'pointmaze-tiny-v0'", "unknown dataset 'pointmaze-tiny-v0'"),
        (f"[train]\ndataset = '{UMAZE}'\n[grid]\nmethod = ['sac', 'gcbc']", "'sac'"),
        (f"[train]\ndataset = '{UMAZE}'\n[grid]\npreset = ['ours']", "unknown preset 'ours'"),
        (f"[train]\ndataset = '{UMAZE}'", f"dataset '{UMAZE}' is not made yet"),
        (f"{TRAIN}[eval]\nepisode = 3", "unknown field of an evaluation 'episode'; did you mean 'episodes'?"),
        (f"{TRAIN}[eval]\nepisodes = 3", "without a known environment"),
    ],
)
def test_mistakes_get_one_sentence_before_any_work(text, sentence, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.cli.sweeping.Run.perform", lambda run: pytest.fail("something is trained"))
    assert sweep(text) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not Path("runs").exists()


def test_evaluations_that_cannot_be_are_refused_too(monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.cli.sweeping.Run.perform", lambda run: pytest.fail("something is trained"))
    assert main(["data", "make", UMAZE, "--episodes", "2", "--workers", "1"]) == 0
    text = TRAIN.replace("mine.npz", UMAZE)
    assert sweep(f"{text}[eval]\ntasks = '1,9'") == 2
    assert "unknown task 9" in capsys.readouterr().err
    assert sweep(f"{text}[eval]\ncandidates = 3") == 2
    assert "--candidates belongs to planners, not to gcbc" in capsys.readouterr().err
    assert sweep(f"{text}[grid]\nseed = [0]", "--threads", "0") == 2
    assert "a run has at least 1 thread, not 0" in capsys.readouterr().err
    assert sweep(f"{text}[grid]\nseed = [0]", "--workers", "0") == 2
    assert "the number of workers is at least 1, not 0" in capsys.readouterr().err
    assert sweep(f"{text}[grid]\nseed = [0]", "--gpus", "0.5") == 2
    assert "a share of 0.5 GPUs is for --engine ray" in capsys.readouterr().err
    assert main(["sweep", "missing.toml"]) == 2
    assert "there is no file 'missing.toml'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_that_was_cut_off_goes_on_and_ends_as_an_undisturbed_one(monkeypatch, capsys):
    assert sweep(TRAIN + SEEDS, "--out", "undisturbed") == 0
    assert "seed" in capsys.readouterr().out
    update, calls = Updater.update, []

    def counted(updater, step, done):
        calls.append(step)
        if len(calls) == 6:  # the second run's third replay of fifty updates
            raise ZeroDivisionError
        update(updater, step, done)

    monkeypatch.setattr(Updater, "update", counted)
    with pytest.raises(ZeroDivisionError):
        sweep(TRAIN + SEEDS)
    assert [run["state"] for run in read_json("runs/s/sweep.json")["runs"]] == ["done", "not finished"]
    assert read_json("runs/s/sweep.json")["complete"] is False
    calls.clear()
    capsys.readouterr()
    assert sweep(TRAIN + SEEDS, "--json") == 0
    assert calls == [100]  # from the checkpoint
    told = json.loads(capsys.readouterr().out)
    assert told == read_json("runs/s/sweep.json")
    assert [run["settings"]["seed"] for run in told["runs"]] == [0, 1]
    assert {run["updates"] for run in told["runs"]} == {150}
    assert models("runs/s") == models("undisturbed")
    assert len(Path("runs/s/table.md").read_text().splitlines()) == 4
    # A seed more: those that are there stay.
    calls.clear()
    assert sweep(TRAIN + SEEDS.replace("1]", "1, 2]")) == 0
    assert calls == [0, 50, 100]
    assert len(models("runs/s")) == 3


@pytest.mark.slow
def test_a_run_that_fails_is_told_and_the_others_go_on(capsys):
    assert sweep(TRAIN.replace("steps", "log_every = 50\nsteps") + "[grid]\nlearning_rate = [1e30, 1e-3]") == 2
    told = capsys.readouterr()
    assert "training stopped" in told.err
    states = {run["settings"]["learning_rate"]: run["state"] for run in read_json("runs/s/sweep.json")["runs"]}
    assert states[1e-3] == "done"
    assert "with learning rate 1e+30" in states[1e30]


@pytest.mark.slow
def test_runs_are_evaluated_and_an_evaluation_that_changed_is_done_again(monkeypatch):
    assert main(["data", "make", UMAZE, "--episodes", "2", "--workers", "1"]) == 0
    text = TRAIN.replace("mine.npz", UMAZE).replace("150", "50") + "[eval]\nepisodes = 1\nseeds = 1\ntasks = '1'\n"
    assert sweep(text) == 0
    (run,) = read_json("runs/s/sweep.json")["runs"]
    assert run["episodes"] == 1
    result = read_json(Path("runs/s", run["folder"], "result.json"))
    assert result["evaluation"]["method"] == "gcbc"
    assert result["training"]["steps"] == 50
    monkeypatch.setattr(Updater, "update", lambda *given: pytest.fail("something is trained again"))
    assert sweep(text.replace("'1'", "'1,2'")) == 0
    assert read_json("runs/s/sweep.json")["runs"][0]["episodes"] == 2
    # The same episodes, seed by seed as a cluster drives them.
    options = Eval(str(Path("runs/s", run["folder"])), method="gcbc", tasks="1", episodes=1, seeds=2, workers=0)
    contestant, jobs = options.contestant(), [(options, seed, ()) for seed in (0, 1)]
    far = [drive(job) for job in jobs]
    for driven in far:
        contestant.add(driven)
    assert contestant.summary([driven.episodes for driven in far]) == options.measured()
    assert main(["eval", options.name, "--method", "gcbc", "--engine", "ray", "--png", "a.png"]) == 2


def test_the_example_is_a_sweep(monkeypatch):
    example = Path(__file__).parents[2] / "examples" / "sweep.toml"
    name = tomllib.loads(example.read_text())["train"]["dataset"]
    monkeypatch.setattr("compdiffuser.cli.train.Train.check", lambda train: preset(name))
    monkeypatch.setattr("compdiffuser.cli.sweeping._checksum", lambda dataset: "0")
    runs = read_sweep(example, Path("out"))
    assert len(runs) == 8
    assert {run.train.preset for run in runs} == {"default", "paper"}
    assert runs[0].evaluation.episodes == 20
