"""The pictures of docs/steering.md, made with the shipped ant's planner of the giant maze.

    python docs/make_steering_pictures.py

It takes some minutes on two CPU cores and overwrites docs/images/steering-*.png.
"""

from __future__ import annotations

from pathlib import Path

import tyro

from compdiffuser import Box, Disc, Planner

MODEL = "antmaze-giant-stitch-v0"
START, GOAL = (0, 0), (52, 36)
AVOID = [Disc((12, 8), 2.0), Box((24, 0), (28, 8))]


def main(out: Path = Path("docs/images")) -> None:
    """Draw the pictures of docs/steering.md into the folder `out`."""
    planner = Planner.from_pretrained(MODEL)
    steered = planner.plan(START, GOAL, via=[(20, 16)], avoid=AVOID)
    steered.plot(out / "steering-plan.png")
    ways = planner.plan(START, GOAL, n_plans=4)
    ways.plot(out / "steering-ways.png")
    now = len(steered.states) // 4
    later = steered.states[int(0.75 * len(steered.states))]
    layout = steered.maze
    assert layout is not None
    x, y = layout.center(layout.cell(later))
    mended = planner.repair(steered, at=steered.states[now], avoid=[Box((x - 2, y - 2), (x + 2, y + 2))])
    mended.plot(out / "steering-repair.png", executed=steered.states[:: len(steered.states) // 200])
    for plan in (steered, ways, mended):
        print(plan, f"{plan.seconds:.2f} s", [f"{other.length:.1f} m" for other in plan.others])


if __name__ == "__main__":
    tyro.cli(main)
