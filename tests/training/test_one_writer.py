"""A folder is trained into, and a dataset recorded, by one process at a time."""

import pytest

from compdiffuser import files, runs
from compdiffuser.baselines.training import train_baseline
from compdiffuser.cli import main
from compdiffuser.data.generate import make
from compdiffuser.experts.training import train_expert
from compdiffuser.files import locked
from compdiffuser.following.heading_training import train_heading
from compdiffuser.following.inverse_dynamics import train_controller
from compdiffuser.planning.training import train_planner
from compdiffuser.types import UserError


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch):
    monkeypatch.setattr(files, "GRACE", 0.0)


@pytest.mark.parametrize(
    ("train", "given"),
    [
        (train_planner, (None, None)),
        (train_controller, (None, None)),
        (train_heading, (None, None)),
        (train_baseline, ("gcbc", None, None)),
        (train_expert, (None,)),
    ],
)
def test_a_folder_has_one_training(tmp_path, train, given):
    (tmp_path / "run").mkdir()
    with (
        locked(tmp_path / "run", "trains in"),
        pytest.raises(UserError, match=r"process \d+ on .* trains in '.*run' al"),
    ):
        train(*given, out=tmp_path / "run")


def test_a_dataset_has_one_recording(tmp_path, capsys):
    out = tmp_path / "d.npz"
    command = ["data", "make", "robotics-pointmaze-umaze-v0", "--episodes", "1", "--workers", "1", "--out", str(out)]
    with locked(out, "records"):
        assert main(command) == 2
    assert f"records '{out}' already; wait for its end" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [{"seed": 1.5}, {"seed": float("nan")}, {"episodes": 2.0}, {"episodes": True}])
def test_counts_and_seeds_of_a_recording_are_whole(tmp_path, wrong):
    with pytest.raises(UserError, match="is a whole number, not "):
        make("robotics-pointmaze-umaze-v0", **{"episodes": 1, "workers": 1, "out": tmp_path / "d.npz", **wrong})


def test_of_several_processes_the_first_holds_the_lock(tmp_path, monkeypatch):
    train = runs.only_writer(lambda out: (out / ".lock").exists())
    assert train(tmp_path)
    monkeypatch.setenv("RANK", "1")
    assert not train(tmp_path)


@pytest.mark.slow
def test_what_a_killed_recording_left_is_gone_once_the_dataset_is_there(tmp_path):
    """It may be killed between its last file and the end of its work folder; damaged shards are recorded again."""
    settings = {"episodes": 2, "workers": 1, "out": tmp_path / "d.npz"}
    make("robotics-pointmaze-umaze-v0", **settings)
    content = (tmp_path / "d.npz").read_bytes()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["d-val.json", "d-val.npz", "d.json", "d.npz"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *given, **named: None)
        (tmp_path / "d.npz").unlink()
        make("robotics-pointmaze-umaze-v0", **settings)
    (work,) = tmp_path.glob(".*.work")
    make("robotics-pointmaze-umaze-v0", **settings)
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    (tmp_path / "d.npz").unlink()
    work.mkdir()
    (work / "train-000000-2.npz").write_bytes(content[:300])
    make("robotics-pointmaze-umaze-v0", **settings)
    assert (tmp_path / "d.npz").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
