"""A tiny untrained planner on disk: enough for everything that does not ask for good plans."""

import numpy as np
import pytest
import torch

from compdiffuser import PlanConfig, Planner, SamplerConfig
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import PLANE, Domain
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.planning.recorded.support import measure_support
from compdiffuser.presets import ChunkConfig, Preset
from compdiffuser.types import Episodes

torch.set_num_threads(1)  # the networks here are tiny, and tests run side by side
HORIZON, OVERLAP = 32, 12
LINES = Preset("lines", Domain("lines"), chunks=ChunkConfig(HORIZON, OVERLAP, most=4))


def lines(count: int = 40, length: int = 50, seed: int = 0) -> Episodes:
    """Straight walks across a 10 × 10 square."""
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(-5, 5, (2, count, 1, 2))
    states = start + (end - start) * np.linspace(0, 1, length)[None, :, None]
    flags = np.zeros((count, length), bool)
    flags[:, -1] = True
    observations = states.reshape(-1, 2).astype(np.float32)
    return Episodes.from_terminals(observations, np.zeros_like(observations), flags.reshape(-1))


@pytest.fixture(scope="session")
def tiny() -> Checkpoint:
    torch.manual_seed(0)
    denoiser = Denoiser(DenoiserConfig(HORIZON, OVERLAP, network=DiT1dConfig(width=32, depth=1, heads=2)))
    with torch.no_grad():
        for parameter in denoiser.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    episodes = lines()
    normalizer = Normalizer.from_data(episodes.observations)
    windows = Windows.from_episodes(episodes, PLANE, normalizer, HORIZON)
    support = measure_support(windows, count=512)
    return Checkpoint(denoiser, normalizer, calibrate(denoiser, windows, OVERLAP), LINES, support=support)


@pytest.fixture
def folder(tiny, tmp_path):
    return tiny.save(tmp_path / "tiny")


@pytest.fixture
def small(tiny) -> Planner:
    """A planner that denoises for two steps."""
    return Planner(tiny, "cpu", PlanConfig(sampler=SamplerConfig(steps=2, repeats=1), wave=2, refine=None))
