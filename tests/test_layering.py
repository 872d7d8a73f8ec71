"""Data flows down: a module imports only from modules above it in this list."""

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
ROOT = Path(compdiffuser.__file__).parent


def imported(tree: ast.AST, package: str) -> set[str]:
    """First name below `compdiffuser` of everything a module imports, inside functions too."""
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
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "compdiffuser" else [module]
        found |= {name.split(".")[1] for name in names if name.startswith("compdiffuser.")} - {"__version__"}
    return found


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


def test_the_docs_show_the_same_order():
    page = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    table = page.split("## The order of modules")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", " ".join(rows)) == ORDER


def test_the_test_sees_an_upward_import():
    tree = ast.parse("def f():\n    from compdiffuser.planning import planner\n    from compdiffuser import web\n")
    assert imported(tree, "compdiffuser.data") == {"planning", "web"}
    assert imported(ast.parse("from ..models import unet1d\nfrom . import mazes"), "compdiffuser.data") == {
        "models",
        "data",
    }
