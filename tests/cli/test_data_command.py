"""`compdiffuser data`: make, info, plot, list."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from compdiffuser.cli import main
from compdiffuser.data.generate import make
from compdiffuser.plotting.mazes import WALL
from compdiffuser.presets import PRESETS


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made")
    names = ("pointmaze-medium-stitch-v0", "robotics-pointmaze-umaze-v0")
    return {name: make(name, 8, workers=1, out=folder / f"{name}.npz") for name in names}


def test_make_then_info_then_list(capsys):
    name = "robotics-pointmaze-umaze-v0"
    assert main(["data", "make", name, "--episodes", "4", "--workers", "1", "--seed", "3", "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["name"], manifest["episodes"], manifest["seed"]) == (name, 4, 3)
    assert Path(manifest["path"]).exists()

    assert main(["data", "info", name, "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["episodes"] == 4
    assert info["manifest"]["sha256"] == manifest["sha256"]
    assert main(["data", "info", name, "--split", "val", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 1

    assert main(["data", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(PRESETS)
    assert rows[name]["made"]
    assert rows[name]["seed"] == 3
    assert not rows["pointmaze-giant-stitch-v0"]["made"]


def test_what_takes_the_place_of_another_dataset_says_so(capsys):
    name = ["data", "make", "robotics-pointmaze-umaze-v0", "--workers", "1", "--episodes"]
    assert main([*name, "2"]) == 0
    assert main([*name, "2"]) == 0
    assert "take the place" not in capsys.readouterr().err
    assert main([*name, "3"]) == 0
    assert "3 episodes of seed 0 take the place of 2 of seed 0 in" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--episodes", "0"], ["--episodes", "3", "--workers", "0"]])
def test_what_is_refused_takes_the_place_of_nothing(wrong, made, capsys):
    name, file = "pointmaze-medium-stitch-v0", made["pointmaze-medium-stitch-v0"]
    assert main(["data", "make", name, "--out", str(file), *wrong]) == 2
    assert "take the place of" not in capsys.readouterr().err


def test_output_for_people(made, capsys):
    path = made["pointmaze-medium-stitch-v0"]
    assert main(["data", "info", str(path)]) == 0
    text = capsys.readouterr().out
    for part in ("8 episodes, 1,608 states", "[1608, 2]", "environment: pointmaze-medium-v0", "sha256: "):
        assert part in text
    assert main(["data", "list"]) == 0
    assert "pointmaze-giant-stitch-v0" in capsys.readouterr().out
    assert main(["data", "make", "pointmaze-medium-stitch-v0", "--episodes", "8", "--out", str(path)]) == 0
    assert "8 episodes, 1,608 states, sha256" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["pointmaze-medium-stitch-v0", "robotics-pointmaze-umaze-v0"])
def test_plots_are_small_pictures_with_walls_and_paths(made, home, name):
    assert main(["data", "plot", str(made[name]), "--png", "out/picture.png"]) == 0
    assert (home / "out/picture.png").stat().st_size < 150_000
    picture = Image.open(home / "out/picture.png").convert("RGB")
    assert len(picture.getcolors(1_000_000)) > 10
    wall = picture.getpixel((picture.width // 30, picture.height // 10))
    np.testing.assert_allclose(wall, ImageColor.getrgb(WALL), atol=2)


def test_data_of_ones_own_is_described_and_drawn_without_a_maze(home, capsys):
    rng = np.random.default_rng(0)
    terminals = np.arange(20) % 10 == 9
    np.savez("own.npz", observations=rng.normal(size=(20, 3)), actions=np.zeros((20, 1)), terminals=terminals)
    assert main(["data", "info", "own.npz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["manifest"] is None
    assert main(["data", "plot", "own.npz"]) == 0
    assert (home / "own.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["info", "pointmaze-gaint"], "unknown dataset 'pointmaze-gaint'; did you mean 'pointmaze-giant-stitch-v0'?"),
        (["plot", "pointmaze-giant-stitch-v0"], "is not made yet; make it with: compdiffuser data make"),
        (["make", "pointmaze-giant-stitch-v0", "--episodes", "0"], "the number of episodes is at least 1, not 0"),
        (["make", "robotics-pointmaze-umaze-v0", "--source", "official"], "has no official file"),
        (["make", "pointmaze-giant-stitch-v0", "--source", "official", "--seed", "7"], "--seed is for what"),
        (["expert", "ant", "--teacher", "x"], "the ant expert learns by itself, so 'x' has nobody to teach"),
        (["make", "pointmaze-giant-stitch-v0", "--expert", "ant"], "is recorded without an expert"),
        (["info", "missing.npz"], "there is no file missing.npz"),
    ],
)
def test_a_users_mistake_is_one_sentence_and_exit_code_2(arguments, sentence, capsys):
    assert main(["data", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("compdiffuser: ")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_the_installed_command_returns_the_exit_code():
    command = Path(sys.executable).with_name("compdiffuser")
    if not command.exists():
        pytest.skip("the package is not installed")
    for arguments, code in ((["data", "info", "nothing"], 2), (["data", "make"], 2), (["data", "list"], 0)):
        assert subprocess.run([command, *arguments], capture_output=True).returncode == code


def test_output_that_nobody_reads_to_its_end_is_no_failure():
    reading, writing = os.pipe()
    os.close(reading)
    program = "import sys; from compdiffuser.cli import main; sys.exit(main(['data', '--help']))"
    ended = subprocess.run([sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize("command", ["make", "info", "plot", "list"])
def test_help_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["data", command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "usage: compdiffuser data" in text
    assert command == "plot" or "JSON" in text
