import pytest
import torch
from hand_made import DIM, HORIZON, OVERLAP, chains_of, walk

from compdiffuser.compose.merge import merge, split
from compdiffuser.compose.score import PROBES, consistent, overlap_distance, reconstruction_errors, worst


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


def test_consistent_chunks_are_cut_from_the_merged_plans():
    chains = chains_of(3, 1, 2, 3)
    chunks = random(len(chains), HORIZON, DIM)
    agreed = consistent(chunks, chains, OVERLAP)
    for c in range(4):
        rows = chains.rows(c)
        assert torch.allclose(merge(agreed[rows], OVERLAP), merge(chunks[rows], OVERLAP), atol=1e-6)
        assert overlap_distance(agreed[rows], OVERLAP) == 0


def test_a_denoiser_that_knows_the_plan_finds_no_error():
    chains = chains_of(3, 2)
    errors = reconstruction_errors(
        lambda x, sigma, c: torch.full_like(x, 2.0), torch.full((5, HORIZON, DIM), 2.0), chains, OVERLAP
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
    assert torch.allclose(reconstruction_errors(pulled, chunks, chains, OVERLAP), expected, rtol=1e-4, atol=1e-6)
    assert torch.allclose(reconstruction_errors(pulled, chunks, chains, OVERLAP, [0.5]), pull**2 / 0.25, atol=1e-5)


def test_a_denoiser_that_changes_nothing_leaves_the_noise():
    chains = chains_of(*[2] * 200)
    errors = reconstruction_errors(lambda x, sigma, c: x, random(400, HORIZON, DIM), chains, OVERLAP)
    assert errors.mean() == pytest.approx(1, abs=0.02)


def test_neighbours_are_noisy_copies_of_the_plan_with_noise_of_their_own():
    chains = chains_of(*[3] * 300)
    rows = len(chains)
    chunks = random(rows, HORIZON, DIM)

    def spying(x, sigma, c):
        known = chunks.repeat(len(PROBES), 1, 1)
        assert torch.allclose(sigma, torch.tensor(PROBES).repeat_interleave(rows))
        own = (x - known) / sigma[:, None, None]
        left = (c.left - known[:, :OVERLAP]) / c.left_sigma[:, None, None]
        right = (c.right - known[:, -OVERLAP:]) / c.right_sigma[:, None, None]
        for a, b in ((own[:, :OVERLAP], left), (own[:, -OVERLAP:], right), (left, right)):
            assert b.std() == pytest.approx(1, abs=0.02)
            assert torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1].abs() < 0.02
        assert torch.equal(c.has_left, chains.has_left.float().repeat(len(PROBES)))
        assert torch.equal(c.has_left + c.has_start, torch.ones(len(x)))
        assert torch.equal(c.has_right + c.has_goal, torch.ones(len(x)))
        return x

    reconstruction_errors(spying, chunks, chains, OVERLAP)


def test_a_chunk_far_from_the_data_stands_out():
    truth = walk(HORIZON, spread=0.5, dim=DIM)
    chains = chains_of(1, 1, 1)
    typical = truth.mean.float()
    zigzag = typical + 0.8 * torch.tensor([1.0, -1.0]).repeat(HORIZON // 2)[:, None]
    chunks = torch.stack([typical, typical, zigzag])
    # Ends that fit the chunks: only the shape between them can be wrong.
    chains.start.copy_(chunks[:, 0])
    chains.goal.copy_(chunks[:, -1])
    errors = reconstruction_errors(truth, chunks, chains, OVERLAP)
    assert errors[2] > 10 * errors[:2].max()


def test_a_plan_has_the_same_error_alone_and_in_a_batch():
    chains = chains_of(3, 2, 4)
    chunks = random(len(chains), HORIZON, DIM)
    truth = walk(HORIZON, dim=DIM)
    together = reconstruction_errors(truth, chunks, chains, OVERLAP)
    part, rows = chains.select(torch.tensor([2]))
    assert torch.allclose(reconstruction_errors(truth, chunks[rows], part, OVERLAP), together[rows], rtol=1e-5)


def test_the_worst_chunk_speaks_for_its_chain():
    chains = chains_of(3, 1, 2)
    assert worst(torch.tensor([1.0, 5.0, 2.0, -4.0, 0.0, 3.0]), chains).tolist() == [5.0, -4.0, 3.0]
