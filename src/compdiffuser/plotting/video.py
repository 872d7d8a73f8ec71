"""Films of episodes as files: which names can be written, which steps are shown, and the encoders."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from compdiffuser.files import replacing
from compdiffuser.plotting.output import write_gif
from compdiffuser.types import Array, UserError, install

FPS = 30
SECONDS = 15
"""Longest film of an episode; longer episodes are sped up."""
SIZE = (640, 480)
_GIF_EVERY = 3  # frames: 10 a second are enough for a GIF, which is also half as wide and high


class Shot(NamedTuple):
    """What one frame shows."""

    places: Array
    """[P], positions of everything that moves, the agent's x and y first."""
    chunks: Array | None
    """[K, H, D], the plan that is followed; None where there is none."""
    qpos: Array | None = None
    """[nq], the simulator's positions, where MuJoCo draws."""


def check_video(path: str | os.PathLike[str]) -> None:
    """Raise UserError where a film of that name could not be written: its ending, or the encoder."""
    ending = Path(path).suffix.lower()
    if ending not in (".mp4", ".gif"):
        raise UserError(f"a video ends in .mp4 or .gif, not as '{path}' does")
    if ending == ".mp4":
        _encoder()


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
                stream.height, stream.width, _ = picture.shape
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def _encoder() -> Any:
    try:
        import av
    except ImportError:
        raise UserError(f"an .mp4 needs an encoder; {install('video')}, or give a name that ends in .gif") from None
    return av
