import pytest
import torch

from compdiffuser.data import augment
from compdiffuser.data.augment import Clusters, joined, kmeans, nearest
from compdiffuser.types import UserError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(clusters: int = 6, each: int = 200, width: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Points around corners of a lattice that are far apart, in random order; where they belong; the corners."""
    corners = torch.stack([10.0 * ((torch.arange(clusters) >> bit) & 1) for bit in range(width)], 1)
    truth = torch.arange(clusters).repeat(each)[torch.randperm(clusters * each, generator=generator())]
    return corners[truth] + 0.3 * torch.randn(len(truth), width, generator=generator(1)), truth, corners


def test_clusters_that_lie_apart_are_found():
    points, truth, corners = blobs()
    centers = kmeans(points, 6)
    found = nearest(corners, centers)
    assert sorted(found.tolist()) == list(range(6))
    torch.testing.assert_close(centers[found].float(), corners, atol=0.1, rtol=0)
    assert torch.equal(nearest(points, centers), found[truth])


def test_the_same_seed_gives_the_same_centres_and_chunks_do_not_matter(monkeypatch):
    points = torch.rand(5000, 2, generator=generator())
    centers = kmeans(points, 15, seed=3)
    assert torch.equal(kmeans(points, 15, seed=3), centers)
    assert not torch.equal(kmeans(points, 15, seed=4), centers)
    monkeypatch.setattr(augment, "CHUNK", 700)
    torch.testing.assert_close(kmeans(points, 15, seed=3), centers)
    assert torch.equal(nearest(points, centers), torch.cdist(points.double(), centers).argmin(1))


def test_centres_sought_in_a_sample_are_as_good_as_those_sought_in_all(monkeypatch):
    points = torch.randn(6000, 2, generator=generator())

    def error(centers: torch.Tensor) -> float:
        return torch.cdist(points.double(), centers).amin(1).square().mean().item()

    whole = error(kmeans(points, 20))
    monkeypatch.setattr(augment, "SAMPLE", 1000)
    assert error(kmeans(points, 20)) < 1.05 * whole


def test_as_many_clusters_as_points_and_points_that_coincide():
    points = torch.arange(5.0)[:, None]
    assert sorted(Clusters.fit(points, 5).labels.tolist()) == list(range(5))
    same = Clusters.fit(torch.zeros(9, 2), 3)
    assert same.counts.sum() == 9
    rows = torch.arange(9)
    assert set(same.neighbours(rows, torch.rand(9, generator=generator())).tolist()) <= set(range(9))


def test_neighbours_are_drawn_from_the_same_cluster_all_alike():
    labels = torch.tensor([2, 0, 2, 1, 2, 0, 2])
    clusters = Clusters.from_labels(labels, 4)
    assert clusters.counts.tolist() == [2, 1, 4, 0]
    rows = torch.arange(7).repeat(20_000)
    drawn = clusters.neighbours(rows, torch.rand(len(rows), generator=generator()))
    assert torch.equal(labels[drawn], labels[rows])
    shares = torch.bincount(drawn[rows == 0], minlength=7) / 20_000
    assert shares.tolist() == pytest.approx([0.25, 0, 0.25, 0, 0.25, 0, 0.25], abs=0.015)
    # The largest number below 1 reaches no further than the last member.
    assert clusters.neighbours(torch.tensor([0, 3]), torch.full((2,), 1 - 2**-24)).tolist() == [6, 3]


def test_joining_goes_on_in_an_episode_of_the_same_cluster_to_its_end():
    # Episodes are rows 0–3, 4–7 and 8–9. Rows 2 and 5 share a cluster, every other row has one of its own.
    labels = torch.tensor([0, 1, 2, 3, 4, 2, 5, 6, 7, 8])
    last = torch.tensor([3] * 4 + [7] * 4 + [9] * 2)
    clusters = Clusters.from_labels(labels, 9)

    def reached(row: int) -> set[int]:
        return set(
            joined(clusters, last, torch.full((4000,), row), torch.rand(2, 4000, generator=generator())).tolist()
        )

    assert reached(2) == reached(5) == {2, 3, 5, 6, 7}
    assert reached(1) == {1, 2, 3}
    assert reached(8) == {8, 9}
    assert reached(9) == {9}


@pytest.mark.parametrize(
    ("clusters", "sentence"),
    [(6, "6 clusters were asked for, but there are only 5 states"), (0, "at least 1 cluster, not 0")],
)
def test_numbers_of_clusters_that_cannot_be_are_named(clusters, sentence):
    with pytest.raises(UserError, match=sentence):
        Clusters.fit(torch.rand(5, 2), clusters)
