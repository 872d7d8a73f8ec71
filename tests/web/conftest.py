"""A server with a tiny untrained planner, quick where plans need not be good; and the page with a shipped one."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import INSTALL, LINK, MODEL, PATIENCE, PLANNING, POSED, SOCCER, WAYS, browsing, chromium, using
from live import client, serving

from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.windows import Windows
from compdiffuser.domains import domain
from compdiffuser.models import Denoiser, DenoiserConfig, DiT1dConfig
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.recorded.calibration import calibrate
from compdiffuser.presets import ChunkConfig, EvaluationConfig, ExecutionConfig, Preset
from compdiffuser.types import Episodes
from compdiffuser.web.library import Library
from compdiffuser.web.settings import Settings

HORIZON, OVERLAP = 16, 4
PRESET = Preset(
    "tiny", domain("pointmaze-medium"), chunks=ChunkConfig(HORIZON, OVERLAP, most=3),
    execution=ExecutionConfig(max_replans=1), evaluation=EvaluationConfig(step_limit=200),
)  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Straight walks across the medium maze, and a network that has never seen them."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    left, right, bottom, top = PRESET.maze.extent
    start, end = rng.uniform([left, bottom], [right, top], (2, 40, 1, 2))
    states = (start + (end - start) * np.linspace(0, 1, 50)[None, :, None]).reshape(-1, 2).astype(np.float32)
    episodes = Episodes.from_terminals(states, np.zeros_like(states), np.arange(len(states)) % 50 == 49)
    denoiser = Denoiser(DenoiserConfig(HORIZON, OVERLAP, network=DiT1dConfig(width=16, depth=1, heads=2, patch=4)))
    normalizer = Normalizer.from_data(episodes.observations)
    calibration = calibrate(denoiser, Windows.from_episodes(episodes, PRESET.space, normalizer, HORIZON), OVERLAP)
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


def _shipped(*models: str) -> Iterator[str]:
    with serving(Settings(timeout=PLANNING), Library(models, "cpu")) as (address, _):
        yield address


@pytest.fixture(scope="session")
def site():
    """A server with a shipped planner, for all tests of the page."""
    yield from _shipped(MODEL)


@pytest.fixture(scope="session")
def ways():
    """A server whose first planner knows a maze with more than one way."""
    yield from _shipped(WAYS, MODEL)


@pytest.fixture(scope="session")
def arena():
    """A server with planners of an ant and a ball."""
    yield from _shipped(SOCCER, POSED)


@pytest.fixture(scope="module")
def browser():
    if chromium() is None:
        pytest.skip(INSTALL)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright, browsing(playwright) as browser:
        yield browser


@pytest.fixture
def page(browser, site):
    """The page with a problem, ready to be planned; it may report no error."""
    with using(browser, site, LINK) as page:
        yield page
