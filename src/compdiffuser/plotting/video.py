"""Films of episodes in a MuJoCo maze: a camera that follows the body, the plan on the floor, a map in a corner.

MuJoCo draws offscreen, on a machine without a screen through EGL. Colours are those of the pictures of plans.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgba
from PIL import Image, ImageDraw

from compdiffuser.data.mazes import Maze
from compdiffuser.files import replacing
from compdiffuser.plotting.plans import chunk_colors, plan_map, write_gif
from compdiffuser.types import Array, UserError

FPS = 30
SECONDS = 15
"""Longest film of an episode; longer episodes are sped up."""
SIZE = (640, 480)
_GIF_EVERY = 3  # frames: 10 a second are enough for a GIF, which is also half as wide and high
_FLOOR, _WALL, _BODY = "#f4f5f7", "#a4a8b1", "#1f2430"
_VIEW = 4.6  # distance of the camera in maze units
_MARGIN = 2.4  # maze units between the camera's centre and the maze's edge
_MAP = 180  # pixels
_IN_VIEW = 5  # cells: a maze of so many rows and columns is in view as a whole and needs no map


class Shot(NamedTuple):
    """What one frame shows."""

    qpos: Array
    """[nq], the simulator's positions."""
    chunks: Array | None
    """[K, H, D], the plan that is followed; None where there is none."""


def check_video(path: str | os.PathLike[str]) -> None:
    """A sentence where a film of that name could not be made: its ending, the encoder, or OpenGL."""
    ending = Path(path).suffix.lower()
    if ending not in (".mp4", ".gif"):
        raise UserError(f"a video ends in .mp4 or .gif, not as '{path}' does")
    if ending == ".mp4":
        _encoder()
    with _drawing():
        pass


def frames(
    model: Any, shots: Sequence[Shot], maze: Maze, goal: Array, size: tuple[int, int] = SIZE
) -> Generator[Array]:
    """One frame [height, width, 3] for every shot, drawn with a MuJoCo model that is given the film's colours."""
    import mujoco

    width, height = size
    _style(model, width, height)
    scene, data, option = mujoco.MjvScene(model, maxgeom=8000), mujoco.MjData(model), mujoco.MjvOption()
    places = np.array([_place(model, data, shot.qpos) for shot in shots])
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = 90, -70, _VIEW * maze.unit
    inset = _Inset(maze, places[0], goal, _MAP * width // SIZE[0])
    view, pixels = mujoco.MjrRect(0, 0, width, height), np.empty((height, width, 3), np.uint8)
    with _drawing(model) as context:
        for number, (shot, centre) in enumerate(zip(shots, _camera_path(places, maze), strict=True)):
            _place(model, data, shot.qpos)
            camera.lookat[:] = (*centre, 0)
            mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
            if shot.chunks is not None:
                _add_plan(scene, shot.chunks, maze.unit)
            mujoco.mjr_render(view, scene, context)
            mujoco.mjr_readPixels(pixels, None, view, context)
            picture = Image.fromarray(pixels[::-1])  # OpenGL's first row is the lowest
            if max(maze.walls.shape) > _IN_VIEW:
                inset.paste(picture, shot.chunks, places[: number + 1])
            yield np.asarray(picture)


def thinned(steps: int) -> Array:
    """The steps 0 … `steps` that are shown, so that the film is not too long; the last one stays for a second."""
    every = max(1, math.ceil(steps / (FPS * SECONDS)))
    return np.append(np.arange(0, steps, every), [steps] * FPS)


def write_video(pictures: Iterable[Array], path: str | os.PathLike[str]) -> Path:
    """Write frames [height, width, 3] as an MP4 (H.264) of 30 frames a second, or as a smaller GIF."""
    path = Path(path)
    if path.suffix.lower() == ".gif":
        images = [Image.fromarray(picture).reduce(2) for picture in islice(pictures, 0, None, _GIF_EVERY)]
        some = np.concatenate([np.asarray(image) for image in images[:: max(1, len(images) // 8)]])
        palette = Image.fromarray(some).quantize(255, method=Image.Quantize.FASTOCTREE)
        write_gif(images, [1000 * _GIF_EVERY // FPS] * len(images), palette, path)
        return path
    av = _encoder()
    with replacing(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"crf": "23"})
        stream.pix_fmt = "yuv420p"
        for number, picture in enumerate(pictures):
            if number == 0:
                stream.height, stream.width = picture.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def _encoder() -> Any:
    try:
        import av
    except ImportError:
        raise UserError(
            "an .mp4 needs an encoder: pip install 'compdiffuser[video]', or give a name that ends in .gif"
        ) from None
    return av


@contextmanager
def _drawing(model: Any = None) -> Iterator[Any]:
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


def _style(model: Any, width: int, height: int) -> None:
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
                model.geom_size[geom, :2] = 0  # without end


def _place(model: Any, data: Any, qpos: Array) -> Array:
    """Put the body where qpos [nq] says; its x and y."""
    import mujoco

    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    return np.array(data.xpos[1, :2])


def _camera_path(places: Array, maze: Maze) -> Array:
    """Where the camera looks [n, 2]: at the body, smoothed over a second, and never far beyond the maze's edge."""
    window = np.ones(FPS) / FPS
    padded = np.pad(places, ((FPS // 2, FPS - 1 - FPS // 2), (0, 0)), mode="edge")
    smooth = np.stack([np.convolve(padded[:, axis], window, mode="valid") for axis in (0, 1)], axis=1)
    low, high = np.array(maze.extent).reshape(2, 2).T
    margin = np.minimum(_MARGIN * maze.unit, (high - low) / 2)
    return np.clip(smooth, low + margin, high - margin)


def _add_plan(scene: Any, chunks: Array, unit: float) -> None:
    """The plan as a thin tube on the floor, each chunk in its colour."""
    import mujoco

    tube, radius = mujoco.mjtGeom.mjGEOM_CAPSULE, 0.022 * unit
    for chunk, color in zip(chunks, chunk_colors(len(chunks)), strict=True):
        points = np.insert(_spaced(chunk[:, :2], 0.12 * unit), 2, radius, axis=1)
        for begin, end in pairwise(points):
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


class _Inset:
    """A map of the maze and the plan on which the agent leaves its track; drawn twice as large, then reduced."""

    def __init__(self, maze: Maze, start: Array, goal: Array, width: int) -> None:
        self.maze, self.start, self.goal, self.width = maze, start, goal, width
        self.of: Any = self  # the plan that is drawn; nothing is at first

    def paste(self, picture: Image.Image, chunks: Array | None, places: Array) -> None:
        """Put the map with the track so far [n, 2] into the upper left corner of a frame."""
        if self.of is not chunks:
            self.of = chunks
            self.map, self.pixels = plan_map(self.maze, chunks, self.start, self.goal, 2 * self.width)
        drawn = self.map.copy()
        pen = ImageDraw.Draw(drawn)
        track = [tuple(point) for point in self.pixels(places)]
        pen.line(track, fill=_BODY, width=3)
        x, y = track[-1]
        pen.ellipse((x - 9, y - 9, x + 9, y + 9), fill=_BODY, outline="white", width=3)
        small = drawn.reduce(2)
        edge = Image.new("RGB", (small.width + 2, small.height + 2), _WALL)
        edge.paste(small, (1, 1))
        picture.paste(edge, (8, 8))
