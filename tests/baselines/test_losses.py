"""Formulas against values computed by hand."""

import math

import pytest
import torch
import torch.nn.functional as F

from compdiffuser.baselines.crl import contrast
from compdiffuser.baselines.losses import advantage_weights, climb_and_clone, expectile_loss, weighted_cloning
from compdiffuser.baselines.networks import log_probability


def test_expectile_loss_by_hand():
    advantage = torch.tensor([[2.0, -1.0, 0.0]])
    difference = torch.tensor([[3.0, 2.0, -1.0]])
    # 0.9 · 9, 0.1 · 4, 0.9 · 1
    assert expectile_loss(advantage, difference, 0.9).tolist() == [pytest.approx([8.1, 0.4, 0.9])]


def test_an_expectile_is_what_the_loss_is_smallest_at():
    """The τ-expectile m of numbers x solves τ·Σ(x − m)₊ = (1 − τ)·Σ(m − x)₊: for 0 and 1 it is τ."""
    m = torch.linspace(0, 1, 1001)
    difference = torch.tensor([[0.0], [1.0]]) - m
    assert m[expectile_loss(difference, difference, 0.9).sum(0).argmin()].item() == pytest.approx(0.9)


def test_advantage_weights_by_hand_and_their_limit():
    advantage = torch.tensor([0.0, 0.1, -0.5, 0.46, 0.47, 5.0, 1e6], requires_grad=True)
    weights = advantage_weights(advantage, 10.0)
    expected = [1.0, math.e, math.exp(-5), math.exp(4.6), 100.0, 100.0, 100.0]
    assert weights.tolist() == pytest.approx(expected, rel=1e-5)
    assert not weights.requires_grad


def test_log_probability_is_that_of_a_standard_normal():
    mean, actions = torch.randn(2, 3, 5, 2, generator=torch.Generator().manual_seed(0))
    expected = torch.distributions.Normal(mean, 1.0).log_prob(actions).sum(-1)
    torch.testing.assert_close(log_probability(mean, actions), expected)


def test_weighted_cloning_by_hand():
    mean, actions = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[[1.0], [1.0]]])
    constant = 0.5 * math.log(2 * math.pi)
    expected = (2 * (0.5 + constant) + 3 * constant) / 2
    assert weighted_cloning(mean, actions, torch.tensor([[2.0, 3.0]])).item() == pytest.approx(expected)


def test_climbing_is_scaled_by_the_size_of_q_and_cloning_by_alpha():
    mean, actions = torch.zeros(1, 2, 1), torch.tensor([[[1.0], [2.0]]])
    q = torch.tensor([[-30.0, 10.0]], requires_grad=True)
    loss = climb_and_clone(q, mean, actions, alpha=0.1)
    cloning = 0.5 * math.log(2 * math.pi) + (0.5 + 2.0) / 2
    assert loss.item() == pytest.approx(10 / 20 + 0.1 * cloning, rel=1e-5)
    loss.sum().backward()
    assert q.grad.tolist() == [pytest.approx([-0.5 / 20] * 2)]  # the divisor is a constant


def test_binary_nce_of_three_by_three_logits_by_hand():
    logits = torch.tensor([[2.0, -1.0, 0.5], [0.0, 1.0, -2.0], [-0.5, 0.3, 3.0]])

    def log_sigmoid(x: float) -> float:
        return -math.log(1 + math.exp(-x))

    rows = logits.tolist()
    expected = -sum(log_sigmoid(rows[i][j] if i == j else -rows[i][j]) for i in range(3) for j in range(3)) / 9
    assert contrast(logits).item() == pytest.approx(expected, rel=1e-6)
    independent = F.binary_cross_entropy_with_logits(logits, torch.eye(3))
    assert contrast(torch.stack([logits, logits])).tolist() == pytest.approx([independent.item()] * 2, rel=1e-6)
