"""Runs: the folders they are kept in, the processes they are made of, the versions and devices they record, and how
one ends whose numbers are no longer finite.
"""

from __future__ import annotations

import inspect
import os
import platform
import select
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import compdiffuser
from compdiffuser.files import check_writable, locked
from compdiffuser.shortages import shortage
from compdiffuser.types import UserError

if TYPE_CHECKING:
    import torch

Given = ParamSpec("Given")
Result = TypeVar("Result")
RUNS = Path("runs")
"""Where training leaves what it made, below the present folder."""
PATIENCE = 0.5
"""Seconds between two looks for the parent, where the system does not tell of its end."""


def run_folder(dataset: str, method: str, augment: str | None = None) -> Path:
    """Where a method's run on a dataset is kept, unless asked otherwise."""
    return RUNS / "-".join([dataset, method, *([augment] if augment else [])])


def rank() -> int:
    """This process's number among those that train together; the first, 0, writes and prints."""
    return int(os.environ.get("RANK", "0"))


def processes() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def memory() -> int | None:
    """Bytes of this machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def end_with(parent: int) -> None:
    """Let this process end when its parent, of this number, does: a killed run leaves no worker behind.

    What the parent's trackers watch over, such as shared memory, they remove when the last worker is gone.
    """
    threading.Thread(target=_await_end, args=(parent,), name="parent's end", daemon=True).start()


def _await_end(parent: int) -> None:
    with suppress(AttributeError, OSError):  # not all systems tell of another process's end
        end = os.pidfd_open(parent)
        if os.getppid() == parent:  # else it is over already, and the number may be another's
            poll = select.poll()
            poll.register(end, select.POLLIN)
            poll.poll()
    while os.getppid() == parent:
        time.sleep(PATIENCE)
    os._exit(1)


def only_writer(train: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function that trains into its folder `out`, made the only one that does; of several processes, the first.

    The folder may also be given as a string.
    """
    arguments = inspect.signature(train)

    @wraps(train)
    def alone(*given: Given.args, **named: Given.kwargs) -> Result:
        bound = arguments.bind(*given, **named)
        out = bound.arguments["out"] = Path(bound.arguments["out"])
        if rank() > 0:
            return train(*bound.args, **bound.kwargs)
        check_writable(out / "config.json")
        with locked(out, "trains in"):
            return train(*bound.args, **bound.kwargs)

    return alone


def package_versions(names: Sequence[str], missing: str | None = None) -> dict[str, str]:
    """Versions of installed packages. Those that are not installed are left out, or told by the word `missing`."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if missing is not None:
                found[name] = missing
    return found


def versions() -> dict[str, str]:
    """What a training record says of the software."""
    import torch

    return {"compdiffuser": compdiffuser.__version__, "torch": str(torch.__version__)}


def device_name(device: torch.device) -> str:
    """What a training record says of the hardware: the GPU's name, or the processor's."""
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` takes the GPU where there is one. Raises UserError where it is not there."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"unknown device '{name}'; choose auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device '{name}' was asked for, but no GPU is visible")
    if device.type == "cuda" and device.index and device.index >= (there := torch.cuda.device_count()):
        raise UserError(f"device '{name}' was asked for, but {there} GPU{'s are' if there > 1 else ' is'} visible")
    return device


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What `torch.save` wrote, on the CPU, without unpickling code.

    Raises UserError where a byte of it changed since, which `torch.load` itself does not notice in a weight.
    """
    import torch

    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises anything
        if shortage(error) is not None:  # it may be sound
            raise
        reason = type(error).__name__
        raise UserError(f"checkpoint '{path}' cannot be read ({reason}); remove it to start anew") from None
    if damaged is not None or not isinstance(saved, dict):
        raise UserError(f"checkpoint '{path}' is corrupt; remove it to start anew")
    return saved


def all_finite(state: Any) -> bool:
    """Whether all real numbers in the tensors of nested dictionaries and lists are finite; asks each device once."""
    import torch

    flags: dict[torch.device, list[torch.Tensor]] = {}
    for tensor in _tensors(state):
        if tensor.is_floating_point():
            flags.setdefault(tensor.device, []).append(tensor.isfinite().all())
    return all(bool(torch.stack(each).all()) for each in flags.values())


def diverged(what: str, updates: int, rate: float, out: Path, kept: int) -> UserError:
    """The error for a training whose loss or weights, `what`, are no longer finite; `kept` updates lie in `out`."""
    left = f"'{out}' keeps the checkpoint of update {kept}; choose another folder and a lower rate"
    return UserError(
        f"{what} after {updates} updates with learning rate {rate:g}, so training stopped; "
        + (left if kept else "nothing is kept; choose a lower rate")
    )


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    import torch

    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, Mapping | list | tuple):
        for part in state.values() if isinstance(state, Mapping) else state:
            yield from _tensors(part)
