"""Films of episodes in a MuJoCo maze: a camera that follows the body, the plan on the floor, a map in a corner.

MuJoCo draws offscreen, on a machine without a screen through EGL. Colours are those of the pictures of plans.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from PIL import Image

from compdiffuser.domains import PLANE, Space
from compdiffuser.domains.mazes import Maze
from compdiffuser.plotting.drawing import chunk_colors
from compdiffuser.plotting.groups import planes, track_planes
from compdiffuser.plotting.map_video import Tracker
from compdiffuser.plotting.video import FPS, SIZE, Shot
from compdiffuser.types import Array, UserError

_FLOOR, _WALL = "#f4f5f7", "#a4a8b1"
_VIEW = 3.1  # distance of the camera in maze units
_MARGIN = 2.4  # maze units between the camera's centre and the maze's edge
_MAP = 180  # pixels
_IN_VIEW = 5  # cells: a maze of so many rows and columns is in view as a whole and needs no map


def check_opengl() -> None:
    """Raise UserError where MuJoCo cannot draw."""
    with drawing():
        pass


def scene_frames(
    model: Any,
    shots: Sequence[Shot],
    maze: Maze,
    start: Array,
    goal: Array,
    space: Space = PLANE,
    size: tuple[int, int] = SIZE,
) -> Generator[Array]:
    """One frame [height, width, 3] for every shot, drawn with a MuJoCo model that is given the film's colours.

    `start` [D] and `goal` [D] are planned states; the map marks them.
    """
    import mujoco

    width, height = size
    style(model, width, height)
    scene, data, option = mujoco.MjvScene(model, maxgeom=8000), mujoco.MjData(model), mujoco.MjvOption()
    places = np.array([shot.places for shot in shots])
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = 90, -65, _VIEW * maze.unit
    tracker = Tracker(maze, space, start, goal, 2 * (_MAP * width // SIZE[0]))
    view, pixels = mujoco.MjrRect(0, 0, width, height), np.empty((height, width, 3), np.uint8)
    looks = _camera_path(track_planes(space, places)[0], maze)
    with drawing(model) as context:
        for number, (shot, look) in enumerate(zip(shots, looks, strict=True)):
            data.qpos[:] = shot.qpos
            mujoco.mj_forward(model, data)
            camera.lookat[:] = (*look, 0)
            mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
            if shot.chunks is not None:
                _add_plan(scene, planes(space, shot.chunks), maze.unit)
            mujoco.mjr_render(view, scene, context)
            mujoco.mjr_readPixels(pixels, None, view, context)
            picture = Image.fromarray(pixels[::-1])  # OpenGL's first row is the lowest
            if max(maze.walls.shape) > _IN_VIEW:
                _paste_map(picture, tracker.draw(shot.chunks, places[: number + 1]))
            yield np.asarray(picture)


@contextmanager
def drawing(model: Any = None) -> Iterator[Any]:
    """MuJoCo's drawing context for a model (None: an empty one), by what MUJOCO_GL names, else by EGL on Linux."""
    try:
        import mujoco

        if platform.system() == "Linux" and not os.environ.get("MUJOCO_GL"):
            from mujoco.egl import GLContext
        else:
            from mujoco import GLContext
        GLContext._context = None  # else its destructor complains when there is no OpenGL
        model = mujoco.MjModel.from_xml_string("<mujoco/>") if model is None else model
        gl = GLContext(model.vis.global_.offwidth, model.vis.global_.offheight)
        gl.make_current()
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    except Exception as error:  # each library that may be missing raises something else
        raise UserError(
            f"MuJoCo cannot draw a video without OpenGL ({str(error).split('. ')[0]}); on Debian and Ubuntu: "
            "apt install libegl1 libgl1-mesa-dri"
        ) from None
    try:
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        yield context
    finally:
        context.free()
        gl.free()


def style(model: Any, width: int, height: int) -> None:
    """Colours and light of the film. No shadows, no multisampling: in software they take most of the time."""
    import mujoco

    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
    model.light_active[:] = 0
    light = model.vis.headlight
    light.active, light.ambient[:], light.diffuse[:], light.specular[:] = 1, 0.4, 0.6, 0.0
    for geom in np.flatnonzero(model.geom_bodyid == 0):
        kind = model.geom_type[geom]
        if kind in (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX):
            floor = kind == mujoco.mjtGeom.mjGEOM_PLANE
            model.geom_matid[geom] = -1
            model.geom_rgba[geom] = to_rgba(_FLOOR if floor else _WALL)
            if floor:
                model.geom_size[geom, [0, 1]] = 0  # without end


def _camera_path(places: Array, maze: Maze) -> Array:
    """Where the camera looks [n, 2]: at the body, smoothed over a second, and never far beyond the maze's edge."""
    window = np.ones(FPS) / FPS
    padded = np.pad(places, ((FPS // 2, FPS - 1 - FPS // 2), (0, 0)), mode="edge")
    smooth = np.stack([np.convolve(padded[:, axis], window, mode="valid") for axis in (0, 1)], axis=1)
    low, high = np.array(maze.extent).reshape(2, 2).T
    margin = np.minimum(_MARGIN * maze.unit, (high - low) / 2)
    return np.clip(smooth, low + margin, high - margin)


def _add_plan(scene: Any, groups: list[Array], unit: float) -> None:
    """Chunks [K, H, 2] of each group as a thin tube on the floor, each in its colour; all but the agent's dashed."""
    import mujoco

    tube, radius = mujoco.mjtGeom.mjGEOM_CAPSULE, 0.022 * unit
    for group, chunks in enumerate(groups):
        for chunk, color in zip(chunks, chunk_colors(len(chunks)), strict=True):
            points = np.insert(_spaced(chunk, 0.12 * unit), 2, radius, axis=1)
            for begin, end in list(pairwise(points))[:: 2 if group else 1]:
                geom = scene.geoms[scene.ngeom]
                mujoco.mjv_initGeom(geom, tube, np.zeros(3), np.zeros(3), np.eye(3).ravel(), color.astype(np.float32))
                mujoco.mjv_connector(geom, tube, radius, begin, end)
                geom.emission = 0.3
                scene.ngeom += 1


def _spaced(line: Array, apart: float) -> Array:
    """The points of a line [n, 2] that are at least so far apart, and its last one."""
    kept = [line[0]]
    for point in line:
        if np.hypot(*(point - kept[-1])) >= apart:
            kept.append(point)
    return np.array([*kept, line[-1]], float)


def _paste_map(picture: Image.Image, drawn: Image.Image) -> None:
    """Put a map, reduced by two, into the upper left corner of a frame."""
    small = drawn.reduce(2)
    edge = Image.new("RGB", (small.width + 2, small.height + 2), _WALL)
    edge.paste(small, (1, 1))
    picture.paste(edge, (8, 8))
