import sys

import pytest
from lives import slow_square

from compdiffuser import parallel
from compdiffuser.types import UserError


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_jobs(workers):
    assert parallel.run(slow_square, range(6), workers=workers) == [0, 1, 4, 9, 16, 25]


def test_a_stream_numbers_what_finishes():
    assert dict(parallel.stream(slow_square, [3, 4], workers=2)) == {0: 9, 1: 16}


def test_no_jobs_no_results():
    assert parallel.run(slow_square, []) == []


def test_an_error_in_a_job_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        parallel.run(lambda job: 1 // job, [1, 0], workers=1)


def test_short_work_is_quiet_and_long_work_leaves_a_line(capsys, monkeypatch):
    parallel.run(slow_square, [5], workers=1, progress="squares")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(parallel, "QUIET_SECONDS", 0.0)
    parallel.run(slow_square, [5], workers=1, progress="squares")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("squares: 1 of 1 in ")


def test_a_terminal_gets_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    parallel.run(slow_square, [4, 5], workers=1, progress="squares")
    assert "squares" in capsys.readouterr().err


def test_wrong_engines_and_workers_are_named(monkeypatch):
    with pytest.raises(UserError, match="unknown engine 'slurm'; known engines: local, ray"):
        parallel.run(slow_square, [1], engine="slurm")
    with pytest.raises(UserError, match="at least 1, not -2"):
        parallel.run(slow_square, [1], workers=-2)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"needs Ray, which is not installed; in your clone: .*'\.\[ray\]'"):
        parallel.run(slow_square, [1], engine="ray")


def test_workers_that_are_kept_find_modules_that_came_later(tmp_path, monkeypatch):
    assert parallel.run(abs, [-1, -2], workers=2) == [1, 2]
    (tmp_path / "a_module_that_came_later.py").write_text("def double(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from a_module_that_came_later import double

    assert parallel.run(double, [1, 2], workers=2) == [2, 4]
