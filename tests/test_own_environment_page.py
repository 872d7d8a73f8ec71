"""`docs/own-environment.md`, executed from top to bottom at small size: its Python, and its commands."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import compdiffuser
from compdiffuser import Domain
from compdiffuser.cli import main
from compdiffuser.domains import DOMAINS
from compdiffuser.presets import PRESETS

pytestmark = pytest.mark.usefixtures("few_windows")
ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```(python|bash)\n(.*?)```", (ROOT / "docs" / "own-environment.md").read_text(), flags=re.S)
SMALL = {"--steps": "12", "--batch": "16", "--width": "32", "--depth": "1"}
"""What training is given in the place of what stands there."""
FEWER = {
    "range(200)": "range(30)", "range(300)": "range(3)", '"n_candidates": 16': '"n_candidates": 2',
    "plan((1, 1), (9, 9))": "plan((1, 1), (9, 9), n_candidates=2, n_chunks=2)",
}  # fmt: skip
"""Loops and numbers of the page that a test shortens."""


def command(line: str) -> list[str]:
    """The arguments of a line of the page, small."""
    words = shlex.split(line, comments=True)
    world = [] if words[0] == "compdiffuser" else ["--domain", words[1]]
    words = words[1:] if not world else words[2:]
    if words[:1] == ["train"]:
        for option, value in SMALL.items():
            if option in words:
                words[words.index(option) + 1] = value
            else:
                words += [option, value]
    if words[0] in ("plan", "eval"):
        words += ["--chunks", "2", "--steps", "2", "--repeats", "1", "--scaffold", "none"]
    if words[0] == "eval":
        words += ["--no-replan", "--workers", "0"]
    if words[:2] == ["data", "make"]:
        words[words.index("--episodes") + 1] = "30"
    return [*world, *words]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    domains, presets = set(DOMAINS), set(PRESETS)
    yield tmp_path
    for known, before in ((DOMAINS, domains), (PRESETS, presets)):
        for name in set(known) - before:
            del known[name]
    sys.modules.pop("corridor", None)


@pytest.mark.slow
def test_the_page_runs(folder, capsys):
    names = {"np": np, "Domain": Domain, "Building": object, "domain": Domain("bend"), "compdiffuser": compdiffuser}
    ran = []
    for kind, block in BLOCKS:
        if kind == "python" and block.startswith('"""A corridor'):
            (folder / "corridor.py").write_text(block)
        elif kind == "python":
            for long, short in FEWER.items():
                block = block.replace(long, short)
            exec(compile(block, "own-environment.md", "exec"), names)
        else:
            for line in block.strip().splitlines():
                arguments = command(line)
                if "serve" in arguments or "examples/" in line:  # other tests serve, and run the examples
                    continue
                assert main(arguments) in ((0, 3) if "plan" in arguments else (0,)), line
                ran.append(next(word for word in arguments if word in ("data", "train", "plan", "eval")))
    assert ran == ["train", "train", "data", "train", "plan", "eval"]
    assert {"mine.npz", "mine.png", "corridor.png", "eval.png"} <= {path.name for path in folder.iterdir()}
    assert len(names["policy"].plans) == 2


def test_examples_on_the_page_are_there():
    named = set(re.findall(r"\| `(\w+\.py)` \|", (ROOT / "docs" / "own-environment.md").read_text()))
    worlds = [path for path in (ROOT / "examples").glob("*.py") if "register(" in path.read_text()]
    assert named == {path.name for path in worlds}
