"""How well an expert does: how far a body walks as it is told, how often it falls, whether a ball arrives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np

from compdiffuser.data.lockstep import alone
from compdiffuser.data.stitch import Stitch
from compdiffuser.data.walking import laid_out, recorded
from compdiffuser.domains.body import BODIES
from compdiffuser.domains.simulators import BlewUp
from compdiffuser.experts.figures import REACH, WALK
from compdiffuser.experts.policy import Expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.tasks import length
from compdiffuser.presets import PRESETS, Preset
from compdiffuser.types import Array

BODIES_MEASURED = 64
"""Bodies that walk when an expert is measured by itself."""
NOISE = 0.2
"""Spread of the noise on actions, where there is any."""
LONG_WALK, LONG_REDRAW = 400, 100
"""Steps of a walk that may begin on the ground, and after which it gets a new direction."""


def steps(
    expert: Expert, bodies: Simulators, commands: Iterator[Array], noise: float, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Let all bodies follow commands [E, 2], one each step; their transitions, and their observations afterwards."""
    for command in commands:
        bodies.told[:] = command
        observations, headings = bodies.part("observation"), bodies.part("heading")[:, 0]
        actions = expert.act(observations, bodies.told.copy(), headings if expert.needs_heading else None)
        bodies.step(np.clip(actions + rng.normal(0.0, noise, actions.shape), -1.0, 1.0), told=True)
        yield bodies.rows, bodies.part("observation")


def walk(
    expert: Expert, bodies: Simulators, turn: float, noise: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Walk for 200 steps, turning by `turn` half-way; metres [E] along the command, and who was down [E].

    Directions are spread evenly.
    """
    bodies.restart("standing")
    angles = rng.uniform(0, 2 * math.pi) + 2 * math.pi * np.arange(bodies.count) / bodies.count
    commands = (directions(angles + turn * (step >= WALK // 2)) for step in range(WALK))
    distance, fell = np.zeros(bodies.count), np.zeros(bodies.count, bool)
    for rows, observations in steps(expert, bodies, commands, noise, rng):
        distance += along(bodies, rows)
        fell |= BODIES[expert.config.body].fallen(observations)
    return distance, fell


def long_walk(expert: Expert, bodies: Simulators, pose: str, rng: np.random.Generator) -> dict[str, Array]:
    """Walk for 400 steps with noise and a new direction every 100, from a pose; figures [E]."""
    bodies.restart(pose)

    def commands() -> Iterator[Array]:
        for step in range(LONG_WALK):
            if step % LONG_REDRAW == 0:
                chosen = directions(rng.uniform(0, 2 * math.pi, bodies.count))
            yield chosen

    distance, down = np.zeros(bodies.count), np.zeros(bodies.count)
    for rows, observations in steps(expert, bodies, commands(), NOISE, rng):
        distance += along(bodies, rows) * WALK / LONG_WALK
        lies = BODIES[expert.config.body].fallen(observations)
        down += lies / LONG_WALK
    return {f"distance_{pose}": distance, f"down_{pose}": down, f"upright_{pose}": ~lies}


def dribble(expert: Expert, bodies: Simulators, noise: float, rng: np.random.Generator) -> dict[str, Array]:
    """Bring balls to targets within 200 steps; who `reached` one, who was there at the end, who fell [E]."""
    bodies.restart("standing")
    task, start = expert.task, bodies.part("observation")
    targets = np.stack([task.draw(observation, rng) for observation in start])
    reached, fell = np.zeros(bodies.count, bool), np.zeros(bodies.count, bool)
    for _, observations in steps(expert, bodies, (targets for _ in range(WALK)), noise, rng):
        there = length(task.relative(targets, observations)) <= REACH
        reached |= there
        fell |= BODIES[expert.config.body].fallen(observations)
    return {"reached": reached, "stayed": there, "fell": fell}


def measure(expert: Expert, bodies: Simulators, rounds: int = 1, seed: int = 0) -> dict[str, float]:
    """All figures of an expert, as means over the bodies and over rounds."""
    rng = np.random.default_rng(seed)
    kinds = [_round(expert, bodies, rng) for _ in range(rounds)]
    return {name: float(np.mean([kind[name] for kind in kinds])) for name in kinds[0]}


def _round(expert: Expert, bodies: Simulators, rng: np.random.Generator) -> dict[str, Array]:
    config = expert.config
    if config.task == "ball":
        plain, noisy = (dribble(expert, bodies, noise, rng) for noise in (0.0, NOISE))
        return plain | {f"{name}_noise": value for name, value in noisy.items()}
    figures: dict[str, Array] = {}
    for kind, turn, noise in (("", 0.0, 0.0), ("_noise", 0.0, NOISE), ("_turn", math.pi, NOISE)):
        figures[f"distance{kind}"], figures[f"fell{kind}"] = walk(expert, bodies, turn, noise, rng)
    if config.task == "standing":
        figures |= long_walk(expert, bodies, "standing", rng) | long_walk(expert, bodies, "dropped", rng)
    return figures


def largest_maze(expert: str) -> Preset | None:
    """Of the stitch datasets that an expert records, the one with the most cells; None where it records none."""
    own = [each for each in PRESETS.values() if expert in each.domain.body.experts and each.maze is not None]
    stitched = [each for each in own if recorded(each).recipe == "stitch"]
    return max(stitched, key=lambda each: len(laid_out(each).free_cells), default=None)


def survival(expert: Expert, settings: Preset, rounds: int = 1, seed: int = 0) -> dict[str, float]:
    """Reset in every free cell of a maze and walked as its stitch data: the share of episodes that end upright.

    `moved` is the share of episodes that end more than a cell away from their start. One whose simulation blows up
    ends neither way.
    """
    recipe = Stitch(replace(settings, recording=replace(recorded(settings), steps=WALK + 1)), [expert])
    rng, body = np.random.default_rng(seed), BODIES[expert.config.body]
    cells = [cell for cell in recipe.maze.free_cells for _ in range(rounds)]
    paths = []
    with closing(settings.domain.open()) as world:
        for cell in cells:
            with suppress(BlewUp):
                paths.append(alone(recipe.record_from(cell, world, rng)).arrays()["observations"])
    figures = {"episodes": float(len(cells)), "upright": 0.0, "moved": 0.0}
    if paths:
        starts, ends = (np.stack([path[at] for path in paths]) for at in (0, -1))
        away = length(body.position(ends) - body.position(starts))
        for name, each in (("upright", ~body.fallen(ends)), ("moved", away > recipe.maze.unit)):
            figures[name] = float(each.sum() / len(cells))
    return figures


def directions(angles: Array) -> Array:
    """Unit vectors [E, 2]."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def along(bodies: Simulators, rows: Array) -> Array:
    """Metres [E] that a step led in the commanded direction."""
    parts = bodies.transitions
    return (parts.part(rows, "displacement") * parts.part(rows, "command")).sum(axis=-1)
