"""Lanes of commands, with small commands of the test's own."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import tyro

from compdiffuser.cli import Commands
from compdiffuser.types import UserError

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def lanes(benchmark_script):
    return benchmark_script("lanes")


def run(lanes, monkeypatch, capsys, *words) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["lanes.py", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        lanes.main()
    return ended.value.code, capsys.readouterr().out


def test_lanes_run_in_order_and_go_on_after_a_failure(lanes, tmp_path, monkeypatch, capsys):
    order = tmp_path / "order"
    says = [
        shlex.join(["python", "-c", f"import os; open({str(order)!r}, 'a').write('{word}'); {more}"])
        for word, more in (("a", "raise SystemExit(3)"), ("b", "print(os.environ['OMP_NUM_THREADS'])"), ("c", "pass"))
    ]
    file = tmp_path / "lanes.toml"
    first, second = json.dumps(says[:2]), json.dumps(says[2:])
    file.write_text(f"""
        [first]
        commands = {first}
        threads = 2
        cores = [0]
        [second]
        commands = {second}
        after = ["first"]
    """)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code, told = run(lanes, monkeypatch, capsys, file, "--logs", tmp_path / "logs")
    assert (code, order.read_text()) == (1, "abc")
    assert told.count("failed with exit code 3") == 1
    assert (tmp_path / "logs" / "first.log").read_text() == "2\n"
    code, told = run(lanes, monkeypatch, capsys, file, "--only", "second", "--logs", tmp_path / "logs")
    assert (code, order.read_text()) == (0, "abcc"), "what it comes after was not asked for"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "'x' is no lane, a table with 'commands'"),
        ("[x]\ncommands = []\nafter = ['y']\n[y]\ncommands = []", "comes after 'y', which is no lane above it"),
        ("[x]\ncommands = []\ncore = 1", "lane 'x' has a field 'core'; known: commands, after, cores, threads"),
        ("[x", "Expected"),
    ],
)
def test_a_file_that_says_something_else_is_refused(lanes, tmp_path, text, told):
    file = tmp_path / "lanes.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=told):
        lanes.read(file)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.toml")), ids=lambda file: file.stem)
def test_commands_of_the_shipped_files_can_be_parsed(lanes, benchmark_script, file):
    for lane in lanes.read(file).values():
        for command in lane.commands:
            first, name, *options = shlex.split(command)
            if first == "compdiffuser":
                assert tyro.cli(Commands, args=[name, *options])
            else:
                main = benchmark_script(Path(name).stem).main  # of a script that this one may borrow it from
                assert tyro.cli(main.__globals__["Benchmark"], args=options)
