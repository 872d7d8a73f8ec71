"""What help texts list is what the registries hold, and no help text waits for PyTorch."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import compdiffuser
from compdiffuser import client
from compdiffuser.baselines import METHODS
from compdiffuser.cli import choices, main
from compdiffuser.cli.contestants import plan_config
from compdiffuser.cli.evaluate import Eval
from compdiffuser.cli.plan import Plan
from compdiffuser.compose import BLENDINGS, ORDERS, STEPS, SamplerConfig
from compdiffuser.models import ARCHITECTURES
from compdiffuser.planning.config import SAMPLERS, PlanConfig
from compdiffuser.planning.recipes import RECIPES
from compdiffuser.planning.search import SCORES
from compdiffuser.types import UserError


@pytest.mark.parametrize(
    ("listed", "registry"),
    [
        (choices.ORDERS, ORDERS),
        (choices.RULES, STEPS),
        (choices.SCORES, SCORES),
        (choices.BLENDINGS, BLENDINGS),
        (choices.BASELINES, METHODS),
        (choices.ARCHITECTURES, ARCHITECTURES),
        (choices.RECIPES, RECIPES),
        (choices.SAMPLERS, SAMPLERS),
    ],
)
def test_names_are_those_of_the_registry(listed, registry):
    assert list(listed) == list(registry)


def test_defaults_of_a_plan_are_those_of_its_configs():
    assert Plan("any", "0,0", "1,1")._config() == PlanConfig()


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_plan_takes_every_sampler_by_name(name):
    assert Plan("any", "0,0", "1,1", sampler=name)._config() == SAMPLERS[name]()


@pytest.mark.parametrize("order", ORDERS)
def test_a_plan_takes_every_order(order):
    assert Plan("any", "0,0", "1,1", order=order)._config().sampler == SamplerConfig(order=order)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
    "options",
    [{"steps": 4}, {"repeats": 2, "order": "parallel"}, {"score": "overlap"}, {"scaffold": "none"}, {"scaffold": 0.5}],
)
def test_plans_are_asked_for_alike_in_every_command(name, options):
    assert Plan("any", sampler=name, **options)._config() == plan_config(Eval("any", sampler=name, **options))


def test_a_plan_takes_no_order_for_a_sampler():
    with pytest.raises(UserError, match=r"unknown sampler 'parallel'; choose one of default, paper, authors$"):
        Plan("any", sampler="parallel")._config()


def test_as_many_candidates_are_made_as_the_help_texts_say():
    ours = [choices.usual_candidates(command, "default") for command in ("plan", "eval")]
    theirs = [choices.usual_candidates(*each) for each in product(("plan", "eval"), ("paper", "authors"))]
    assert (ours, theirs, choices.usual_candidates("eval", "gsc")) == ([64, 256], [40] * 4, 40)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("plan", (choices.ORDERS, choices.RULES, choices.SCORES, choices.BLENDINGS)),
        ("eval", (choices.ORDERS, (*choices.PLANNERS, *choices.BASELINES))),
        ("train", ((*choices.PLANNERS, *choices.BASELINES), choices.ARCHITECTURES)),
    ],
)
def test_help_lists_them(command, names, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for listed in names:
        assert choices.listed(*listed) in text


def test_the_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"compdiffuser {compdiffuser.__version__}\n"


def test_commands_are_parsed_without_pytorch():
    code = "import sys, compdiffuser.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_client_needs_no_pytorch():
    code = "import sys, compdiffuser.client; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_client_stands_alone(tmp_path):
    """Copied beside a program, it needs nothing but Python."""
    (tmp_path / "alone.py").write_text(Path(client.__file__).read_text())
    code = "import sys, alone; sys.exit(any(name.startswith(('compdiffuser', 'numpy')) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0
