"""Pictures and GIFs as files: which endings can be written, and writing them whole or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from compdiffuser.files import replacing
from compdiffuser.types import UserError


def check_picture(png: str | os.PathLike[str]) -> str:
    """The format that a picture's name asks for. Raises UserError for one that cannot be written."""
    ending = Path(png).suffix.lstrip(".").lower() or "png"
    if ending not in FigureCanvasAgg.get_supported_filetypes():
        raise UserError(f"cannot write a picture as '.{ending}', as '{png}' asks; use .png, .svg or .pdf")
    return ending


def check_poses_picture(path: str | os.PathLike[str]) -> None:
    """Raises UserError for a name with another ending than .png."""
    if Path(path).suffix.lower() not in ("", ".png"):
        raise UserError(f"a picture of poses is a PNG; its name ends in .png, not as '{path}' does")


def check_gif(path: str | os.PathLike[str]) -> None:
    """Raise UserError for a name that does not end in .gif."""
    if Path(path).suffix.lower() != ".gif":
        raise UserError(f"a film of the denoising is a GIF; its name ends in .gif, not as '{path}' does")


def rendered(figure: Figure) -> Image.Image:
    """The pixels of a figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white")
    return Image.open(buffer).convert("RGB")


def write_picture(figure: Figure, png: str | os.PathLike[str]) -> None:
    """Write a figure; its format follows the file's ending."""
    ending = check_picture(png)
    with replacing(Path(png)) as temporary:
        figure.savefig(temporary, format=ending, facecolor="white")


def write_gif(
    pictures: Sequence[Image.Image], durations: list[int], palette: Image.Image, gif: str | os.PathLike[str]
) -> None:
    """A looping GIF that shows each picture for its milliseconds, all with one palette: colours do not flicker."""
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    with replacing(Path(gif)) as temporary:
        frames[0].save(
            temporary, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True
        )
