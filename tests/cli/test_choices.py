"""What help texts list is what the registries hold, and no help text waits for PyTorch."""

import subprocess
import sys
from pathlib import Path

import pytest

import compdiffuser
from compdiffuser import client
from compdiffuser.baselines import METHODS
from compdiffuser.cli import choices, main
from compdiffuser.cli.plan import Plan
from compdiffuser.compose import BLENDINGS, ORDERS, STEPS, SamplerConfig
from compdiffuser.models import ARCHITECTURES
from compdiffuser.planning.config import SAMPLERS, PlanConfig
from compdiffuser.planning.recipes import RECIPES
from compdiffuser.planning.search import SCORES


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
