from dataclasses import fields

import pytest
import torch

from compdiffuser.diffusion.conditions import Conditions
from compdiffuser.diffusion.formulation import FORMULATIONS, formulation
from compdiffuser.diffusion.levels import cosine_table
from compdiffuser.diffusion.objective import NoisyBatch, ObjectiveConfig, draw, loss
from compdiffuser.types import UserError

ROWS, HORIZON, OVERLAP, DIM = 40_000, 6, 2, 2
CONFIG = ObjectiveConfig(overlap=OVERLAP)


def drawn(config: ObjectiveConfig = CONFIG, seed: int = 0, name: str = "default") -> NoisyBatch:
    generator = torch.Generator().manual_seed(seed)
    clean = torch.randn(ROWS, HORIZON, DIM, generator=generator)
    return draw(clean, formulation(name), config, generator)


def frequency(mask: torch.Tensor) -> float:
    return float(mask.float().mean())


def test_each_side_is_a_chunk_a_state_or_nothing_as_often_as_asked():
    c = drawn(ObjectiveConfig(overlap=OVERLAP, drop=0.2, state=0.35)).conditions
    for chunk, state in ((c.has_left, c.has_start), (c.has_right, c.has_goal)):
        assert set(chunk.tolist()) == set(state.tolist()) == {0.0, 1.0}
        assert not (chunk * state).any()
        assert frequency(chunk) == pytest.approx(0.45, abs=0.01)
        assert frequency(state) == pytest.approx(0.35, abs=0.01)


def test_the_two_sides_are_drawn_independently():
    c = drawn().conditions
    assert frequency(c.has_left * c.has_right) == pytest.approx(0.55**2, abs=0.01)
    assert frequency(c.has_start * c.has_goal) == pytest.approx(0.3**2, abs=0.01)


def test_a_neighbour_is_as_noisy_as_the_row_or_ahead_of_it():
    batch = drawn(ObjectiveConfig(overlap=OVERLAP, ahead=0.4, ahead_ratio=0.6))
    ratios = []
    for level in (batch.conditions.left_sigma, batch.conditions.right_sigma):
        ratio = level / batch.sigma
        ahead = level < batch.sigma
        ratios.append(ratio)
        assert torch.equal(level[~ahead], batch.sigma[~ahead])
        assert frequency(ahead) == pytest.approx(0.4, abs=0.01)
        quantiles = ratio[ahead].quantile(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
        assert torch.allclose(quantiles, torch.tensor([0.6, 0.7, 0.8, 0.9, 1.0]), atol=0.01)
    assert torch.corrcoef(torch.stack(ratios))[0, 1].abs() < 0.02


def test_no_neighbour_is_ahead_when_that_is_never_asked():
    batch = drawn(ObjectiveConfig(overlap=OVERLAP, ahead=0.0))
    assert torch.equal(batch.conditions.left_sigma, batch.sigma)
    assert torch.equal(batch.conditions.right_sigma, batch.sigma)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_row_and_neighbours_carry_independent_noise_of_their_own_level(name):
    batch = drawn(name=name)
    c, clean = batch.conditions, batch.clean
    own = (batch.noisy - clean) / batch.sigma[:, None, None]
    left = (c.left - clean[:, :OVERLAP]) / c.left_sigma[:, None, None]
    right = (c.right - clean[:, -OVERLAP:]) / c.right_sigma[:, None, None]
    for noise in (own, left, right):
        assert noise.mean() == pytest.approx(0, abs=0.01)
        assert noise.std() == pytest.approx(1, abs=0.01)
    for a, b in ((own[:, :OVERLAP], left), (own[:, -OVERLAP:], right), (left, right)):
        assert torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1].abs() < 0.01
    assert torch.equal(c.start, clean[:, 0])
    assert torch.equal(c.goal, clean[:, -1])


def test_the_same_generator_draws_the_same_batch():
    first, again, other = drawn(), drawn(), drawn(seed=1)
    for a, b in zip(first.conditions.tensors(), again.conditions.tensors(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(first.noisy, again.noisy)
    assert not torch.equal(first.noisy, other.noisy)


def test_loss_by_hand():
    nothing = torch.zeros(2)
    conditions = Conditions(*[torch.zeros(2, 1, 1)] * 6, *[nothing] * 4)
    clean = torch.tensor([[[1.0], [2.0]], [[3.0], [5.0]]])
    batch = NoisyBatch(clean, clean * 7, torch.tensor([0.5, 2.0]), conditions)

    def off_by(x, sigma, conditions):
        return x / 7 + torch.tensor([[[1.0], [3.0]], [[0.0], [2.0]]])

    # Mean squared errors of the rows: (1 + 9)/2 = 5 and (0 + 4)/2 = 2.
    assert loss(off_by, batch, formulation("paper")) == pytest.approx((5 + 2) / 2)
    # λ(σ) = (σ² + ¼)/(σ/2)²: 8 at σ = ½ and 4.25 at σ = 2.
    assert loss(off_by, batch, formulation("default")) == pytest.approx((8 * 5 + 4.25 * 2) / 2)


@pytest.mark.parametrize(("drop", "state"), [(0.6, 0.5), (-0.1, 0.3), (0.1, -0.3)])
def test_impossible_probabilities_are_named(drop, state):
    with pytest.raises(UserError, match=f"drop {drop} and state {state}"):
        ObjectiveConfig(drop=drop, state=state)


@pytest.mark.parametrize("field", fields(ObjectiveConfig), ids=lambda field: field.name)
def test_every_setting_refuses_nan(field):
    with pytest.raises(UserError, match=f"{field.name} must .* not nan"):
        ObjectiveConfig(**{field.name: float("nan")})


@pytest.mark.parametrize("field", ["ahead", "ahead_ratio"])
@pytest.mark.parametrize("value", [-0.1, 1.1, True])
def test_what_is_no_probability_is_named(field, value):
    with pytest.raises(UserError, match=f"{field} must lie between 0 and 1, not {value}"):
        ObjectiveConfig(**{field: value})


def test_conditions_are_sliced_joined_and_dropped():
    c = drawn().conditions
    halves = Conditions.cat([c[:7], c[7:]])
    assert all(torch.equal(a, b) for a, b in zip(c.tensors(), halves.tensors(), strict=True))
    assert not any(mask.any() for mask in c.dropped().tensors()[-4:])
    assert torch.equal(c.dropped().left, c.left)


def test_the_papers_three_losses_come_equally_often_and_both_sides_are_dropped_together():
    c = drawn(ObjectiveConfig(overlap=OVERLAP, sides="losses", nothing=0.2, drop=0.0)).conditions
    told = torch.stack([c.has_left, c.has_right, c.has_start, c.has_goal], dim=1)
    kinds, counts = told.unique(dim=0, return_counts=True)
    shares = {tuple(kind): count / ROWS for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}
    third = pytest.approx(0.8 / 3, abs=0.01)
    assert shares == {
        (0, 0, 0, 0): pytest.approx(0.2, abs=0.01), (1, 1, 0, 0): third, (0, 1, 1, 0): third, (1, 0, 0, 1): third,
    }  # fmt: skip


def test_more_rows_can_be_told_nothing():
    c = drawn(ObjectiveConfig(overlap=OVERLAP, nothing=0.1, drop=0.15, state=0.3)).conditions
    told = torch.stack([c.has_left, c.has_right, c.has_start, c.has_goal]).sum(0)
    assert frequency(told == 0) == pytest.approx(0.1 + 0.9 * 0.15**2, abs=0.01)


def test_a_neighbour_can_be_one_step_ahead():
    batch = drawn(ObjectiveConfig(overlap=OVERLAP, ahead_by="step"), name="paper")
    table = cosine_table().float()
    step = torch.searchsorted(table, batch.sigma)
    for level in (batch.conditions.left_sigma, batch.conditions.right_sigma):
        ahead = step - torch.searchsorted(table, level)
        assert torch.equal(table[torch.searchsorted(table, level)], level)
        assert set(ahead.tolist()) == {0, 1}
        assert frequency(ahead) == pytest.approx(0.5, abs=0.01)


def test_a_step_needs_a_formulation_with_steps():
    with pytest.raises(UserError, match="ahead_by step needs the steps of formulation paper"):
        drawn(ObjectiveConfig(overlap=OVERLAP, ahead_by="step"))


def test_ratios_can_be_log_uniform():
    batch = drawn(ObjectiveConfig(overlap=OVERLAP, ahead=1.0, ahead_by="log-uniform", ahead_ratio=0.1))
    ratio = (batch.conditions.left_sigma / batch.sigma).log10()
    quantiles = ratio.quantile(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
    assert torch.allclose(quantiles, torch.tensor([-1.0, -0.75, -0.5, -0.25, 0.0]), atol=0.01)


def test_known_ends_are_held():
    c = drawn().conditions
    held = c.held(torch.full((ROWS, HORIZON, DIM), 9.0))
    start, goal = c.has_start > 0, c.has_goal > 0
    assert torch.equal(held[start, 0], c.start[start])
    assert torch.equal(held[goal, -1], c.goal[goal])
    assert (held[~start, 0] == 9).all()
    assert (held[~goal, -1] == 9).all()
    assert (held[:, 1:-1] == 9).all()
    assert not c.alone().has_left.any()
    assert torch.equal(c.alone().has_start, c.has_start)
