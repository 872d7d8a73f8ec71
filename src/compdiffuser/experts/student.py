"""A student that imitates an expert from a poorer view, by DAgger (Ross et al., 2011).

The teacher sees the body in the frame of its heading; the student sees what OGBench's expert sees, in which there is no
heading. The student acts, more and more by itself, and learns what the teacher would have done in the states that it
gets into. The world has no north of its own: each batch is turned by random angles.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from compdiffuser.domains.body import BODIES
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.layout import Layout
from compdiffuser.experts.learner import Learner
from compdiffuser.experts.networks import Actor
from compdiffuser.experts.policy import Expert, load_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.tasks import in_frame
from compdiffuser.types import Array, UserError

NOISE = 0.2
"""Most of the noise on actions; each body draws its share of it anew at every step."""
TEACHER_LEAST, TEACHER_FADES = 0.1, 3.0
"""Share of steps that the teacher takes at the end, and how fast it gets there."""


def find_teacher(config: ExpertConfig, folder: Path | None) -> Expert:
    """The expert to imitate. Raises UserError where none was given, or one of another body or task."""
    if folder is None:
        raise UserError(f"{config.name} learns from an expert: give its folder with --teacher")
    teacher, taught = load_expert(folder)
    if (taught.body, taught.task) != (config.body, config.task):
        there = f"an expert for body '{taught.body}' and task '{taught.task}'"
        raise UserError(f"'{folder}' is {there}; {config.name} needs '{config.body}' and '{config.task}'")
    return teacher


class Student(Learner):
    """An actor that imitates another's mean actions."""

    measured = ("loss",)

    def __init__(self, config: ExpertConfig, bodies: Simulators, device: torch.device, teacher: Expert) -> None:
        super().__init__(config, bodies, device)
        self.teacher = Teacher(teacher, self.sizes["action"], device)
        self.learned = list(self.actor.network.parameters())
        self.optimize(self.learned)
        still, along, across = (torch.from_numpy(each).to(device) for each in turns(config, self.sizes["view"]))
        self.turns = torch.cat([still, along, across], dim=1)
        self.taught: Array = np.zeros((bodies.count, self.layout(bodies).width), np.float32)

    def layout(self, bodies: Simulators) -> Layout:
        return Layout(view=self.sizes["view"], command=2, action=self.sizes["action"])

    @torch.no_grad()
    def act(self, bodies: Simulators, steps: int, done: float) -> Array:
        """The teacher's or the student's action, with noise; what the teacher would do is kept."""
        view, command = (torch.from_numpy(bodies.part(name)).to(self.device) for name in ("view", "command"))
        if self.actor.normalizer is not None and steps < self.config.normalized_steps:
            self.actor.normalizer.see(view)
        taught = self.teacher(bodies)
        own = self.actor(self.actor.state(view, command))
        self.taught = torch.cat([view, command, taught], dim=1).cpu().numpy()
        draws = torch.rand(2, bodies.count, 1, device=self.device, generator=self.generator)
        mixed = torch.where(draws[0] < max(TEACHER_LEAST, 1 - TEACHER_FADES * done), taught, own)
        noise = torch.randn(own.shape, device=self.device, generator=self.generator)
        return (mixed + NOISE * draws[1] * noise).clamp(-1, 1).cpu().numpy()

    def kept(self, bodies: Simulators) -> Array:
        return self.taught

    def turned(self, view: Tensor, angle: Tensor) -> Tensor:
        """Views [B, n] as they were if the world were turned by angles [B]."""
        still, along, across = (view @ self.turns).chunk(3, -1)
        return still + angle.cos()[:, None] * along + angle.sin()[:, None] * across

    def _update(self) -> None:
        with torch.no_grad():
            parts = self.replay.sample(self.config.batch, self.generator)
            angle = 2 * math.pi * torch.rand(self.config.batch, device=self.device, generator=self.generator)
            state = self.actor.state(self.turned(parts["view"], angle), in_frame(parts["command"], -angle))
        with self.half():
            actions = self.actor(state)
        loss = (actions - parts["action"]).square().mean()
        # The spread of its actions is not learned.
        self.step((self.learned, torch.autograd.grad(loss, self.learned)))
        self.means += loss.detach()


class Teacher:
    """An expert's mean action for each body, on the device."""

    def __init__(self, expert: Expert, actions: int, device: torch.device) -> None:
        self.expert, self.device = expert, device
        inputs = expert.inputs - expert.task.shown
        self.actor = Actor(expert.config, inputs, expert.task.shown, actions)
        weights = {name: torch.from_numpy(np.array(w, np.float32)) for name, w in expert.weights.items()}
        self.actor.load_state_dict(weights, strict=False)
        self.actor.to(device).requires_grad_(False)

    def __call__(self, bodies: Simulators) -> Tensor:
        """[E, act]."""
        headings = bodies.part("heading")[:, 0]
        seen, shown = self.expert.sees(bodies.part("observation"), bodies.part("command"), headings, relative=True)
        state = (torch.from_numpy(each.astype(np.float32)).to(self.device) for each in (seen, shown))
        return self.actor(self.actor.state(*state))


def turns(config: ExpertConfig, width: int) -> tuple[Array, Array, Array]:
    """Matrices K, C, S [n, n] such that a view v becomes v·(K + cos α·C + sin α·S) when the world turns by α.

    The body is asked: to see the world from a heading −α is to see it turned by α.
    """
    each = np.concatenate([np.zeros((width, 2)), np.eye(width)], axis=1)
    none, quarter, half = (
        BODIES[config.body].egocentric(each, np.full(width, -angle)) for angle in (0.0, math.pi / 2, math.pi)
    )
    still, along = (none + half) / 2, (none - half) / 2
    return still.astype(np.float32), along.astype(np.float32), (quarter - still).astype(np.float32)
