"""A trained expert at work, evaluated in NumPy, and on disk: an artifact whose one part is its actor.

A single observation at a time is what a simulator asks for: a few small products in NumPy take a tenth of the time of
a call into torch, and worker processes need not import it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compdiffuser import artifact
from compdiffuser.artifact import Artifact
from compdiffuser.domains.body import BODIES
from compdiffuser.experts.config import ExpertConfig, expert_config
from compdiffuser.experts.tasks import task_of, view
from compdiffuser.files import pretrained_folder
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError

KIND, FORMAT, ACTOR = "expert", 2, "actor"
CLIP, SOFT, TINY = 10.0, 1e-2, 1e-5
"""Where scaled inputs end, and what is added to the spread of inputs and, in a layer norm, to a variance."""


class Expert:
    """Does what it is told. As a policy that records data, it adds Gaussian noise and clips; it pickles."""

    limit = 1.0 - 1e-6

    def __init__(
        self, config: ExpertConfig, weights: Mapping[str, Array], name: str = "expert", noise: float = 0.0
    ) -> None:
        self.config, self.name, self.noise = config, name, noise
        self.task, self.weights = task_of(config), dict(weights)
        layers = _layers(weights)
        last, bias = layers[-1]
        self.actions = len(last) // 2  # the other half is the spread
        layers[-1] = (last[: self.actions], bias[: self.actions])
        self.layers = [(np.ascontiguousarray(w.T, np.float32), b.astype(np.float32)) for w, b in layers]
        if config.layer_norm:  # which subtracts the mean: done once, in the layer before
            self.layers = [
                (w - w.mean(1, keepdims=True), b - b.mean()) if w.ndim == 2 else (w, b) for w, b in self.layers[:-1]
            ] + self.layers[-1:]
        self.inputs = len(next(w for w, _ in self.layers if w.ndim == 2))
        self.scale: tuple[Array, Array] | None = None
        if "normalizer.mean" in weights:
            spread = np.sqrt(weights["normalizer.variance"].astype(np.float32)) + np.float32(SOFT)
            self.scale = (weights["normalizer.mean"].astype(np.float32), spread)
        facing = BODIES[config.body].heading(np.zeros(2 + self.inputs))
        self.needs_heading = config.view == "egocentric" and facing is None
        """Whether it must be told where its body faces, because observations do not say."""

    def act(self, observations: Array, commands: Array, heading: Array | float | None = None) -> Array:
        """Actions [..., act] for a maze's observations [..., obs], which begin with x and y, and commands [..., 2].

        A command is a unit direction, or the x and y to which a ball shall go. `heading` [...] in radians is for those
        that need it.
        """
        seen, shown = self.sees(observations, commands, heading)
        return self.infer(np.concatenate([self._scaled(seen), shown], axis=-1))

    def sees(
        self, observations: Array, commands: Array, heading: Array | float | None = None, *, relative: bool = False
    ) -> tuple[Array, Array]:
        """What it sees of the body [..., n] and of the commands [..., c]; some are `relative` already."""
        if heading is None and self.needs_heading:
            raise UserError(f"{self.name} needs the heading of its body, which observations do not hold: give heading=")
        try:
            seen, frame = view(self.config, observations, None if heading is None else np.asarray(heading))
            told = commands if relative else self.task.relative(commands, observations)
            shown = self.task.show(told, frame)
        except (IndexError, ValueError):  # a body that is too narrow for its own slices
            seen = shown = np.zeros(0)
        if seen.shape[-1] + shown.shape[-1] != self.inputs:
            given = f"observations {list(observations.shape)} and commands {list(commands.shape)}"
            raise UserError(f"{self.name} is for the body '{self.config.body}', which does not fit {given}")
        return seen, shown

    def infer(self, state: Array) -> Array:
        """The network alone: actions [..., act] for states [..., inputs], a scaled view and a shown command."""
        x = state.astype(np.float32)
        for weight, bias in self.layers[:-1]:
            if weight.ndim == 2:
                x = x @ weight + bias
                x = x if self.config.layer_norm else self._activated(x)
            else:
                square = np.einsum("...i,...i", x, x)[..., None] / np.float32(x.shape[-1])
                x = x / np.sqrt(square + np.float32(TINY)) * weight + bias
                x = self._activated(x)
        weight, bias = self.layers[-1]
        return np.tanh(x @ weight + bias)

    def __call__(
        self, observation: Array, command: Array, rng: np.random.Generator, heading: float | None = None
    ) -> Array:
        """An action [act] with noise for one observation [obs] and command [2]."""
        action = self.act(observation, command, heading) + rng.normal(0.0, self.noise, self.actions)
        return np.minimum(np.maximum(action, -self.limit), self.limit)

    def _scaled(self, seen: Array) -> Array:
        if self.scale is None:
            return seen
        mean, spread = self.scale
        return np.clip((seen.astype(np.float32) - mean) / spread, -CLIP, CLIP)

    def _activated(self, x: Array) -> Array:
        return x / (1 + np.exp(-x)) if self.config.activation == "silu" else np.maximum(x, 0.0)


def _layers(weights: Mapping[str, Array]) -> list[tuple[Array, Array]]:
    """Weights and biases of linear layers [out, in] and layer norms [out], in their order."""
    numbers = sorted({int(key.split(".")[1]) for key in weights if key.startswith("network.")})
    return [(weights[f"network.{n}.weight"], weights[f"network.{n}.bias"]) for n in numbers]


def save_expert(folder: Path, weights: Mapping[str, Array], config: ExpertConfig, record: dict[str, Any]) -> None:
    """Leave an actor's weights, in half precision, and what made them in `folder`, whole or not at all."""
    kept = {name: w.astype(np.float16 if name.startswith("network.") else np.float32) for name, w in weights.items()}
    about = {"expert": config.to_dict(), "record": record}
    artifact.save(folder, Artifact(KIND, FORMAT, about, {ACTOR: kept}))


def load_expert(name_or_path: str | os.PathLike[str], noise: float = 0.0) -> tuple[Expert, ExpertConfig]:
    """A shipped expert by name, or one from a folder, with noise on the actions it takes as a policy.

    A folder that is called as a shipped expert is meant by its `Path`, or as ./NAME. Says where its training was cut
    off, or goes on. Raises UserError where there is none, or something is wrong with it.
    """
    folder = Path(name_or_path)
    named = isinstance(name_or_path, str) and os.sep not in name_or_path
    if (named and (pretrained_folder() / "experts" / folder).is_dir()) or not artifact.is_folder(folder):
        folder = pretrained_folder() / "experts" / expert_config(os.fspath(name_or_path)).name
    if not folder.is_dir():
        teacher = " --teacher FOLDER" if expert_config(folder.name).learner == "imitation" else ""
        command = f"compdiffuser data expert {folder.name}{teacher}"
        raise UserError(f"no {folder.name} expert is shipped; train one with: {command}")
    found = artifact.load(folder, KIND, FORMAT, (ACTOR,))
    with artifact.describing(folder, KIND):
        config = ExpertConfig.from_dict(found.config["expert"])
        record = artifact.record_of(found.config)
    if record.get("complete") is False:
        trained = f"{record.get('steps')} of {config.steps} steps"
        print(f"The expert in '{folder}' is not trained to its end ({trained}).", file=sys.stderr)
    try:
        # Other weights or another noise make another dataset, so both are in the name.
        name = f"{config.name}-expert-{found.hashes[ACTOR][:12]}-noise-{noise:g}"
        expert = Expert(config, found.parts[ACTOR], name, noise)
        expert.infer(np.zeros(expert.inputs))  # raises where one layer does not fit the next
        return expert, config
    except (LookupError, ValueError, TypeError, StopIteration, AttributeError):
        raise UserError(f"'{folder}' holds weights of another network than its config says") from None


def experts_for(preset: Preset, folder: Path | None = None) -> tuple[Expert, ...]:
    """The experts that move a dataset's body, as shipped, or one of them from `folder`; none where it needs none.

    Raises UserError where there is none, where none is needed or one of another body, and where it must be told its
    heading.
    """
    body, noise = preset.domain.body, preset.recording.noise if preset.recording else 0.0
    if not body.experts:
        if folder is not None:
            raise UserError(f"'{preset.name}' is recorded without an expert, so '{folder}' has nothing to move")
        return ()
    given = None if folder is None else load_expert(folder, noise)[0]
    bodies = [expert_config(name).body for name in body.experts]
    if given is not None and given.config.body not in bodies:
        needed = "' or '".join(bodies)
        raise UserError(f"{given.name} moves the body '{given.config.body}'; '{preset.name}' needs one for '{needed}'")
    experts = tuple(
        given if given is not None and given.config.body == moved else load_expert(name, noise)[0]
        for name, moved in zip(body.experts, bodies, strict=True)
    )
    for expert in experts:
        if expert.needs_heading:
            said = "must be told its heading, which recorded observations lack; use its student"
            raise UserError(f"{expert.name} {said}")
    return experts
