"""From a dataset to a planner on disk: windows, training, calibration, checkpoint."""

from __future__ import annotations

import copy
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.checks import is_finite
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.data.walking import standing
from compdiffuser.data.windows import Windows
from compdiffuser.diffusion.objective import ObjectiveConfig
from compdiffuser.domains import Space
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.models.runner import Runner
from compdiffuser.planning.beginning import Beginning
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.recorded.calibration import WINDOWS, calibrate
from compdiffuser.planning.recorded.postures import Postures, measure_postures
from compdiffuser.planning.recorded.support import Support, measure_support, small
from compdiffuser.planning.settled import identity, settled
from compdiffuser.planning.sharing.soundness import Reports
from compdiffuser.presets import Preset
from compdiffuser.progress import progress_bar
from compdiffuser.runs import only_writer, rank
from compdiffuser.training.chunks import ChunkLearner
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.loop import Moment
from compdiffuser.training.run import run_training
from compdiffuser.types import Episodes, UserError

REACH = 0.87
"""Normalized distance between the ends of chunks that go furthest, in the giant maze."""
BLURRED = 3.0
"""σ of scaffolds of small data and large worlds, at most, in units of what a plan may pass aside. Some ten states are
denoised together, so that the way stays known to about one such unit; with more noise, a model that has seen little of
the data or of the world misses the door."""


@only_writer
def train_planner(
    episodes: Episodes,
    preset: Preset,
    out: Path,
    *,
    model: DenoiserConfig | None = None,
    config: TrainConfig | None = None,
    objective: ObjectiveConfig | None = None,
    recipe: str | None = None,
    device: torch.device | str = "cpu",
    manifest: dict[str, Any] | None = None,
    method: str = "compdiffuser",
    compiled: bool | None = None,
    progress: bool = True,
    snapshots: Sequence[float] = (),
    soundness_told: bool = False,
    begin_with: Beginning | Checkpoint | str | os.PathLike[str] | None = None,
) -> Checkpoint:
    """Train a chunk model on `episodes` as `preset` says, and leave the planner in `out`.

    `recipe` names a set of settings (`RECIPES`); `model`, `objective` and `config` replace its parts. The model's
    horizon, overlap and dimensions come from the preset. Planners as they were after so many seconds of training, those
    of the runs that this one continues included, are kept in `out/after-SECONDS` for each of `snapshots`.
    `soundness_told` prints how many random recorded pairs can be planned, three times on the way and at the end. A run
    that Ctrl-C ends leaves a planner too, and can be continued.

    `begin_with` is a planner, or where `Planner.from_pretrained` finds it: training begins with its weights and keeps
    its units; updates, seconds and the learning rate count from zero. By default, its recipe is taken too. Raises
    UserError where the network, chunks or dimensions are others, and where most of the data lies outside its limits.
    """
    device = torch.device(device)
    begun = None if begin_with is None else Beginning.of(begin_with)
    if begun is not None:
        begun.check({"method": method})
        begun.check_apart(out)
    name, used = settled(preset, recipe, begun, model, objective, config)
    model, objective, config = used.model, used.objective, used.training
    episodes = standing(episodes, preset.domain.body)
    normalizer = units_of(episodes, preset, model, begun)
    windows = windows_of(episodes, preset, normalizer, device)
    torch.manual_seed(config.seed)
    denoiser = Denoiser(model).to(device)
    if begun is not None:
        denoiser.load_state_dict(begun.weights)
    if compiled if compiled is not None else device.type == "cuda":
        denoiser.compile_network()
    counts = preset.space.weights(objective.positions)
    weights = None if counts is None else torch.tensor(counts, device=device)
    learner = ChunkLearner(denoiser, windows, objective, config.batch, weights)
    made = Making(denoiser, normalizer, windows, preset, device, out, Snapshots(snapshots), counts)
    if soundness_told:
        made.reports = Reports(episodes, str(device))
    own: dict[str, Any] = {"method": method, "recipe": name, "objective": asdict(objective)}
    own |= {} if episodes.step_seconds is None else {"step_seconds": episodes.step_seconds}
    own |= {} if begun is None else {"begun_with": begun.record}
    record = run_training(
        learner, config, device, out, about=identity(episodes, preset, method, used, begun), own=own,
        manifest=manifest, progress=progress, watch=made.see, on_interrupt=made.stopped,
    )  # fmt: skip
    return made.finished(record, progress)


@dataclass
class Making:
    """A planner that is being made: what it is put together from, on the way, at the end, and where Ctrl-C ends it."""

    denoiser: Denoiser
    normalizer: Normalizer
    windows: Windows
    preset: Preset
    device: torch.device
    out: Path
    younger: Snapshots
    counts: Sequence[float] | None = None
    """What each planned dimension counts."""
    reports: Reports | None = None
    latest: list[Tensor] = field(default_factory=list)
    """The averaged weights themselves, which go on changing."""

    @cached_property
    def support(self) -> Support | None:
        return measure_support(self.windows)

    @cached_property
    def settings(self) -> Preset:
        """The preset; of small data, and of worlds too large to be learned by heart, with scaffolds that are noised no
        more than the passages it knows allow.
        """
        chunks, support = self.preset.chunks, self.support
        by_heart = chunks.frame == "world" and not small(self.windows)
        if chunks.scaffold is None or support is None or support.passages is None or by_heart:
            return self.preset
        level = min(chunks.scaffold, BLURRED * support.passages.limit)
        return replace(self.preset, chunks=replace(chunks, scaffold=level))

    @cached_property
    def postures(self) -> Postures | None:
        return measure_postures(self.windows)

    def planner(self, record: dict[str, Any], weights: list[Tensor] | None = None) -> Checkpoint:
        """The planner with these weights, or the denoiser's own, calibrated."""
        trained = with_weights(self.denoiser, weights) if weights else self.denoiser
        calibration = calibrate(Runner(trained, self.device), self.windows, self.preset.chunks.overlap, self.counts)
        return Checkpoint(trained, self.normalizer, calibration, self.settings, record, self.support, self.postures)

    def see(self, moment: Moment, average: list[Tensor], record: dict[str, Any]) -> None:
        self.latest = average
        for seconds in self.younger.passed(moment.seconds):
            if rank() == 0:  # at once: who kills a training keeps its snapshots
                then = {**record, "after_seconds": seconds, "after_updates": moment.update}
                self.planner(then, average).save(self.out / f"after-{seconds:g}")
        if self.reports is not None and rank() == 0:
            self.reports.see(moment, lambda: self.planner({}, average))

    def stopped(self, record: dict[str, Any]) -> None:
        """Leave a planner of what was learned so far."""
        if rank() == 0:
            self.planner(record, self.latest).save(self.out)
            told = f"what was learned so far can plan: compdiffuser plan {self.out} --start … --goal …"
            print(told, file=sys.stderr)

    def finished(self, record: dict[str, Any], progress: bool) -> Checkpoint:
        """Calibrate and write the planner, also as a snapshot where one was due since the last line of the log."""
        outcome = record["outcome"]
        last = self.younger.passed(outcome["seconds"])
        with progress_bar("{task.fields[note]}", shown=progress and rank() == 0, remaining=False) as bar:
            line = bar.add_task("[bold]calibrating", total=2, note="errors of recorded chunks")
            checkpoint = self.planner(record)
            bar.update(line, advance=1, note="writing")
            if rank() == 0:
                checkpoint.save(self.out)
                for seconds in last:
                    then = {**record, "after_seconds": seconds, "after_updates": outcome["steps"]}
                    replace(checkpoint, record=then).save(self.out / f"after-{seconds:g}")
            bar.update(line, advance=1, note="")
        if self.reports is not None and rank() == 0:
            self.reports.finished(checkpoint)
        return checkpoint


def units_of(episodes: Episodes, preset: Preset, model: DenoiserConfig, begun: Beginning | None) -> Normalizer:
    """The normalizer of a training: the data's own, or that of the planner which it begins with.

    Raises UserError where nothing moves, and where most of the data lies outside that planner's limits.
    """
    if not (episodes.lengths > 1).any():
        raise UserError("every episode has a single state, so that nothing moves; does the data say where they end?")
    normalizer = normalizer_of(episodes, preset.space)
    if begun is not None:
        begun.check_data(episodes, preset.space)
        return begun.checkpoint.normalizer
    if model.frame == "chunk":
        return in_chunks(normalizer, windows_of(episodes, preset, normalizer, torch.device("cpu")))
    return normalizer


def normalizer_of(episodes: Episodes, space: Space) -> Normalizer:
    """The limits of the planned states. Position groups share theirs: where one thing is, another would be too.

    Raises UserError where nothing moves.
    """
    normalizer = Normalizer.from_data(space.planned(episodes.observations))
    if not normalizer.units[space.columns].any():
        place = np.array(normalizer.low)[space.columns].round(4).tolist()
        raise UserError(f"nothing moves: the place is {place} in all recorded states")
    low, high = list(normalizer.low), list(normalizer.high)
    for axis in range(max(len(columns) for _, columns in space.positions)):
        shared = [columns[axis] for _, columns in space.positions if axis < len(columns)]
        for column in shared:
            low[column] = min(normalizer.low[each] for each in shared)
            high[column] = max(normalizer.high[each] for each in shared)
    return Normalizer(tuple(low), tuple(high))


def in_chunks(normalizer: Normalizer, windows: Windows) -> Normalizer:
    """The same with units in which chunks reach as far as in the giant maze, along every axis of a position.

    Noise levels are then the same distances whatever the size of the world.
    """
    chunks = windows.sample(WINDOWS, torch.Generator(windows.states.device).manual_seed(0))
    span = normalizer.limits
    for _, columns in windows.space.positions:
        units = normalizer.units[list(columns)]
        gone = (chunks[:, -1] - chunks[:, 0])[:, list(columns)].cpu().numpy() * units
        unit = float(np.quantile(np.linalg.norm(gone, axis=1), 0.999)) / REACH
        span[list(columns)] = np.maximum(units / max(unit, 1e-9), 1)
    return replace(normalizer, span=tuple(map(float, span)))


def windows_of(episodes: Episodes, preset: Preset, normalizer: Normalizer, device: torch.device) -> Windows:
    """The training windows of a dataset."""
    chunks = preset.chunks
    return Windows.from_episodes(
        episodes, preset.space, normalizer, chunks.horizon, chunks.front_padding, chunks.back_padding, device,
        chunks.stride,
    )  # fmt: skip


@dataclass
class Snapshots:
    """When planners are kept, after so many seconds of training."""

    due: Sequence[float]
    seen: float = math.inf
    """Seconds when it last looked; what was due before the first look belongs to the run that this one continues."""

    def __post_init__(self) -> None:
        for after in self.due:
            if not (is_finite(after) and after > 0):
                raise UserError(f"a snapshot is kept after a number of seconds above 0, not after {after}")

    def passed(self, seconds: float) -> list[float]:
        """Those that have become due since it last looked."""
        found = [after for after in sorted(self.due) if self.seen < after <= seconds]
        self.seen = seconds
        return found


def with_weights(denoiser: Denoiser, weights: list[Tensor]) -> Denoiser:
    """A copy of a denoiser with other weights."""
    other = copy.deepcopy(denoiser)
    with torch.no_grad():
        for parameter, weight in zip(other.parameters(), weights, strict=True):
            parameter.copy_(weight)
    return other
