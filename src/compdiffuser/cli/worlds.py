"""`--domain my_world.py`: a file that registers worlds, loaded before a command looks for them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from compdiffuser.checks import brief
from compdiffuser.types import UserError

OPTION = "--domain"
_loaded: dict[str, None] = {}


def loaded_worlds() -> tuple[str, ...]:
    """The files that were loaded, which a process on another machine must load too."""
    return tuple(_loaded)


def without_worlds(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without any `--domain FILE`, and the files. Raises UserError where a file is missing."""
    left, files = [], []
    given = iter(arguments)
    for argument in given:
        name, sign, value = argument.partition("=")
        if name != OPTION:
            left.append(argument)
            continue
        file = value if sign else next(given, "")
        if not file or file.startswith("--"):
            raise UserError(f"{OPTION} needs a Python file that registers a world, as in {OPTION} my_world.py")
        files.append(file)
    return left, files


def load_worlds(file: str | os.PathLike[str]) -> None:
    """Import a file that calls `compdiffuser.register`. Raises UserError where that fails, or it registers nothing.

    Its folder becomes importable, so that worker processes find the world again by the module's name.
    """
    from compdiffuser.domains import DOMAINS

    path = Path(file).expanduser().resolve()
    if path.suffix != ".py" or not path.is_file():
        raise UserError(f"{OPTION} takes a Python file, and '{brief(os.fspath(file))}' is none")
    loaded = sys.modules.get(path.stem)
    if loaded is not None:
        if Path(getattr(loaded, "__file__", None) or "").resolve() == path:
            return
        raise UserError(f"a module '{path.stem}' is imported already; give '{path.name}' another name")
    known = set(DOMAINS)
    sys.path.insert(0, str(path.parent))
    try:
        importlib.import_module(path.stem)
    except UserError:
        raise
    except Exception as error:  # the file is the user's, and raises what it likes
        raise UserError(f"'{path.name}' cannot be imported: {type(error).__name__}: {brief(error)}") from error
    if set(DOMAINS) == known:
        raise UserError(f"'{path.name}' registers no world; call compdiffuser.register(Domain(...)) in it")
    _loaded[str(path)] = None
