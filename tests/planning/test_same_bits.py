"""The same seed gives the same bits, alone and in a batch: on a CPU with one thread, as the docs say."""

import numpy as np
import pytest
import torch

from compdiffuser import Disc, Steering
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.planning.planner import Planner

START, GOAL = [-1, 1], [-1, -1]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def shipped():
    """Its chunks are 40 states, so few rows are few tokens."""
    return Planner.from_pretrained("robotics-pointmaze-umaze-v0", "cpu").with_sampler(steps=2, repeats=2)


def test_a_plan_has_the_same_bits_alone_and_in_a_batch(shipped):
    starts, goals, seeds = [START, [1, 1], [0, -1], [1, -1]], [GOAL, [1, -1], START, [0, 1]], [0, 1, 2, 3]
    for chunks in (1, 3):
        together = shipped.plan_batch(starts, goals, n_chunks=chunks, n_candidates=2, seed=seeds)
        for start, goal, seed, plan in zip(starts, goals, seeds, together, strict=True):
            alone = shipped.plan(start, goal, n_chunks=chunks, n_candidates=2, seed=seed)
            np.testing.assert_array_equal(alone.states, plan.states)
            np.testing.assert_array_equal(alone.scores, plan.scores)
            assert alone.verdict == plan.verdict


def test_a_plan_has_the_same_bits_beside_one_that_is_steered_otherwise(shipped):
    steerings = [None, Steering.of(avoid=[Disc((0.5, 0.0), 0.1)]), Steering.of(via=[(1, 0)])]
    options = {"n_chunks": 3, "n_candidates": 2}
    together = shipped.plan_batch([START] * 3, [GOAL] * 3, seed=[0, 1, 2], steering=steerings, **options)
    for seed, (steering, plan) in enumerate(zip(steerings, together, strict=True)):
        (alone,) = shipped.plan_batch([START], [GOAL], seed=seed, steering=steering, **options)
        np.testing.assert_array_equal(alone.states, plan.states)
        assert alone.verdict == plan.verdict


def test_a_row_of_a_network_has_the_same_bits_alone_and_among_others():
    torch.manual_seed(0)
    network = DiT1dConfig(width=64, depth=2).build(8, 2, 200, 160).requires_grad_(False)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    inputs, features = torch.randn(24, 160, 8), torch.randn(24, 200)
    together = network(inputs, features)
    for rows in (1, 2, 5, 11, 15, 16, 17):
        assert torch.equal(network(inputs[:rows], features[:rows]), together[:rows])
