"""One command trains each method on a small dataset in seconds: short ways are found, near goals told from far ones.

A young critic cannot lead an actor alone, so GCIQL gets a heavier cloning term here, and targets that follow faster.
"""

import numpy as np
import pytest
import torch
from short_ways import LAYOUT, RandomPolicy, success

from compdiffuser.baselines.checkpoint import load
from compdiffuser.cli.train import Train

UPDATES = {"gcbc": 500, "gcivl": 700, "gciql": 1000, "qrl": 900, "crl": 600, "hiql": 600}
LONG = ("gciql", "qrl", "crl", "hiql")
SMALL = ("hidden=[128,128]", "batch=128", "learning_rate=1e-3")
CHANGES = {
    "gciql": ("batch=256", "alpha=0.3", "target_rate=0.02"),
    "qrl": ("latent=32",),
    "crl": ("latent=64",),
}


@pytest.mark.slow
def test_chance_reaches_nothing():
    assert success(RandomPolicy()) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [pytest.param(method, marks=pytest.mark.long) if method in LONG else method for method in UPDATES]
)
def test_short_ways_are_found_and_near_goals_told_from_far_ones(medium_file, method, tmp_path):
    settings = (*SMALL, *CHANGES.get(method, ()))
    command = Train(
        str(medium_file), method=method, steps=UPDATES[method], set=settings, out=tmp_path, device="cpu", json=True
    )
    assert command.run() == 0
    policy = load(tmp_path).policy()
    if method != "crl":  # its actor reaches next to nothing in the published figures either
        assert success(policy) >= 0.4
    if method != "gcbc":  # it has no value function
        assert ranking(policy.agent) >= 0.75


def ranking(agent) -> float:
    """How often a goal one cell away is worth more than one six cells away from the same start."""
    triples = [
        (start, near, far)
        for start in LAYOUT.free_cells
        for near in np.argwhere(LAYOUT.distances(start) == 1)
        for far in np.argwhere(LAYOUT.distances(start) == 6)
    ]
    start, near, far = (
        torch.as_tensor(LAYOUT.center(c), dtype=torch.float32)[None] for c in zip(*triples, strict=True)
    )
    with torch.no_grad():
        right = agent.value(start, near) > agent.value(start, far)
    assert right.shape == (1, len(triples))
    return float(right.float().mean())
