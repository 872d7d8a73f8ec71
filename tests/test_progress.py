import io
import sys

import pytest

from compdiffuser.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(**options) -> str:
    columns = options.pop("columns", ())
    with progress_bar(*columns, **options) as bar:
        task = bar.add_task("counting", total=3, note="sheep")
        bar.update(task, completed=3)
    return sys.stderr.getvalue()


def test_a_terminal_gets_a_bar_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Terminal())
    printed = shown()
    assert "counting" in printed
    assert "3/3" in printed
    assert capsys.readouterr().out == ""


def test_columns_are_formats(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    printed = shown(columns=("{task.fields[note]}",))
    assert "sheep" in printed
    assert "3/3" not in printed


@pytest.mark.parametrize(("stream", "options"), [(io.StringIO, {}), (Terminal, {"shown": False})])
def test_files_and_who_asks_for_nothing_get_nothing(monkeypatch, stream, options):
    monkeypatch.setattr(sys, "stderr", stream())
    assert shown(**options).strip() == ""
