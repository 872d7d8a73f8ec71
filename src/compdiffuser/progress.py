"""Progress bars: on stderr, one look for all commands."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def progress_bar(
    *columns: str | ProgressColumn, shown: bool = True, transient: bool | None = None, remaining: bool = True
) -> Progress:
    """A bar: the task's description, the bar, `columns`, the time so far and the time that is left.

    Strings are formats of text columns, such as "{task.completed:,} steps"; without columns, "3/20" is shown. A bar
    that is `transient` vanishes when it is done, by default where stderr is no terminal.
    """
    middle = [TextColumn(column) if isinstance(column, str) else column for column in columns]
    times = [TimeElapsedColumn(), *([TimeRemainingColumn()] if remaining else [])]
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *(middle or [MofNCompleteColumn()]),
        *times,
        console=Console(stderr=True),
        disable=not shown,
        transient=not sys.stderr.isatty() if transient is None else transient,
    )
