"""Data flows down: a module imports only from modules above it in this list, and a room of planning from few others."""

import ast
import re
from pathlib import Path

import pytest

import compdiffuser

ORDER = [
    "types",
    "shortages",
    "checks",
    "client",
    "threads",
    "files",
    "artifact",
    "packing",
    "restoring",
    "progress",
    "runs",
    "clusters",
    "parallel",
    "domains",
    "presets",
    "registering",
    "data",
    "plotting",
    "experts",
    "diffusion",
    "models",
    "training",
    "compose",
    "planning",
    "following",
    "baselines",
    "evaluation",
    "reporting",
    "web",
    "cli",
]
MAIN = "planning"
ROOMS: dict[str, set[str]] = {
    "recorded": set(),
    "roads": {"recorded"},
    "steering": {"recorded", "roads"},
    "in_use": {"recorded", "roads", "steering", MAIN},
    "sharing": {"recorded", "roads", "steering", MAIN},
}
"""The rooms of planning, and what each may import from: other rooms, or what lies in `planning` itself."""
ROOT = Path(compdiffuser.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


def imported(tree: ast.AST, package: str, below: str = "compdiffuser") -> set[str]:
    """First name `below` a package of everything a module imports, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package.split(".")
                base = base[: len(base) - node.level + 1]
                module = ".".join([*base, node.module] if node.module else base)
            else:
                module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == below else [module]
        found |= {name.removeprefix(f"{below}.").split(".")[0] for name in names if name.startswith(f"{below}.")}
    return found - {"__version__"}


def module_files() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", module_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_only_from_above(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own == "__main__":
        return
    assert own in ORDER, f"{own} has no place in the order of modules"
    package = ".".join(["compdiffuser", *path.relative_to(ROOT).parts[:-1]])
    for name in imported(ast.parse(path.read_text()), package):
        assert name in ORDER, f"{path} imports compdiffuser.{name}, which has no place in the order of modules"
        assert ORDER.index(name) <= ORDER.index(own), f"{path} imports compdiffuser.{name}, which is below {own}"


def test_every_module_has_its_place():
    own = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in module_files()}
    assert own - {"__main__"} == set(ORDER)


def listed(heading: str) -> list[str]:
    """What the first column of the table under a heading of the docs names."""
    table = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return re.findall(r"`(\w+)`", " ".join(rows))


def test_the_docs_show_the_same_order():
    assert listed("The order of modules") == ORDER


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_planning_imports_only_from_where_it_may(room):
    for path in sorted((ROOT / "planning" / room).glob("*.py")):
        found = imported(ast.parse(path.read_text()), f"compdiffuser.planning.{room}", "compdiffuser.planning")
        beyond = {name if name in ROOMS else MAIN for name in found} - {room} - ROOMS[room]
        assert not beyond, f"{path} imports from {', '.join(sorted(beyond))}"


def test_the_docs_show_the_same_rooms():
    folders = {path.parent.name for path in (ROOT / "planning").glob("*/__init__.py")}
    assert listed("The rooms of planning") == list(ROOMS)
    assert folders == set(ROOMS)


def test_the_test_sees_an_upward_import():
    tree = ast.parse("def f():\n    from compdiffuser.planning import planner\n    from compdiffuser import web\n")
    assert imported(tree, "compdiffuser.data") == {"planning", "web"}
    assert imported(tree, "compdiffuser.data", "compdiffuser.planning") == {"planner"}
    assert imported(ast.parse("from ..models import unet1d\nfrom . import mazes"), "compdiffuser.data") == {
        "models",
        "data",
    }
