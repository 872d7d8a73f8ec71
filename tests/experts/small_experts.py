"""Small experts for tests: trainings that take a second, actors that were not trained, bodies that are none."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch

from compdiffuser.experts.config import EXPERTS, ExpertConfig
from compdiffuser.experts.layout import moment, transition
from compdiffuser.experts.networks import Actor
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.tasks import task_of

TINY = {
    "steps": 192, "random_steps": 64, "environments": 4, "batch": 16, "updates_per_step": 1.0, "replay": 256,
    "log_every": 96, "checkpoint_every": 64, "measure_every": 192, "actor_hidden": (16, 16), "critic_hidden": (16, 16),
}  # fmt: skip


def tiny(name: str, **changes) -> ExpertConfig:
    """A training that takes a second."""
    return replace(EXPERTS[name], **TINY | changes)


def untrained(config: ExpertConfig, seed: int = 0) -> tuple[Actor, dict[str, np.ndarray]]:
    """An actor that was not trained, with inputs that it saw, and its weights as arrays."""
    torch.manual_seed(seed)
    with Simulators(config, 0, 1, 0) as bodies:
        sizes = bodies.transitions.widths
    actor = Actor(config, sizes["view"], task_of(config).shown, sizes["action"])
    if actor.normalizer is not None:
        actor.normalizer.see(3 * torch.randn(100, sizes["view"]) + 1)
    return actor, {name: weight.numpy() for name, weight in actor.state_dict().items()}


def imaginary(view: int, action: int, ingredients: int, count: int = 10) -> SimpleNamespace:
    """What a learner wants to know of bodies, without bodies."""
    shapes = {"moments": moment(view, view + 2), "transitions": transition(view, action, ingredients)}
    return SimpleNamespace(count=count, actions=np.zeros((count, action), np.float32), **shapes)
