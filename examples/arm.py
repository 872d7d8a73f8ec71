"""An arm of six joints that turn without end: a state is a point on six circles, cos and sin of every angle.

    python examples/arm.py data make arm --episodes 500
    python examples/arm.py train arm
    python examples/arm.py eval runs/arm-compdiffuser --episodes 4 --seeds 1 --png arm.png

An angle of 179° is beside one of −179°, and on circles the planner sees it so: `on_circles` and `angles_of` go there
and back. Pictures are projections of all twelve numbers.
"""

import numpy as np

from compdiffuser import Domain, Preset, register
from compdiffuser.domains import Controller, Group, Space, Stepped
from compdiffuser.domains.angles import angles_of, between, on_circles
from compdiffuser.presets import ChunkConfig, EvaluationConfig, ExecutionConfig, RecordingConfig

JOINTS = 6
SPEED = 0.08
"""Radians a step, of each joint."""
REACH = 0.9
"""Radians between the ends of a recorded movement, at most, of each joint."""


class Arm:
    """Observations are cos of six angles, then sin; actions turn the joints by up to `SPEED`."""

    def reset(self, task, seed):
        start, goal = np.random.default_rng([task, seed]).uniform(-np.pi, np.pi, (2, JOINTS))
        goal = start + (goal - start) * (0.6 if task == 1 else 1.0)
        return self.place(on_circles(start), on_circles(goal), seed)

    def place(self, start, goal, seed):
        self.angles, self.goal = angles_of(start), angles_of(goal)
        return on_circles(self.angles), on_circles(self.goal)

    def step(self, action):
        self.angles = self.angles + SPEED * np.clip(action, -1, 1)
        away = np.abs(between(self.angles, self.goal)).max()
        return Stepped(on_circles(self.angles), success=bool(away < 0.25))

    def close(self):
        pass


class Turn(Controller):
    """Each joint the short way round."""

    look_ahead = 0.3

    def __call__(self, observations, targets):
        return np.clip(between(angles_of(observations), angles_of(targets)) / SPEED, -1, 1)


def demonstrate(world, rng):
    """A short movement from anywhere, all joints at once."""
    start = rng.uniform(-np.pi, np.pi, JOINTS)
    turn = rng.uniform(-REACH, REACH, JOINTS)
    count = 1 + int(np.abs(turn).max() / (0.7 * SPEED))
    observation, _ = world.place(on_circles(start), on_circles(start + turn), seed=0)
    steps = []
    for _ in range(count):
        action = np.clip(turn / count / SPEED + rng.normal(0, 0.05, JOINTS), -1, 1)
        steps.append((observation, action))
        observation = world.step(action).observation
    return steps


NUMBERS = tuple(range(2 * JOINTS))
PLACE = (Group("agent", NUMBERS),)
WORLD = Domain(
    "arm", make=Arm, space=Space.of(NUMBERS, PLACE), position_dims=PLACE, tasks=2, controller=Turn(),
    demonstrate=demonstrate, goal_radius=0.25,
)  # fmt: skip
DATA = Preset(
    "arm",
    WORLD,
    recording=RecordingConfig("demonstrations", episodes=2000, steps=40),
    chunks=ChunkConfig(horizon=16, overlap=4, most=16, front_padding=8, back_padding=8),
    execution=ExecutionConfig(replan_distance=1.5, max_replans=10),
    evaluation=EvaluationConfig(step_limit=200, benchmark_step_limit=200, episodes=5),
)
register(WORLD, DATA)

if __name__ == "__main__":
    from compdiffuser.cli import main

    raise SystemExit(main())
