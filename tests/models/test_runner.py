from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from renew_golden import CONFIGS, filled, inputs
from tape import recording, taped  # noqa: F401

from compdiffuser.models import DenoiserConfig, UNet1dConfig
from compdiffuser.models.runner import Runner, rounded, rows_at_once

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_big_batch_is_cut_without_a_trace(name):
    config = CONFIGS[name]
    x, sigma, conditions = inputs(config, rows=12)
    runner = Runner(filled(config), CPU)
    whole = runner(x, sigma, conditions)
    sizes = []
    runner.denoiser.register_forward_pre_hook(lambda module, arguments: sizes.append(len(arguments[0])))
    runner.most_rows, runner.least_rows = 5, 1
    apart = (runner(x, sigma, conditions) - whole).abs().max()
    assert apart < 1e-5 * whole.abs().max()
    assert sizes == [5, 5, 2]


@pytest.mark.parametrize(("millions", "rows"), [(4.8, 16_384), (5.2, 16_384), (10, 8_192), (72, 1_024), (10_000, 256)])
def test_a_large_network_gets_fewer_rows_at_a_time_on_a_gpu(millions, rows):
    assert rows_at_once(round(1e6 * millions)) == rows


@pytest.mark.parametrize("overlap", [56, 16])
def test_a_few_rows_with_neighbours_have_the_bits_that_they_have_among_others(overlap):
    """Their encoder shrinks 56 states to 7, and 16 to 2: fewer rows of a product than the network itself has."""
    config = DenoiserConfig(160, overlap, 2, "paper", "encoder", UNet1dConfig(width=32, depth=4))
    x, sigma, conditions = inputs(config, rows=20)
    conditions = replace(conditions.dropped(), has_left=torch.ones(20), has_right=torch.ones(20))
    runner = Runner(filled(config), CPU)
    whole = runner(x, sigma, conditions)
    for rows in (1, 2, 5, 8):
        few = slice(0, rows)
        assert torch.equal(runner(x[few], sigma[few], conditions[few]), whole[few]), rows


def test_a_runner_only_evaluates():
    config = CONFIGS["dit1d"]
    runner = Runner(filled(config).train(), CPU)
    assert not runner.denoiser.training
    assert not runner(*inputs(config)).requires_grad
    assert not any(p.requires_grad for p in runner.denoiser.parameters())


def test_a_network_recorded_by_itself_is_recorded_at_the_same_size_among_others():
    config = CONFIGS["dit1d"]
    x, sigma, conditions = inputs(config, rows=13)
    runner = Runner(filled(config), CPU)
    runner.device = torch.device("cuda")  # it does what it does on a GPU, with tapes
    sizes = []
    runner.denoiser.register_forward_pre_hook(lambda module, arguments: sizes.append(len(arguments[0])))
    alone = runner(x, sigma, conditions)
    assert sizes == [16, 16]  # to load what it needs, and to be recorded
    with recording(None) as tape:
        among = runner(x, sigma, conditions)
    assert sizes == [16, 16, 16]
    assert torch.equal(among, alone)
    runner(x + 1, sigma, conditions)
    tape.replay()
    assert torch.equal(among, alone)


def test_where_each_size_takes_long_to_compile_every_batch_is_filled_up():
    config = CONFIGS["unet1d"]
    x, sigma, conditions = inputs(config, rows=13)
    runner = Runner(filled(config), CPU)
    alone = runner(x, sigma, conditions)
    runner.device, runner.one_size, runner.most_rows = torch.device("cuda"), True, 8
    sizes = []
    runner.denoiser.register_forward_pre_hook(lambda module, arguments: sizes.append(len(arguments[0])))
    filled_up = runner(x, sigma, conditions)
    assert set(sizes) == {8}
    torch.testing.assert_close(filled_up, alone, rtol=1e-4, atol=1e-4)


@given(st.integers(1, 20_000))
def test_rounded_sizes_hold_the_rows_and_waste_at_most_a_quarter(rows):
    size = rounded(rows)
    assert size >= max(rows, 16)
    assert size <= max(1.25 * rows, 16)
    assert rounded(size) == size


def test_there_are_four_rounded_sizes_per_power_of_two():
    assert sorted({rounded(rows) for rows in range(1, 129)}) == [16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128]
