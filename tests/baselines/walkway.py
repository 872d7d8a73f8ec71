"""A corridor in the shape of a U, recorded in two overlapping halves: the truth about stitching is known here.

The corridor's middle line runs from (−1, −1) to (1, −1), up to (1, 1), and back to (−1, 1). Episodes of the first half
stay on the lower and right arm, those of the second half on the right and upper arm; both run in both directions. A
blind arm leads from (−1, −1) up towards the corridor's far end: who has not learned better looks for that end there.
"""

from __future__ import annotations

import numpy as np

from compdiffuser.types import Episodes

SPEED = 0.1
LENGTH = 6.0  # of the whole corridor
BLIND = 1.6  # of the blind arm


def place(s):
    """Points [..., 2] at distances s along the corridor; below 0 in the blind arm."""
    s = np.clip(s, -BLIND, LENGTH)
    x = np.where(s < 0, -1.0, np.where(s < 2, s - 1, np.where(s < 4, 1.0, 5 - s)))
    y = np.where(s < 0, -1 - s, np.where(s < 2, -1.0, np.where(s < 4, s - 3, 1.0)))
    return np.stack([x, y], -1)


def halves(count: int = 200, seed: int = 0) -> Episodes:
    """Straight runs between two places of one half."""
    rng = np.random.default_rng(seed)
    states, actions, terminals = [], [], []
    for number in range(count):
        low, high = (2.0, LENGTH) if number % 2 else (-BLIND, 4.0)
        start, end = rng.uniform(low, high, 2)
        if abs(end - start) < 1:
            start, end = low, high
        line = place(np.arange(start, end, np.sign(end - start) * SPEED)) + rng.normal(0, 0.02, 2)
        states.append(line)
        actions.append(np.append(np.diff(line, axis=0), np.zeros((1, 2)), 0) / SPEED)
        terminals.append(np.arange(len(line)) == len(line) - 1)
    flat = (np.concatenate(parts).astype(np.float32) for parts in (states, actions))
    return Episodes.from_terminals(*flat, np.concatenate(terminals))


def success(policy, starts, goals, limit: int = 120) -> float:
    """Share of goals reached within 0.2 by a point that moves as told but never leaves the corridor."""
    here = place(np.asarray(starts, float))
    targets = place(np.asarray(goals, float))
    line = place(np.linspace(-BLIND, LENGTH, 741))
    reached = np.zeros(len(here), bool)
    policy.reset(here, targets)
    for _ in range(limit):
        here = here + SPEED * policy.act(here, ~reached)
        nearest = line[np.linalg.norm(here[:, None] - line, axis=-1).argmin(1)]
        away = np.linalg.norm(here - nearest, axis=-1, keepdims=True)
        here = nearest + (here - nearest) * np.minimum(1, 0.1 / np.maximum(away, 1e-9))
        reached |= np.linalg.norm(here - targets, axis=-1) < 0.2
    return float(reached.mean())
