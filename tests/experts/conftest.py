from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser.experts.config import expert_config
from compdiffuser.experts.networks import Actor


@pytest.fixture
def small():
    """An ant's training that takes a second."""
    return replace(
        expert_config("ant"), steps=192, random_steps=64, environments=4, batch=16, replay=256, log_every=96,
        checkpoint_every=64, actor_hidden=(16, 16), critic_hidden=(16, 16),
    )  # fmt: skip


@pytest.fixture
def actor_weights():
    """An untrained ant's actor, as arrays."""
    torch.manual_seed(0)
    return {name: weight.numpy() for name, weight in Actor(29, (32, 32), 8).state_dict().items()}


@pytest.fixture(autouse=True)
def _global_randomness():
    before = np.random.get_state()  # noqa: NPY002
    yield
    np.random.set_state(before)  # noqa: NPY002
