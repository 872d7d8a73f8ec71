"""How ants get off their backs: what `compdiffuser.domains.rising` was found by, and how well it works.

    python benchmarks/rising.py                    # 200 falls: how long until ants are on their feet, and walk
    python benchmarks/rising.py --search 600       # look for other waves for ten minutes, and print them

Ants are thrown on their backs on an empty floor and kick for forty steps. Then they get up and walk on, led by a
shipped controller. The search is the cross-entropy method on the period, phases and offsets of the motors' waves, which
asks the simulator how soon they get a few such ants up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import tyro
from figures import Figures
from mujoco import rollout
from reproduce import Clock, command

from compdiffuser.domains import BODIES
from compdiffuser.domains.body import uprightness
from compdiffuser.domains.rising import OFFSETS, OUTWARD, PERIOD, PHASES, waves
from compdiffuser.following.controllers import controller_for
from compdiffuser.following.falls import Falls
from compdiffuser.presets import preset
from compdiffuser.types import Array

ANT = BODIES["ant"]
KICKS = 40
"""Steps of random actions after a throw."""
WAITS = (50, 100, 200, 400)
"""Steps after which those on their feet are counted."""
TRIED, BEST, FALLS = 32, 8, 4
"""Of a round of the search: waves, those it goes on from, and ants that each has to get up."""
SEARCHED = 120
"""Steps that they have for it."""
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


@dataclass(frozen=True)
class Benchmark:
    dataset: str = "antmaze-giant-stitch-v0"
    """Whose shipped controller ants walk on with."""
    falls: int = 200
    seed: int = 999
    """Of the falls; the search throws others."""
    search: float | None = None
    """Seconds to look for other waves, instead of measuring these."""
    out: Path = Path("results/rising.json")
    hardware: str = "this machine"


def main() -> None:
    options = tyro.cli(Benchmark)
    world = preset(options.dataset).domain.make()
    remove_walls(world.env.model)
    if options.search is None:
        measure(world, options)
    else:
        search(world.env, options.search, np.random.default_rng(options.seed + 1))


def remove_walls(model: Any) -> None:
    """Let nothing touch a maze's walls, so that a floor is left."""
    walls = (model.geom_bodyid == 0) & (model.geom_type == mujoco.mjtGeom.mjGEOM_BOX)
    model.geom_contype[walls] = model.geom_conaffinity[walls] = 0


def thrown(env: Any, rng: np.random.Generator) -> Iterator[Array]:
    """Physics of ants that lie on their backs, one after the other."""
    joints = env.model.jnt_range[1:9]
    while True:
        tilt, around, facing = rng.uniform((2.2, 0, 0), (np.pi, 2 * np.pi, 2 * np.pi))
        over = np.array([np.cos(tilt / 2), *(np.sin(tilt / 2) * np.array([np.cos(around), np.sin(around), 0]))])
        pose = env.init_qpos.copy()
        pose[:3] = *env.ij_to_xy((1, 1)), 0.8
        mujoco.mju_mulQuat(pose[3:7], over, np.array([np.cos(facing / 2), 0, 0, np.sin(facing / 2)]))
        pose[7:15] = rng.uniform(joints[:, 0], joints[:, 1])
        mujoco.mj_resetData(env.model, env.data)
        env.set_state(pose, np.zeros_like(env.data.qvel))
        for _ in range(KICKS):
            env.do_simulation(rng.uniform(-1, 1, 8), env.frame_skip)
        if ANT.fallen(seen(env)):
            physics = np.zeros(mujoco.mj_stateSize(env.model, FULL))
            mujoco.mj_getState(env.model, env.data, physics, FULL)
            yield physics


def seen(env: Any) -> Array:
    """The observation [29] of the ant."""
    return np.concatenate([env.data.qpos[:15], env.data.qvel[:14]])


def measure(world: Any, options: Benchmark) -> None:
    """Count ants that are on their feet in time, and those that walk at the end."""
    env, controller = world.env, controller_for(preset(options.dataset))
    rng = np.random.default_rng(options.seed)
    figures = Figures(options.out, command("python benchmarks/rising.py", options, ("dataset", "falls", "seed")),
                      options.hardware, group="rising")  # fmt: skip
    got_up, again, walked = [], [], []
    for _, physics in zip(range(options.falls), thrown(env, rng), strict=False):
        mujoco.mj_setState(env.model, env.data, physics, FULL)
        falls, now = Falls(ANT, 1, patience=1, rise=True), seen(env)[None]
        ahead = np.array([np.cos(angle := rng.uniform(0, 2 * np.pi)), np.sin(angle)])
        controller.reset(now)
        fell, up, begun = 0, None, now[0, :2]
        for step in range(WAITS[-1]):
            fell += len(falls.watch(now, np.ones(1, bool)))
            if up is None and not falls.down[0]:
                up, begun = step, now[0, :2]
            action = controller(now, now[:, :2] + controller.look_ahead * ahead)
            env.do_simulation(falls.up_again(action)[0], env.frame_skip)
            now = seen(env)[None]
        got_up.append(np.inf if up is None else up)
        again.append(fell - 1)
        walked.append(up is not None and not ANT.fallen(now[0]) and np.linalg.norm(now[0, :2] - begun) > 1)
    for steps in WAITS:
        figures.note(f"on their feet after {steps} steps", float(np.mean(np.array(got_up) < steps)), "share")
    figures.note("steps until an ant is on its feet, median", float(np.median(got_up)), "steps")
    figures.note(f"falls again within {WAITS[-1]} steps, mean", float(np.mean(again)), "falls")
    figures.note(f"up and more than a metre further after {WAITS[-1]} steps", float(np.mean(walked)), "share")


def search(env: Any, seconds: float, rng: np.random.Generator) -> None:
    """Look for waves that get ants up sooner, from those in use, and print them."""
    lying = thrown(env, rng)
    ants = np.stack([next(lying) for _ in range(100)])
    mean = np.concatenate([[np.log(PERIOD)], PHASES, OFFSETS])
    spread = np.concatenate([[0.02], np.full(8, 0.3), np.full(8, 0.12)])
    least = np.concatenate([[0.004], np.full(8, 0.05), np.full(8, 0.02)])
    clock = Clock()
    while clock.seconds < seconds:
        tried = mean + spread * rng.normal(size=(TRIED, len(mean)))
        chosen = ants[rng.integers(len(ants), size=FALLS)]
        actions = np.stack([actions_of(each) for each in tried])
        costs = took(env, np.tile(chosen, (TRIED, 1)), np.repeat(actions, FALLS, axis=0))
        costs = costs.reshape(TRIED, FALLS).mean(axis=1)
        best = tried[np.argsort(costs)[:BEST]]
        mean = (mean + best.mean(axis=0)) / 2
        spread = 0.6 * spread + 0.4 * (best.std(axis=0) + least)
        print(f"{clock.seconds:5.0f} s: {costs.min():.2f} best, {costs.mean():.2f} mean", flush=True)
    print("PERIOD", np.exp(mean[0]).round(3), "PHASES", mean[1:9].round(3), "OFFSETS", mean[9:].round(3))


def actions_of(numbers: Array) -> Array:
    """Actions [T, 8] of waves with log period, phases [8] and offsets [8]."""
    return OUTWARD * waves(np.arange(SEARCHED), np.exp(numbers[0]), numbers[1:9], numbers[9:])


def took(env: Any, physics: Array, actions: Array) -> Array:
    """The share [n] of the steps that ants need to get up; more than 1 where they stay down, by how far they do."""
    skip = env.frame_skip
    states, _ = rollout.rollout(env.model, mujoco.MjData(env.model), physics, np.repeat(actions, skip, axis=1))
    upright = uprightness(states[:, skip - 1 :: skip, 4:8])  # time comes first, then x, y, z and the orientation
    up = upright >= ANT.upright
    return np.where(up.any(axis=1), up.argmax(axis=1) / SEARCHED, 1 + (ANT.upright - upright.max(axis=1)) / 2)


if __name__ == "__main__":
    main()
