"""Shipped planners are trained anew as their configs say."""

from dataclasses import replace

import pytest

from compdiffuser import artifact
from compdiffuser.cli import main
from compdiffuser.data import storage
from compdiffuser.files import pretrained_folder
from compdiffuser.packing import smaller
from compdiffuser.planning import checkpoint
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import preset
from compdiffuser.types import UserError

MEDIUM = "pointmaze-medium-stitch-v0"
SMALL = {"width": 16, "depth": 1, "heads": 2, "steps": 3, "batch": 4, "learning_rate": 1e-3}


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("retrain")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, few_windows):
    """Data of two episodes, and a small planner in eight bits that was trained on them."""
    folder = tmp_path_factory.mktemp("retrain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPDIFFUSER_HOME", str(folder / "home"))
        assert main(["data", "make", MEDIUM, "--episodes", "2"]) == 0
        usual = preset(MEDIUM)
        short = replace(usual, chunks=replace(usual.chunks, horizon=16, overlap=6))
        recipe = recipe_for("default", short).changed({**SMALL, "nothing": 0.1, "time_limit": 1e9})
        train_planner(
            storage.load(MEDIUM), short, str(folder / "run"), model=recipe.model, config=recipe.training,
            objective=recipe.objective, manifest=storage.origin_of(MEDIUM)[1], progress=False,
        )  # fmt: skip
    found = artifact.read(folder / "run")
    artifact.save(folder / "shipped" / MEDIUM, smaller(found))
    return folder


@pytest.fixture
def shipped(folder, tmp_path, monkeypatch, script):
    """The options that train that planner anew."""
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(folder / "home"))
    return script.Benchmark(
        shipped=folder / "shipped", out=tmp_path / "out", runs=tmp_path / "runs", device="cpu", workers=1
    )


def test_a_planner_comes_out_as_it_was(script, shipped, capsys):
    storage.file_of(MEDIUM).unlink()  # it is recorded again, from as many episodes
    script.retrain(MEDIUM, shipped)
    told = capsys.readouterr().out
    assert "3 updates" in told
    assert "the same data" in told
    one, other = (checkpoint.load(folder / MEDIUM) for folder in (shipped.shipped, shipped.out))
    assert all((a == b).all() for a, b in zip(one.denoiser.parameters(), other.denoiser.parameters(), strict=True))
    assert one.record["objective"] == other.record["objective"]
    assert other.record["objective"]["nothing"] == 0.1
    kinds = [{part.dtype for part in artifact.read(folder / MEDIUM).parts["model"].values()}
             for folder in (shipped.shipped, shipped.out)]  # fmt: skip
    assert kinds[0] == kinds[1]
    script.retrain(MEDIUM, shipped)
    assert "trained before" in capsys.readouterr().out


def test_another_seed_is_another_planner_of_other_data(script, shipped, capsys):
    assert main(["data", "make", MEDIUM, "--episodes", "3"]) == 0
    script.retrain(MEDIUM, replace(shipped, seed=1, updates=2))
    told = capsys.readouterr().out
    assert "2 updates" in told
    assert "other data" in told
    assert checkpoint.load(shipped.out / MEDIUM).record["training"]["seed"] == 1


def test_every_shipped_planner_can_be_trained_anew(script):
    folders = [path.parent for path in pretrained_folder().glob("*/config.json")]
    for folder in folders:
        planner = checkpoint.load(folder)
        assert script.settings(planner, script.Benchmark()).steps > 0
        script.ObjectiveConfig(**planner.record["objective"])
        assert planner.record["data"]["episodes"] == planner.preset.recording.episodes
    assert len(folders) > 20
    assert {script.bits_of(folder) for folder in folders} == {8, 16}


def test_a_planner_that_began_with_another_is_refused(script, shipped, tmp_path):
    found = checkpoint.load(shipped.shipped / MEDIUM)
    begun = replace(found, record={**found.record, "begun_with": {"planner": "other", "updates": 3, "seconds": 1.0}})
    begun.save(tmp_path / "shipped" / MEDIUM)
    with pytest.raises(UserError, match="began with the weights of 'other'"):
        script.retrain(MEDIUM, replace(shipped, shipped=tmp_path / "shipped"))


def test_an_unknown_planner_is_named(script, shipped, monkeypatch, capsys):
    monkeypatch.setattr(script.tyro, "cli", lambda kind: replace(shipped, only=("nowhere",)))
    with pytest.raises(SystemExit, match="nowhere"):
        script.main()
