"""A recorded loop gives what the loop gives, for other inputs of the same structure."""

import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, coupled, schedule_of
from renew_golden import CONFIGS, filled
from tape import taped  # noqa: F401

from compdiffuser.compose import ORDERS, STEPS, Chains, Order, sample
from compdiffuser.diffusion.levels import cosine_below
from compdiffuser.models.replays import Recorded, Replays
from compdiffuser.models.runner import Runner

SIZES = {"horizon": HORIZON, "overlap": OVERLAP}
PAPER = {"guidance": 2.0, "hold": True, "clamp": True, "below": cosine_below, "unguided": "ends"}
NEVER = Replays(lambda compute, inputs: pytest.fail("recorded"), again=1)


def again(chains: Chains, name: str, schedule, **options):
    """The same structure thrice, with other ends and seeds each time: (recorded or replayed, computed) of each."""
    whole = Replays(Recorded)
    for seed in range(4):
        other = chains_of(*chains.lengths.tolist(), seed=seed)
        other = Chains.build(
            other.start[other.first], other.goal[other.first], other.lengths, torch.arange(len(other.lengths)) + seed
        )
        order = ORDERS[name](other)
        yield (
            sample(coupled, other, schedule, order, whole=whole, **options, **SIZES),
            sample(coupled, other, schedule, order, **options, **SIZES),
        )
    assert len(whole.kept) == 1


@pytest.mark.parametrize("options", [{}, PAPER], ids=["plain", "paper"])
@pytest.mark.parametrize(("eta", "repeats"), [(0.0, 1), (1.0, 1), (1.0, 3)])
@pytest.mark.parametrize("name", ORDERS)
def test_a_recorded_loop_has_the_same_bits(name, eta, repeats, options):
    made = []
    for replayed, computed in again(chains_of(4, 1, 3), name, schedule_of(4, eta, repeats), **options):
        assert torch.equal(replayed, computed)
        made.append(replayed)
    assert not torch.allclose(made[2], made[3])


def test_levels_and_samples_to_begin_from_are_inputs():
    whole, chains = Replays(Recorded), chains_of(3, 2)
    for number in range(4):
        schedule, initial = schedule_of(eta=0.2 * number + 0.1), torch.full((5, HORIZON, DIM), float(number))
        kept, order = initial.clone(), ORDERS["autoregressive"](chains)
        replayed, computed = (
            sample(coupled, chains, schedule, order, initial=initial, whole=each, **SIZES) for each in (whole, None)
        )
        assert torch.equal(replayed, computed)
        assert torch.equal(initial, kept)
    assert len(whole.kept) == 1


@pytest.mark.parametrize("guidance", [1.0, 2.0])
@pytest.mark.parametrize("name", ["autoregressive", "gsc"])
def test_a_network_that_is_recorded_by_itself_is_recorded_in_a_loop(name, guidance):
    runner = Runner(filled(CONFIGS["dit1d"]), torch.device("cpu"))
    assert runner.whole is None  # nothing is gained by that on a CPU
    runner.device = torch.device("cuda")  # it does what it does on a GPU, with tapes
    config = runner.denoiser.config
    whole, sizes = Replays(Recorded), {"horizon": config.horizon, "overlap": config.overlap, "guidance": guidance}
    for number in range(3):
        chains = Chains.build(*torch.randn(2, 11, config.dim), torch.full((11,), 3), torch.arange(11) + number)
        order = ORDERS[name](chains)
        replayed, computed = (
            sample(runner, chains, schedule_of(3), order, whole=each, **sizes) for each in (whole, None)
        )
        assert torch.equal(replayed, computed)
    assert len(whole.kept) == 1
    assert runner.graphs


@pytest.mark.parametrize(
    "change",
    [
        {"guidance": 1.5}, {"hold": True}, {"clamp": True}, {"below": cosine_below}, {"unguided": "ends"},
        {"order": "autoregressive"}, {"lengths": (2, 3)}, {"schedule": schedule_of(5)},
        {"schedule": schedule_of(eta=0.0)}, {"initial": torch.zeros(5, HORIZON, DIM)}, {"denoise": lambda *a: a[0]},
        {"sizes": {"horizon": HORIZON, "overlap": 3}},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_what_makes_other_work_is_another_structure(change):
    whole = Replays(Recorded)
    usual = {"guidance": 2.0, "order": "parallel", "lengths": (3, 2), "schedule": schedule_of(), "denoise": coupled}
    for asked in (usual, usual | change):
        options = {"sizes": SIZES} | asked
        chains = chains_of(*options.pop("lengths"))
        order, denoise, schedule, sizes = (options.pop(key) for key in ("order", "denoise", "schedule", "sizes"))
        sample(denoise, chains, schedule, ORDERS[order](chains), whole=whole, **sizes, **options)
    assert len(whole.asked) == 2


def test_an_order_of_its_own_is_another_structure():
    whole, chains = Replays(Recorded), chains_of(3, 2)
    for order in (Order(chains.position, 2), Order(chains.position, 3), Order(chains.position * 2, 2)):
        sample(coupled, chains, schedule_of(), order, whole=whole, **SIZES)
    assert len(whole.asked) == 3


@pytest.mark.parametrize(
    "looks",
    [
        {"steer": lambda clean, rows, sigma: clean},
        {"watch": lambda index, count, latest: None},
        {"held": (torch.arange(5) < 2, torch.zeros(5, HORIZON, DIM))},
        {"rule": STEPS["heun"]},
    ],
    ids=lambda looks: next(iter(looks)),
)
def test_a_loop_that_is_looked_into_is_not_recorded(looks):
    chains = chains_of(3, 2)
    order = ORDERS["autoregressive"](chains)
    found = sample(coupled, chains, schedule_of(), order, whole=NEVER, **looks, **SIZES)
    assert torch.equal(found, sample(coupled, chains, schedule_of(), order, **looks, **SIZES))


@pytest.mark.parametrize("name", ORDERS)
def test_noise_that_is_left_out_was_none(name):
    chains, schedule = chains_of(3, 1, 2), schedule_of(eta=0.0)
    assert not schedule.noisy
    order = ORDERS[name](chains)
    drawn = type(schedule)(schedule.sigma, schedule.keep, schedule.noise)  # drawn, and multiplied by 0
    assert drawn.noisy
    assert torch.equal(*(sample(coupled, chains, each, order, **SIZES) for each in (schedule, drawn)))
