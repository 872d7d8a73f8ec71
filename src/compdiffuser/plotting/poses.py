"""A plan of whole states drawn by MuJoCo: the body in its poses along the plan, seen from above.

Each pose has the colour of its chunk, as in every picture of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from compdiffuser.domains.mazes import Maze
from compdiffuser.plotting.drawing import chunk_colors
from compdiffuser.plotting.scene_video import drawing, style
from compdiffuser.types import Array

_LONGER_SIDE = 1600  # pixels
_FIELD = 20.0  # degrees; from far away, walls hide little
_TILT = -78.0  # degrees; legs are seen, and so is what is behind a wall
GEOMS = 20_000


def pose_numbers(n_states: int, count: int) -> Array:
    """Which of the states are drawn, the first and the last among them."""
    return np.unique(np.linspace(0, n_states - 1, min(count, n_states)).round().astype(int))


def draw_poses(
    model: Any, rest: Array, states: Array, chunk: Array, qpos: Mapping[int, int], maze: Maze, count: int = 50
) -> Array:
    """A picture [height, width, 3] of `count` of the planned states [T, D] in their maze.

    `qpos` says which column of a state is which number of the model's qpos; the others are at `rest` [nq]. `chunk` [T]
    is the number of the chunk that each state belongs to.
    """
    import mujoco

    left, right, bottom, top = maze.extent
    across, up = right - left, top - bottom
    scale = _LONGER_SIDE / max(across, up)
    width, height = (int(side * scale) // 2 * 2 for side in (across, up))
    style(model, width, height)
    model.vis.global_.fovy = _FIELD
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation = 90, _TILT
    camera.distance = up / 2 / np.tan(np.radians(_FIELD / 2))
    camera.lookat[:] = ((left + right) / 2, (bottom + top) / 2, 0)
    scene, data, option = mujoco.MjvScene(model, maxgeom=GEOMS), mujoco.MjData(model), mujoco.MjvOption()
    colors = chunk_colors(int(chunk.max()) + 1)
    with drawing(model) as context:
        for order, number in enumerate(pose_numbers(len(states), count)):
            data.qpos[:] = rest
            for column, place in qpos.items():
                data.qpos[place] = states[number, column]
            mujoco.mj_forward(model, data)
            if order == 0:
                mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_STATIC, scene)
            before = scene.ngeom
            mujoco.mjv_addGeoms(model, data, option, mujoco.MjvPerturb(), mujoco.mjtCatBit.mjCAT_DYNAMIC, scene)
            for geom in scene.geoms[before : scene.ngeom]:
                geom.rgba[:] = colors[chunk[number]]
                geom.matid = -1
        view, pixels = mujoco.MjrRect(0, 0, width, height), np.empty((height, width, 3), np.uint8)
        mujoco.mjr_render(view, scene, context)
        mujoco.mjr_readPixels(pixels, None, view, context)
    return pixels[::-1].copy()  # OpenGL's first row is the lowest
