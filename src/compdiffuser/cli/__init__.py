"""The command line. Every command is a frozen dataclass with a `run()` that returns the exit code.

Exit codes: 0 done · 1 a worker process failed · 2 a user's mistake, or something ran out, told in one sentence ·
3 a plan that could not be certified · 141 nobody read the output to its end.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import tyro

from compdiffuser import __version__
from compdiffuser.checks import brief
from compdiffuser.cli.data import Info, List, Make, Plot
from compdiffuser.cli.evaluate import Eval
from compdiffuser.cli.expert import ExpertCommand
from compdiffuser.cli.export import Export
from compdiffuser.cli.plan import Plan
from compdiffuser.cli.push import Push
from compdiffuser.cli.report import Report
from compdiffuser.cli.serve import Serve
from compdiffuser.cli.sweep import Sweep
from compdiffuser.cli.train import Train
from compdiffuser.cli.train_controller import TrainController
from compdiffuser.cli.worlds import load_worlds, without_worlds
from compdiffuser.shortages import WorkerError, look_before_pytorch, shortage
from compdiffuser.threads import wait_quietly
from compdiffuser.types import UserError

DESCRIPTION = """Plan long trajectories from short ones.

Make a dataset, train a chunk model on it, plan with it, and measure it in the real environment. Planners are shipped
for the datasets that `data list` names: `plan` and `eval` take the name.

Exit codes: 0 done, 1 a worker process failed, 2 a mistake in what was given, or something ran out, 3 a plan that could
not be certified.
--version prints the version. Every command takes --domain my_world.py, a file that registers worlds of your own."""


SEVERAL = ("--via", "--avoid")
"""Options that may be given several times."""


class Command(Protocol):
    def run(self) -> int: ...


@dataclass(frozen=True)
class Data:
    """Make, inspect and draw datasets, and train the experts that walk in them."""

    command: tyro.conf.OmitSubcommandPrefixes[
        Annotated[Make, tyro.conf.subcommand("make")]
        | Annotated[Info, tyro.conf.subcommand("info")]
        | Annotated[Plot, tyro.conf.subcommand("plot")]
        | Annotated[List, tyro.conf.subcommand("list")]
        | Annotated[ExpertCommand, tyro.conf.subcommand("expert")]
    ]

    def run(self) -> int:
        return self.command.run()


Commands = (
    Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[TrainController, tyro.conf.subcommand("train-controller")]
    | Annotated[Plan, tyro.conf.subcommand("plan")]
    | Annotated[Eval, tyro.conf.subcommand("eval")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Push, tyro.conf.subcommand("push")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Serve, tyro.conf.subcommand("serve")]
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn a user's mistake into one sentence."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given == ["--version"]:
        print(f"compdiffuser {__version__}")
        return 0
    wait_quietly()
    look_before_pytorch()
    try:
        given, files = without_worlds(given)
        _refuse_repetition(given)
        for file in files:
            load_worlds(file)
        try:
            command: Command = tyro.cli(Commands, prog="compdiffuser", description=DESCRIPTION, args=given)
        finally:
            sys.stdout.flush()  # the help, after which it exits
        code = command.run()
        sys.stdout.flush()  # here, a full disk can still be told
        return code
    except UserError as error:
        return _failed(str(error))
    except WorkerError as error:
        return _failed(str(error), 1)
    except KeyboardInterrupt as error:
        return _failed(str(error) or "interrupted", 130)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _unread():
            return 141  # as where a program is ended by SIGPIPE
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return _failed(f"'{brief(str(error.filename))}' is too long for the name of a file")
        if (short := shortage(error)) is None:
            raise
        return _failed(short)


def _failed(sentence: str, code: int = 2) -> int:
    """Say why; what standard output cannot take any more is dropped, or Python would complain of it at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop()
    print(f"compdiffuser: {sentence}", file=sys.stderr)
    return code


def _unread() -> bool:
    """Whether nobody reads standard output any more, as after `| head`; then the rest is dropped."""
    try:
        print(flush=True)  # what could not be written may have left the buffer
    except BrokenPipeError:
        _drop()
        return True
    return False


def _drop() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse_repetition(arguments: Sequence[str]) -> None:
    """An option that is given twice would silently lose what it was given first."""
    names = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    given = [name.replace("_", "-").replace("--no-", "--", 1) for name in names]
    if twice := [name for number, name in enumerate(given) if name in given[:number] and name not in SEVERAL]:
        raise UserError(f"{twice[0]} is given twice; give it once, with all its values")
