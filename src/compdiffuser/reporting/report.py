"""Write the tables of README and docs from the files under `results/`, between markers in the text:

`<!-- table: NAME -->` … `<!-- /table -->`. No figure is typed by hand, and a check tells when text and files differ.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compdiffuser.files import read_json, replacing
from compdiffuser.reporting.ablations import entry
from compdiffuser.reporting.tables import TABLES, Result
from compdiffuser.types import UserError

ABLATIONS = "ablations"
"""The folder of cells that tables of ablations look at."""
_OPEN = re.compile(r"<!-- table: *([\w-]+) *-->")
_BLOCK = re.compile(r"(<!-- table: *([\w-]+) *-->\n)(.*?)(<!-- /table -->)", re.DOTALL)


def read_results(folder: Path) -> list[Result]:
    """Every result of every JSON file in a folder: measured ones, and the entries of lists of published figures.

    Evaluations that are under way, or were cut off, are left out.
    """
    results: list[Result] = []
    for path in (*sorted(folder.glob("*.json")), *sorted((folder / ABLATIONS).glob("*.json"))):
        content = read_json(path)
        if not isinstance(content, dict):
            raise UserError(f"'{path}' holds a {type(content).__name__}, results are JSON objects")
        if content.get("complete", True) is not True:
            print(f"{path} is left out: its evaluation is not complete", file=sys.stderr)
            continue
        try:
            results += [entry(content)] if path.parent.name == ABLATIONS else _entries(content)
        except (TypeError, ValueError, AttributeError) as error:
            raise UserError(f"'{path}' holds no results: {error}") from error
    return results


def _entries(content: dict[str, Any]) -> list[Result]:
    """A measured result, also within shorter limits; or a list of published ones."""
    published: list[dict[str, Any]] = content.get("published", [])
    if published:
        return [{**entry, "origin": "published"} for entry in published]
    found: list[Result] = [{"origin": "measured", **content}]
    for limit, success in content.get("within", {}).items():
        found.append({"origin": "measured", **content, **success, "steps_limit": int(limit)})
    return found


def render(text: str, results: Sequence[Result], where: str) -> str:
    """The text with every table between its markers made anew."""

    def table(match: re.Match[str]) -> str:
        name = match[2]
        if name not in TABLES:
            raise UserError(f"{where} asks for table '{name}'; known tables: {', '.join(TABLES)}")
        try:
            made = TABLES[name](results)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"{where}: table '{name}' cannot be made, a result has no such value ({reason})") from error
        return f"{match[1]}{made}\n{match[4]}"

    if len(_OPEN.findall(text)) != len(_BLOCK.findall(text)):
        raise UserError(f"{where} has a table marker without its '<!-- /table -->'")
    return _BLOCK.sub(table, text)


def outdated(root: Path, write: bool) -> list[Path]:
    """The Markdown files under a project's root whose tables differ from its results; rewritten where `write`."""
    results = read_results(root / "results")
    pages = [page for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))) if page.exists()]
    if not pages:
        raise UserError(f"there is no README.md and no docs/*.md under '{root.resolve()}'")
    changed = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        new = render(text, results, str(page.relative_to(root)))
        if new != text:
            changed.append(page)
            if write:
                with replacing(page) as temporary:
                    temporary.write_text(new, encoding="utf-8")
    return changed
