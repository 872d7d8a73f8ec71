from dataclasses import replace

import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, walk

from compdiffuser.compose.merge import BLENDINGS, merge, split
from compdiffuser.compose.score import (
    consistent,
    endpoint_gap,
    longest_step,
    overlap_distance,
    overlap_distances,
    reconstruction_errors,
    worst,
)
from compdiffuser.domains.space import Group, Space

PROBES = (0.2, 0.2, 0.5)


def everything(states: torch.Tensor) -> torch.Tensor:
    """Where all planned dimensions are positions."""
    return states


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_overlap_distance_is_zero_for_chunks_of_one_trajectory():
    trajectory = random(5, 4 * HORIZON - 3 * OVERLAP, DIM)
    chunks = split(trajectory, 4, HORIZON, OVERLAP)
    assert torch.equal(overlap_distance(chunks, OVERLAP), torch.zeros(5))


def test_overlap_distance_by_hand():
    chunks = torch.zeros(3, HORIZON, 2)
    chunks[1, :OVERLAP] = torch.tensor([3.0, 4.0])  # one of two overlaps is 5 apart everywhere
    assert overlap_distance(chunks, OVERLAP) == pytest.approx(2.5)
    chunks[1, OVERLAP:-OVERLAP] = 9  # what is not shared does not count
    assert overlap_distance(chunks, OVERLAP) == pytest.approx(2.5)


def test_a_single_chunk_has_no_overlap():
    assert torch.equal(overlap_distance(random(4, 1, HORIZON, DIM), OVERLAP), torch.zeros(4))


@pytest.mark.parametrize("blending", BLENDINGS)
def test_consistent_chunks_are_cut_from_the_plans_merged_with_the_same_blending(blending):
    chains = chains_of(3, 1, 2, 3)
    chunks = random(len(chains), HORIZON, DIM)
    agreed = consistent(chunks, chains, OVERLAP, blending)
    for c in range(4):
        rows = chains.rows(c)
        plan = merge(chunks[rows], OVERLAP, blending)
        assert torch.equal(agreed[rows], split(plan, len(chunks[rows]), HORIZON, OVERLAP))
        assert torch.allclose(merge(agreed[rows], OVERLAP, blending), plan, atol=1e-6)
        assert overlap_distance(agreed[rows], OVERLAP) == 0


def test_chunks_are_blended_exponentially_unless_asked_otherwise():
    chains = chains_of(3)
    chunks = random(3, HORIZON, DIM)
    assert torch.equal(consistent(chunks, chains, OVERLAP), consistent(chunks, chains, OVERLAP, "exponential"))
    assert not torch.allclose(consistent(chunks, chains, OVERLAP), consistent(chunks, chains, OVERLAP, "linear"))


def test_a_denoiser_that_knows_the_plan_finds_no_error():
    chains = chains_of(3, 2)
    errors = reconstruction_errors(
        lambda x, sigma, c: torch.full_like(x, 2.0), torch.full((5, HORIZON, DIM), 2.0), chains.key, OVERLAP, PROBES
    )
    assert torch.equal(errors, torch.zeros(5))


def test_a_constant_pull_is_measured_in_units_of_the_noise():
    chains = chains_of(3, 2)
    chunks = random(5, HORIZON, DIM)
    pull = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4])

    def pulled(x, sigma, c):
        known = chunks.repeat(len(x) // 5, 1, 1)
        return known + pull.repeat(len(x) // 5)[:, None, None]

    expected = pull**2 * sum(1 / level**2 for level in PROBES) / len(PROBES)
    errors = reconstruction_errors(pulled, chunks, chains.key, OVERLAP, PROBES)
    assert torch.allclose(errors, expected, rtol=1e-4, atol=1e-6)
    # In units of what is usual: half as usual, half as much again.
    errors = reconstruction_errors(pulled, chunks, chains.key, OVERLAP, [0.5, 0.1], usual=[0.5, 10.0])
    assert torch.allclose(errors, pull**2 * (4 / 0.5 + 100 / 10) / 2, atol=1e-4)


def test_a_denoiser_that_changes_nothing_leaves_the_noise():
    chains = chains_of(*[2] * 200)
    errors = reconstruction_errors(lambda x, sigma, c: x, random(400, HORIZON, DIM), chains.key, OVERLAP, PROBES)
    assert errors.mean() == pytest.approx(1, abs=0.02)


def test_the_denoiser_is_told_nothing_and_every_probe_has_noise_of_its_own():
    chains = chains_of(*[3] * 300)
    rows = len(chains)
    chunks = random(rows, HORIZON, DIM)

    def spying(x, sigma, c):
        assert torch.allclose(sigma, torch.tensor(PROBES).repeat_interleave(rows))
        noise = ((x - chunks.repeat(len(PROBES), 1, 1)) / sigma[:, None, None]).view(len(PROBES), -1)
        assert noise.std(dim=1).tolist() == pytest.approx([1] * len(PROBES), abs=0.02)
        assert (torch.corrcoef(noise) - torch.eye(len(PROBES))).abs().max() < 0.05
        assert not any(mask.any() for mask in (c.has_left, c.has_right, c.has_start, c.has_goal))
        return x

    reconstruction_errors(spying, chunks, chains.key, OVERLAP, PROBES)


def test_a_chunk_far_from_the_data_stands_out():
    truth = walk(HORIZON, spread=0.5, dim=DIM)
    chains = chains_of(1, 1, 1)
    typical = truth.mean.float()
    zigzag = typical + 0.8 * torch.tensor([1.0, -1.0]).repeat(HORIZON // 2)[:, None]
    chunks = torch.stack([typical, typical, zigzag])
    errors = reconstruction_errors(truth, chunks, chains.key, OVERLAP, PROBES)
    assert errors[2] > 10 * errors[:2].max()


def test_a_plan_has_the_same_error_alone_and_in_a_batch():
    chains = chains_of(3, 2, 4)
    chunks = random(len(chains), HORIZON, DIM)
    truth = walk(HORIZON, dim=DIM)
    together = reconstruction_errors(truth, chunks, chains.key, OVERLAP, PROBES)
    part, rows = chains.select(torch.tensor([2]))
    alone = reconstruction_errors(truth, chunks[rows], part.key, OVERLAP, PROBES)
    assert torch.allclose(alone, together[rows], rtol=1e-5)


def test_the_worst_chunk_speaks_for_its_chain():
    chains = chains_of(3, 1, 2)
    assert worst(torch.tensor([1.0, 5.0, 2.0, -4.0, 0.0, 3.0]), chains).tolist() == [5.0, -4.0, 3.0]


def test_ragged_overlap_distances_are_those_of_each_chain():
    chains = chains_of(3, 1, 2, 3)
    chunks = random(len(chains), HORIZON, DIM)
    expected = [float(overlap_distance(chunks[chains.rows(c)], OVERLAP)) for c in range(4)]
    assert overlap_distances(chunks, chains, OVERLAP).tolist() == pytest.approx(expected)


def test_the_longest_step_and_the_missed_ends_of_each_chain():
    chains = chains_of(2, 1)
    chunks = torch.zeros(3, HORIZON, DIM)
    chunks[1, 5] = 3.0
    assert longest_step(chunks, chains, everything).tolist() == pytest.approx([3.0 * DIM**0.5, 0.0])
    chains.start.copy_(torch.tensor([[0.3], [9.0], [0.1]]).expand(3, DIM))
    chains.goal.copy_(torch.tensor([[9.0], [0.2], [0.5]]).expand(3, DIM))
    expected = torch.tensor([0.3, 0.5]) * DIM**0.5
    gaps = endpoint_gap(chunks, chains, everything)
    assert torch.allclose(gaps, expected), "inner chunks have no end to miss"


@pytest.mark.parametrize("space", [Space((0, 1)), Space((0, 1, 4, 7)), Space((3, 0, 1), (Group("agent", (1, 2)),))])
def test_steps_and_gaps_are_measured_between_positions_alone(space):
    dim = len(space.dims)
    chains, positions = chains_of(3, 1, dim=dim), random(4, HORIZON, 2)
    chunks = 100 * random(4, HORIZON, dim)
    chunks[..., space.columns] = positions
    bare = replace(chains, start=space.places(chains.start), goal=space.places(chains.goal))
    assert torch.equal(longest_step(chunks, chains, space.places), longest_step(positions, bare, everything))
    assert torch.equal(endpoint_gap(chunks, chains, space.places), endpoint_gap(positions, bare, everything))
