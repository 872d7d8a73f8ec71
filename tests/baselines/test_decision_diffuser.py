from dataclasses import replace

import numpy as np
import pytest
import torch
from one_chunk import GOAL, GOLDEN, SAMPLER, SHORT, START, planner, plans
from safetensors.torch import load_file

from compdiffuser.baselines.decision_diffuser import check, monolithic, train_decision_diffuser, trained
from compdiffuser.compose.chains import Chains
from compdiffuser.compose.orders import order
from compdiffuser.compose.sample import sample
from compdiffuser.compose.schedule import Schedule
from compdiffuser.models import DenoiserConfig, DiT1dConfig
from compdiffuser.planning import sampler
from compdiffuser.planning.planner import Planner
from compdiffuser.presets import PRESETS
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import Episodes, UserError

TINY = DenoiserConfig(network=DiT1dConfig(width=32, depth=1, heads=2))


def test_golden():
    """To renew after a wanted change: python tests/baselines/one_chunk.py"""
    torch.testing.assert_close(plans(), load_file(GOLDEN)["states"], rtol=1e-3, atol=1e-4)


def test_one_chunk_runs_through_the_planners_own_loop(monkeypatch):
    """The plan is what the composition loop makes of a chain of one chunk, and it is made there and nowhere else."""
    calls = []

    def spy(denoise, chains, *args, **options):
        calls.append(chains.lengths.tolist())
        return sample(denoise, chains, *args, **options)

    monkeypatch.setattr(sampler, "sample", spy)
    made = plans()
    assert calls == [[1, 1]]
    one = planner()
    chains = Chains.build(
        one.normalizer.normalize(torch.tensor(START)), one.normalizer.normalize(torch.tensor(GOAL)),
        torch.tensor([1, 1]), torch.tensor([5 * 65_536] * 2),
    )  # fmt: skip
    schedule = Schedule.build(one.denoise.denoiser.formulation.sampling_levels, SAMPLER, one.device)
    horizon, overlap = one.model.horizon, one.model.overlap
    chunks = sample(
        one.denoise, chains, schedule, order("parallel")(chains), horizon=horizon, overlap=overlap, guidance=2.0
    )
    torch.testing.assert_close(made, one.normalizer.denormalize(chunks))


@pytest.mark.parametrize("name", PRESETS)
def test_a_plan_is_as_long_as_the_composed_one_in_whole_patches(name):
    composed, whole = PRESETS[name].chunks, monolithic(PRESETS[name]).chunks
    length = composed.count * composed.horizon - (composed.count - 1) * composed.overlap
    assert length <= whole.horizon < length + 8
    assert whole.horizon % 8 == 0
    assert (whole.count, whole.most, whole.back_padding) == (1, 1, whole.horizon * whole.stride)
    assert whole.scaffold is None, "its plans begin from noise, as DD's do"
    assert (whole.front_padding, whole.stride) == (composed.front_padding, composed.stride)
    assert replace(monolithic(PRESETS[name]), chunks=composed) == PRESETS[name], "all else is the dataset's"


def short_walks(length: int = 20) -> Episodes:
    states = np.random.default_rng(0).uniform(-1, 1, (6, length, 2)).cumsum(1).astype(np.float32)
    terminals = np.tile(np.arange(length) == length - 1, 6)
    return Episodes.from_terminals(states.reshape(-1, 2), np.zeros((6 * length, 2), np.float32), terminals)


@pytest.mark.slow
@pytest.mark.usefixtures("few_windows")
def test_episodes_shorter_than_a_plan_are_padded(tmp_path):
    config = TrainConfig(steps=2, batch=4)
    checkpoint = train_decision_diffuser(short_walks(), SHORT, tmp_path, model=TINY, config=config, progress=False)
    assert checkpoint.record["method"] == "dd"
    assert checkpoint.record["objective"]["overlap"] == 8
    plan = Planner.from_pretrained(tmp_path, device="cpu").plan([0.0, 0.0], [0.5, 0.5], n_candidates=1)
    assert plan.chunks.shape == (1, 56, 2)
    check(str(tmp_path), checkpoint.preset, checkpoint.record)


def test_a_horizon_longer_than_the_padded_data_is_named(tmp_path):
    """Padding is the composed plan's length, 56 states behind an episode and 64 before it."""
    config = TrainConfig(steps=1, batch=2)
    with pytest.raises(UserError, match=r"windows of H 144 .* the longest has 20 states and 120 of padding"):
        train_decision_diffuser(
            short_walks(), SHORT, tmp_path, horizon=144, model=TINY, config=config, progress=False
        )  # fmt: skip
    with pytest.raises(UserError, match="a plan has at least 16 states, not 8"):
        monolithic(SHORT, 8)


def test_a_planner_that_composes_is_not_taken_for_a_monolithic_one():
    with pytest.raises(UserError, match=r"'short' holds a planner of compdiffuser, .* train short --method dd"):
        check("short", SHORT, {"method": "compdiffuser"})


def test_a_datasets_name_means_the_folder_that_training_leaves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert trained("short") == "short"
    (tmp_path / "runs" / "short-dd").mkdir(parents=True)
    assert str(trained("short")) == "runs/short-dd"
    (tmp_path / "short").mkdir()
    assert trained("short") == "short"
