"""The page's modules as one script, so that a browser asks once instead of two dozen times before it can draw.

The files stay modules that a browser could load as they are. Of the language, only the forms that they use are known:
imports of one line from a file beside, and exports of a function, a class or a constant where it is declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable

IMPORT = re.compile(r'^import (?:\* as (?P<whole>\w+)|(?P<names>\{[^}]*\})) from "\./(?P<file>\w+\.js)";$', re.M)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.M)
OTHER = re.compile(r"^(?:import|export)\b.*", re.M)


def joined(entry: str, read: Callable[[str], str]) -> str:
    """A module after all that it imports, each in a scope of its own; `read` gives a file's text.

    Raises ValueError for another form of import or export, and for modules that import each other.
    """
    parts: dict[str, str] = {}
    open_files: list[str] = []

    def add(file: str) -> None:
        if file in open_files:
            raise ValueError(f"modules import each other: {' > '.join([*open_files, file])}")
        if file in parts:
            return
        open_files.append(file)
        text = read(file)
        for found in IMPORT.finditer(text):
            add(found["file"])
        parts[file] = _scope(file, text)
        open_files.pop()

    add(entry)
    return "\n".join(parts.values())


def _scope(file: str, text: str) -> str:
    """A module as a constant: an object of what it exports."""
    names = EXPORT.findall(text)
    body = IMPORT.sub(lambda found: f"const {found['whole'] or found['names']} = {_constant(found['file'])};", text)
    body = EXPORT.sub("", body)
    if strange := OTHER.search(body):
        raise ValueError(f"{file} cannot be joined with others: '{strange[0]}'")
    return f"const {_constant(file)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def _constant(file: str) -> str:
    return "$" + file.removesuffix(".js")
