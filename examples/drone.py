"""A drone over two floors of 10 × 6 × 6 m, joined by one shaft: places are x, y and z, and the ceiling is between.

    python examples/drone.py data make drone --episodes 500
    python examples/drone.py train drone
    python examples/drone.py eval runs/drone-compdiffuser --episodes 4 --seeds 1 --png drone.png

Plans, lengths, loops and following are in three dimensions; pictures show the room from a corner above.
"""

from itertools import pairwise

import numpy as np

from compdiffuser import Domain, Preset, register
from compdiffuser.domains import Controller, Group, Space, Stepped
from compdiffuser.presets import ChunkConfig, EvaluationConfig, ExecutionConfig, RecordingConfig

SIZE = np.array([10.0, 6.0, 6.0])
CEILING = (2.9, 3.1)
SHAFT = np.array([[8.0, 4.0], [10.0, 6.0]])
"""Corners of the hole in the ceiling, x and y."""
SPEED = 0.12
"""Metres a step."""
ROOM = 0.25
MIDDLE = SHAFT.mean(axis=0)
TASKS = [((1, 1, 1), (1, 1, 5)), ((1, 5, 5), (2, 5, 1)), ((5, 1, 1), (5, 1, 5)), ((1, 3, 4.5), (6, 3, 1.5))]


def solid(places, room=0.0):
    """[...] bool: places [..., 3] in the ceiling or outside, grown by `room`."""
    places = np.asarray(places, float)
    outside = ((places < room) | (places > SIZE - room)).any(axis=-1)
    level = (places[..., 2] > CEILING[0] - room) & (places[..., 2] < CEILING[1] + room)
    in_shaft = ((places[..., :2] > SHAFT[0] + room) & (places[..., :2] < SHAFT[1] - room)).all(axis=-1)
    return outside | (level & ~in_shaft)


def clear(start, goal, room=0.0):
    """Whether a straight flight touches nothing."""
    apart = float(np.linalg.norm(np.subtract(goal, start)))
    return not solid(np.linspace(start, goal, 2 + int(apart / 0.02)), room).any()


class Building:
    """Observations are x, y and z, actions displace the drone by up to `SPEED`; what it would fly into stops it."""

    def reset(self, task, seed):
        return self.place(*TASKS[task - 1], seed)

    def place(self, start, goal, seed):
        self.at, self.goal = np.array(start, float), np.array(goal, float)
        return self.at.copy(), self.goal.copy()

    def step(self, action):
        moved = self.at + SPEED * np.clip(action, -1, 1)
        if clear(self.at, moved):
            self.at = moved
        return Stepped(self.at.copy(), success=bool(np.linalg.norm(self.at - self.goal) < 0.4))

    def close(self):
        pass


class Fly(Controller):
    """Straight towards the planned place."""

    look_ahead = 0.4

    def __call__(self, observations, targets):
        return np.clip((targets - observations) / SPEED, -1, 1)


def demonstrate(world, rng):
    """A flight on one floor or, one time in three, through the shaft: never from a far end to another."""
    through = rng.uniform() < 1 / 3
    while True:
        start = rng.uniform(ROOM, SIZE - ROOM)
        if through:
            start[:2] = MIDDLE + rng.uniform(-3, 1, 2)
            # Below the middle of the shaft, above it, and on: each leg is straight.
            levels = (1.5, 4.5) if start[2] < CEILING[0] else (4.5, 1.5)
            bends = [np.append(MIDDLE + rng.uniform(-0.5, 0.5, 2), level) for level in levels]
            way = [start, *bends, bends[-1] + rng.uniform(-2, 2, 3) * (1, 1, 0.4)]
        else:
            way = [start, start + rng.uniform(-4, 4, 3) * (1, 1, 0.4)]
        if all(clear(a, b, ROOM) for a, b in pairwise(way)):
            break
    observation, _ = world.place(way[0], way[-1], seed=0)
    steps = []
    for target in way[1:]:
        while np.linalg.norm(observation - target) > SPEED:
            towards = (target - observation) / np.linalg.norm(target - observation)
            action = np.clip(towards + rng.normal(0, 0.05, 3), -1, 1)
            steps.append((observation, action))
            observation = world.step(action).observation
    return steps or [(observation, np.zeros(3))]


PLACE = (Group("agent", (0, 1, 2)),)
WORLD = Domain(
    "drone", make=Building, space=Space.of((0, 1, 2), PLACE), position_dims=PLACE, tasks=len(TASKS), controller=Fly(),
    demonstrate=demonstrate, goal_radius=0.4,
)  # fmt: skip
DATA = Preset(
    "drone",
    WORLD,
    recording=RecordingConfig("demonstrations", episodes=500, steps=400),
    chunks=ChunkConfig(horizon=32, overlap=12, most=12, scaffold=0.25, front_padding=8, back_padding=8),
    execution=ExecutionConfig(replan_distance=0.8, max_replans=10),
    evaluation=EvaluationConfig(step_limit=500, benchmark_step_limit=500, episodes=5),
)
register(WORLD, DATA)

if __name__ == "__main__":
    from compdiffuser.cli import main

    raise SystemExit(main())
