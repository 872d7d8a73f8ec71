"""Rules of the house that can be looked up: short files and functions, and one place that knows worlds and bodies.

What an observation holds is asked of a `Body` or a `Space`, and what a world is, of its `Domain`: outside `domains/`
nothing cuts x and y out of an array, and nothing looks at the name of an environment.
"""

import ast
import functools
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import compdiffuser
from compdiffuser import presets
from compdiffuser.domains import BODIES, DOMAINS
from compdiffuser.presets import PRESETS

ROOT = Path(compdiffuser.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
LINES, FUNCTION_LINES = 300, 60
KINDS = ("point", "ant", "humanoid", "soccer", "pointmaze", "antmaze", "humanoidmaze", "antsoccer", "robotics", "maze")
"""What names of environments are made of."""
TESTS = ("startswith", "endswith", "removeprefix", "removesuffix")
EXCEPTIONS: dict[str, tuple[set[str], str]] = {
    "experts/tasks.py": ({"uniform[:2]"}, "the first two of three random numbers"),
    "experts/worlds.py": (
        {"data.qpos[:2]", "data.qpos[2:7]", "joints[:, :2]", "places[:, 2, 2:]"},
        "the simulators of bodies without a maze, which make these observations",
    ),
    "following/heading_training.py": ({"facing[:, :2]"}, "cosine and sine of a heading"),
    "web/service.py": ({"''.join((f', {key}={value!r}' for key, value in changes.items()))[2:]"}, "text"),
}
"""Files with slices at 2 that cut no observation: the slices as written, and what they are."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def files(outside: tuple[str, ...] = ()) -> list:
    return [pytest.param(path, id=named(path)) for path in FILES if not named(path).startswith(outside)]


@pytest.fixture(scope="module")
def parsed():
    """The tree of a file, parsed once. They are let go at the end: so many nodes make every garbage collection slow."""
    return functools.cache(lambda path: ast.parse(path.read_text()))


@pytest.fixture
def tree(parsed, path) -> ast.AST:
    return parsed(path)


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_file_is_short(path):
    assert len(path.read_text().splitlines()) <= LINES


@pytest.mark.parametrize("path", files())
def test_a_function_fits_on_a_screen(tree, path):
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {node.name: node.end_lineno - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES} == {}


def bounds(part: ast.expr) -> tuple[object, object]:
    """Begin and end of a slice, where they are plain numbers."""
    ends = (part.lower, part.upper) if isinstance(part, ast.Slice) else (None, None)
    lower, upper = (end.value if isinstance(end, ast.Constant) else end for end in ends)
    return lower, upper


def planar(tree: ast.AST) -> list[str]:
    """Subscripts with a slice up to 2 or from 2 on: x and y, or all but x and y. Shapes have no x and y."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and not ast.unparse(node.value).endswith(".shape"):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(lower == 2 or (upper == 2 and lower != 1) for lower, upper in map(bounds, parts)):
                found.append(ast.unparse(node))
    return found


def numbered(tree: ast.AST) -> list[str]:
    """Numbered columns of observations, and slices by number that are given a name."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "slice":
            if all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in node.args):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Subscript) and re.search(r"(observations?|qpos|qvel)$", ast.unparse(node.value)):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            ends = bounds(parts[-1]) if isinstance(parts[-1], ast.Slice) else (None, None)
            column = isinstance(parts[-1], ast.Constant) and type(parts[-1].value) is int and len(parts) > 1
            if column or any(type(end) is int for end in ends):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", files(outside=("domains/", "experts/worlds.py")))
def test_nothing_else_knows_the_columns_of_an_observation(tree, path):
    """Bare simulators of experts make observations, and so have to know them."""
    assert numbered(tree) == []


@pytest.mark.parametrize("path", files(outside=("domains/",)))
def test_nothing_else_cuts_x_and_y_out_of_an_array(tree, path):
    known, _ = EXCEPTIONS.get(named(path), (set(), ""))
    assert set(planar(tree)) == known


def about_names(tree: ast.AST) -> list[str]:
    """Tests of a string against the name of a world, of a dataset or of a kind of environment."""
    known = {*DOMAINS, *PRESETS, *KINDS, *(name for name in BODIES if name != "point")}
    found = []
    for node in ast.walk(tree):
        literals: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            literals = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TESTS:
            literals = node.args
        parts = [each for one in literals for each in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]
        texts = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if any(text in known or text.strip("-_") in known or text.startswith(tuple(DOMAINS)) for text in texts):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", files(outside=("domains/", "presets.py")))
def test_nothing_else_looks_at_the_name_of_an_environment(tree, path):
    assert about_names(tree) == []


def test_no_empty_string_stands_for_nothing():
    records = [each for each in vars(presets).values() if is_dataclass(each)]
    assert len(records) > 4
    assert [
        (record.__name__, field.name) for record in records for field in fields(record) if field.default == ""
    ] == []
    for preset in PRESETS.values():
        texts = [preset.name, preset.tuned_as, preset.domain.name, preset.domain.environment, preset.domain.family]
        assert "" not in texts


def test_the_tests_see_what_they_look_for():
    code = (
        "observations[:, 3:7], b.qpos[7:], observations[..., 38], slice(3, 7), observations[0], slice(a, 7), c[:, 3:7]"
    )
    assert numbered(ast.parse(code)) == ["observations[:, 3:7]", "b.qpos[7:]", "observations[..., 38]", "slice(3, 7)"]
    code = "a[:, :2], a[..., 2:], a[i:2], a[2], a[:3], a[1:2], a.shape[:2]"
    assert planar(ast.parse(code)) == ["a[:, :2]", "a[..., 2:]", "a[i:2]"]
    code = (
        "a = name.startswith('antmaze-')\nb = 'ant' in name\nc = name == 'pointmaze-giant-stitch-v0'\nd = 'x' in name"
    )
    assert len(about_names(ast.parse(code))) == 3
