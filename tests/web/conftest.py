"""A server with a tiny untrained planner: all that does not ask for good plans runs in a moment."""

from pathlib import Path

import numpy as np
import pytest
import torch
from live import client, serving

from compdiffuser.data.mazes import maze
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.models import Denoiser, DenoiserConfig
from compdiffuser.planning.calibration import calibrate
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.presets import Preset
from compdiffuser.types import Episodes
from compdiffuser.web.library import Library
from compdiffuser.web.settings import Settings

HORIZON, OVERLAP = 16, 4
PRESET = Preset(
    name="tiny", environment="pointmaze-medium-v0", maze="medium", recipe="", episodes=40, episode_steps=50,
    horizon=HORIZON, overlap=OVERLAP, max_chunks=3, step_limit=200, max_replans=1,
)  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Straight walks across the medium maze, and a network that has never seen them."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    left, right, bottom, top = maze("medium").extent
    start, end = rng.uniform([left, bottom], [right, top], (2, 40, 1, 2))
    states = (start + (end - start) * np.linspace(0, 1, 50)[None, :, None]).reshape(-1, 2).astype(np.float32)
    episodes = Episodes.from_terminals(states, np.zeros_like(states), np.arange(len(states)) % 50 == 49)
    denoiser = Denoiser(DenoiserConfig(horizon=HORIZON, overlap=OVERLAP, width=16, depth=1, heads=2, patch=4))
    normalizer = Normalizer.from_data(episodes.observations)
    calibration = calibrate(denoiser, Windows.from_episodes(episodes, (0, 1), normalizer, HORIZON), OVERLAP)
    return Checkpoint(denoiser, normalizer, calibration, PRESET).save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def library(folder) -> Library:
    return Library([str(folder)], "cpu")


@pytest.fixture(scope="session")
def address(library):
    with serving(Settings(), library) as (address, _):
        yield address


@pytest.fixture
def tiny_client(address):
    return client.Client(address)
