"""A planner's run continues as what it began as, and as nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from compdiffuser.models import DenoiserConfig, DiT1dConfig
from compdiffuser.planning.training import train_planner
from compdiffuser.presets import Preset, own_preset
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes, UserError

pytestmark = pytest.mark.usefixtures("few_windows")
MINE = own_preset("mine")
OWN = replace(MINE, chunks=replace(MINE.chunks, horizon=16, overlap=4))
SMALL = DenoiserConfig(horizon=16, overlap=4, network=DiT1dConfig(width=32, depth=1, heads=2))


def cut(**changes: int) -> Preset:
    """The same dataset in other chunks."""
    return replace(OWN, chunks=replace(OWN.chunks, **changes))


def lines(scale: float = 1.0) -> Episodes:
    ends = scale * np.random.default_rng(0).uniform(-5, 5, (2, 20, 1, 2))
    states = ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, 40)[None, :, None]
    terminals = np.tile(np.arange(40) == 39, 20)
    return Episodes.from_terminals(states.reshape(-1, 2).astype(np.float32), np.zeros((800, 2)), terminals)


@pytest.fixture(scope="module")
def run(tmp_path_factory, few_windows):
    out = tmp_path_factory.mktemp("run")
    train_planner(lines(), OWN, out, model=SMALL, config=TrainConfig(steps=2, batch=4), progress=False)
    return out


@pytest.mark.parametrize(
    ("preset", "model", "sentence"),
    [
        (OWN, replace(SMALL, formulation="paper"), "formulation default, not paper"),
        (cut(overlap=8), SMALL, "overlap 4, not 8"),
        (cut(stride=2), SMALL, "stride 1, not 2"),
        (cut(front_padding=8), SMALL, r"padding \[32, 32\], not \[8, 32\]"),
        (replace(OWN, name="other"), SMALL, "dataset mine, not other"),
    ],
)
def test_a_run_does_not_continue_as_another(run, preset, model, sentence):
    with pytest.raises(UserError, match=f"holds a run with {sentence}; choose another folder"):
        train_planner(lines(), preset, run, model=model, config=TrainConfig(steps=4, batch=4), progress=False)


@pytest.mark.parametrize(
    ("dims", "sentence"),
    [
        ((0, 2), "observations have dimensions 0 to 1, there is no dimension 2"),
        ((0, 0), r"planned dimensions are different ones from 0 on, not \[0, 0\]"),
        ((-1, 0), r"planned dimensions are different ones from 0 on, not \[-1, 0\]"),
    ],
)
def test_dimensions_that_there_are_not_are_named(tmp_path, dims, sentence):
    with pytest.raises(UserError, match=sentence):
        train_planner(lines(), OWN.planning(dims), tmp_path, model=SMALL, progress=False)


def test_data_in_which_nothing_moves_is_refused(tmp_path):
    episodes = lines()
    still = replace(episodes, observations=np.full_like(episodes.observations, 1.5))
    with pytest.raises(UserError, match=r"nothing moves: the place is \[1.5, 1.5\] in all recorded states"):
        train_planner(still, OWN, tmp_path, model=SMALL, progress=False)


def test_a_run_does_not_continue_on_other_data(run):
    with pytest.raises(UserError, match="holds a run on other data of that name; choose"):
        train_planner(lines(2.0), OWN, run, model=SMALL, config=TrainConfig(steps=4, batch=4), progress=False)
