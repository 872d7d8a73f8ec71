"""A warehouse of 24 × 16 m: shelves, and two walls of 0.15 m with a door each. A cart is pushed through it.

    python examples/warehouse.py data make warehouse --episodes 500
    python examples/warehouse.py train warehouse
    python examples/warehouse.py eval runs/warehouse-compdiffuser --episodes 10 --seeds 1 --video warehouse.mp4

or, with any command, `compdiffuser --domain examples/warehouse.py …`. It needs no MuJoCo.
"""

from itertools import pairwise

import numpy as np

from compdiffuser import Domain, Preset, register
from compdiffuser.domains import Controller, FloorPlan, Stepped, rectangle
from compdiffuser.presets import ChunkConfig, EvaluationConfig, ExecutionConfig, RecordingConfig

WALLS = [
    rectangle(8, 0, 8.15, 11), rectangle(8, 12.5, 8.15, 16),  # a door at y = 11 to 12.5
    rectangle(16, 0, 16.15, 3), rectangle(16, 4.5, 16.15, 16),  # and one at y = 3 to 4.5
]  # fmt: skip
DOORS = [(8.075, 11.75), (16.075, 3.75)]
"""Middles of the doors."""
SHELVES = [rectangle(x, y, x + 1, y + 4) for x in (2, 5, 10.5, 13.5, 18, 21) for y in (2, 9)]
MAP = FloorPlan.of("warehouse", (0, 24, 0, 16), [*WALLS, *SHELVES], room=0.2)
SPEED = 0.15
"""Metres a step."""
ROOM = 0.35
"""Metres that recorded drives keep from everything."""
TASKS = [((1, 1), (23, 15)), ((23, 1), (1, 15)), ((4.2, 8), (19.5, 8)), ((12, 1), (1, 8)), ((23, 8), (12, 15))]


class Warehouse:
    """Observations are x and y, actions displace the cart by up to `SPEED`; what it would run into stops it."""

    def reset(self, task, seed):
        return self.place(*TASKS[task - 1], seed)

    def place(self, start, goal, seed):
        self.at, self.goal = np.array(start, float), np.array(goal, float)
        return self.at.copy(), self.goal.copy()

    def step(self, action):
        moved = self.at + SPEED * np.clip(action, -1, 1)
        if not MAP.walled(np.stack([self.at, moved]))[0]:
            self.at = moved
        return Stepped(self.at.copy(), success=bool(np.linalg.norm(self.at - self.goal) < 0.5))

    def close(self):
        pass


class Push(Controller):
    """Straight towards the planned state."""

    look_ahead = 0.45

    def __call__(self, observations, targets):
        return np.clip((targets - observations) / SPEED, -1, 1)


def free_place(rng, near=None):
    """A random place with room around it; within 6 m of another where that is given."""
    while True:
        place = rng.uniform((0.5, 0.5), (23.5, 15.5)) if near is None else near + rng.uniform(-6, 6, 2)
        if not MAP.in_wall(place, ROOM):
            return place


def demonstrate(world, rng):
    """A drive between two places through one corner that both see, one time in four a door: never the long way."""
    through = rng.uniform() < 1 / 4
    door = DOORS[rng.integers(len(DOORS))]
    while True:
        corner = door if through else free_place(rng)
        start, goal = free_place(rng, corner), free_place(rng, corner)
        way = np.stack([start, corner, goal])
        other_side = (start[0] < corner[0]) != (goal[0] < corner[0])
        if all(clear(a, b) for a, b in pairwise(way)) and (other_side or not through):
            break
    observation, _ = world.place(start, goal, seed=0)
    steps = []
    for target in way[1:]:
        while np.linalg.norm(observation - target) > SPEED:
            towards = (target - observation) / np.linalg.norm(target - observation)
            action = np.clip(towards + rng.normal(0, 0.1, 2), -1, 1)
            steps.append((observation, action))
            observation = world.step(action).observation
    return steps or [(observation, np.zeros(2))]


def clear(start, goal):
    """Whether a straight drive keeps its room."""
    points = np.linspace(start, goal, 2 + int(np.linalg.norm(goal - start) / 0.1))
    return not MAP.in_wall(points, ROOM).any()


WORLD = Domain(
    "warehouse", make=Warehouse, maze=MAP, tasks=len(TASKS), controller=Push(), demonstrate=demonstrate, goal_radius=0.5
)
DATA = Preset(
    "warehouse",
    WORLD,
    recording=RecordingConfig("demonstrations", episodes=500, steps=400),
    chunks=ChunkConfig(horizon=32, overlap=12, most=20, scaffold=0.25, front_padding=8, back_padding=8),
    execution=ExecutionConfig(replan_distance=1.0, max_replans=10),
    evaluation=EvaluationConfig(step_limit=600, benchmark_step_limit=600, episodes=10),
)
register(WORLD, DATA)

if __name__ == "__main__":
    from compdiffuser.cli import main

    raise SystemExit(main())
