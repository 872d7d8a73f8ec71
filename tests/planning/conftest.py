"""A tiny untrained planner on disk: enough for everything that does not ask for good plans."""

import numpy as np
import pytest
import torch

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.models import Denoiser, DenoiserConfig
from compdiffuser.planning.calibration import calibrate
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.support import measure_support
from compdiffuser.presets import Preset
from compdiffuser.types import Episodes

HORIZON, OVERLAP = 32, 12
LINES = Preset(
    name="lines", environment="", maze="", recipe="", episodes=40, episode_steps=50,
    horizon=HORIZON, overlap=OVERLAP, max_chunks=4,
)  # fmt: skip


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
    denoiser = Denoiser(DenoiserConfig(horizon=HORIZON, overlap=OVERLAP, width=32, depth=1, heads=2))
    with torch.no_grad():
        for parameter in denoiser.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    episodes = lines()
    normalizer = Normalizer.from_data(episodes.observations)
    windows = Windows.from_episodes(episodes, (0, 1), normalizer, HORIZON)
    support = measure_support(windows, count=512)
    return Checkpoint(denoiser, normalizer, calibrate(denoiser, windows, OVERLAP), LINES, support=support)


@pytest.fixture
def folder(tiny, tmp_path):
    return tiny.save(tmp_path / "tiny")
