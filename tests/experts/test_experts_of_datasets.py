"""Datasets and the experts that record them: what is missing or does not fit is told, and which command makes it."""

import pytest
from small_experts import tiny, untrained

from compdiffuser.cli import main
from compdiffuser.experts.policy import save_expert

ARENA, HUMANOID = "antsoccer-arena-stitch-v0", "humanoidmaze-medium-stitch-v0"


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder that takes the place of the shipped experts."""
    monkeypatch.setattr("compdiffuser.experts.policy.pretrained_folder", lambda: tmp_path)
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    return tmp_path / "experts"


def refused(capsys, *command) -> str:
    assert main(["data", "make", *command, "--episodes", "1", "--workers", "1"]) == 2
    return capsys.readouterr().err


def test_a_dataset_without_its_experts_says_which_command_makes_them(shipped, capsys):
    assert "no ant expert is shipped; train one with: compdiffuser data expert ant\n" in refused(capsys, ARENA)
    config = tiny("ant")
    save_expert(shipped / "ant", untrained(config)[1], config, {})
    assert "no ball expert is shipped; train one with: compdiffuser data expert ball\n" in refused(capsys, ARENA)
    told = "train one with: compdiffuser data expert humanoid-student --teacher FOLDER"
    assert f"no humanoid-student expert is shipped; {told}" in refused(capsys, HUMANOID)


@pytest.mark.parametrize(
    ("theirs", "dataset", "needed"),
    [("humanoid-student", ARENA, "'ant' or 'ant-ball'"), ("ball", HUMANOID, "'humanoid'")],
)
def test_the_expert_of_another_body_is_refused(theirs, dataset, needed, shipped, capsys, tmp_path):
    config = tiny(theirs)
    save_expert(tmp_path / "strange", untrained(config)[1], config, {})
    told = refused(capsys, dataset, "--expert", str(tmp_path / "strange"))
    assert f"moves the body '{config.body}'; '{dataset}' needs one for {needed}" in told
