"""From simulators to an expert on disk: act, learn, measure, checkpoint; a killed run goes on where it was.

The folder of a run holds `log.csv`, the actor as it is now, `checkpoint.pt` and the transitions in `replay.bin`.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.evaluation import measure
from compdiffuser.experts.figures import Figures, Rows, write_log
from compdiffuser.experts.learner import Learner
from compdiffuser.experts.policy import Expert, save_expert
from compdiffuser.experts.replay import Replay
from compdiffuser.experts.sac import SoftActorCritic
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.student import Student, find_teacher
from compdiffuser.files import replacing
from compdiffuser.progress import progress_bar
from compdiffuser.runs import all_finite, choose_device, diverged, only_writer, read_checkpoint
from compdiffuser.types import UserError

CHECKPOINT, TRANSITIONS, LOG = "checkpoint.pt", "replay.bin", "log.csv"
MEASURED = 16
"""Bodies that are measured during training."""
SLOW = 100_000
"""Bodies times batch beyond which a CPU is no place to learn."""
FREE = {"steps", "time_limit", "log_every", "checkpoint_every", "measure_every"}
"""What may change between a run and its continuation."""


@only_writer
def train_expert(
    config: ExpertConfig,
    out: Path,
    device: str = "cpu",
    *,
    teacher: Path | None = None,
    processes: int | None = None,
    progress: bool = True,
) -> Rows:
    """Train an expert into `out`, continuing what is there; the lines of its log.

    `device` is auto, cpu or cuda; bodies always move on the CPU, in `processes`, by default one a core. `teacher` is
    the folder of the expert that a student imitates.

    Raises UserError at the first line of the log whose losses are not finite, and at the first checkpoint whose
    weights are not: the checkpoint before it stays.
    """
    run = Run(config, out, device, teacher, processes)
    try:
        if run.steps:  # perhaps killed between its last checkpoint and the actor and the log that belong to it
            run.save()
        watched = sys.stderr.isatty()
        with progress_bar("{task.fields[note]}", shown=progress and watched, remaining=False) as bar:
            task = bar.add_task(config.name, total=config.steps, completed=run.steps, note="")
            while not run.over:
                run.advance()
                if run.due(config.log_every) or run.due(config.measure_every):
                    run.log()
                    bar.update(task, note=run.note())
                    if progress and not watched:
                        print(run.note(), file=sys.stderr, flush=True)
                if run.due(config.checkpoint_every):
                    run.save()
                bar.update(task, completed=run.steps)
    finally:
        run.close()
    return run.rows


class Run:
    """A training run between two checkpoints: simulators, transitions, learner, and the lines of the log so far."""

    def __init__(
        self,
        config: ExpertConfig,
        out: Path,
        device: str = "cpu",
        teacher: Path | None = None,
        processes: int | None = None,
    ) -> None:
        expert = None
        if config.learner == "imitation":
            expert = find_teacher(config, teacher)
            config = replace(config, teacher=expert.name)
        self.config, self.out = config, out
        saved = _saved(out, config)
        self.steps, self.seconds = int(saved.get("steps", 0)), float(saved.get("seconds", 0.0))
        self.rows: Rows = list(saved.get("rows", []))
        self.kept = int(saved["learner"]["updates"]) if saved else 0
        # Forked before CUDA is touched.
        self.bodies = Simulators(config, config.seed, processes=processes, state=_bodies(saved, "bodies"))
        self.measured = Simulators(config, config.seed + 1, MEASURED, processes, _bodies(saved, "measured"))
        try:
            self._learn(choose_device(device), expert, saved)
        except BaseException:
            self.close()
            raise
        self.figures = Figures(config, self.bodies)
        if "figures" in saved:
            self.figures.restore(saved["figures"])
        self.clock = time.perf_counter()

    def _learn(self, device: torch.device, expert: Expert | None, saved: dict[str, Any]) -> None:
        config, bodies = self.config, self.bodies
        if device.type == "cuda":
            torch.set_num_threads(1)  # the cores are for the simulators
        elif config.environments * config.batch > SLOW:
            print(f"The {config.name} learns on a CPU, which takes days; its recipe is for a GPU.", file=sys.stderr)
        self.learner: Learner = (
            SoftActorCritic(config, bodies, device) if expert is None else Student(config, bodies, device, expert)
        )
        self.replay = Replay(
            self.out / TRANSITIONS, config.replay, self.learner.layout(bodies), device,
            together=config.environments, count=self.steps, spare=config.checkpoint_every,
        )  # fmt: skip
        self.learner.replay = self.replay
        if saved:
            self.learner.restore(saved["learner"])

    @property
    def done(self) -> float:
        """The share of the training that is behind: of its steps or of its time, whichever is more."""
        limit = self.config.time_limit
        return max(self.steps / self.config.steps, self.seconds / limit if limit else 0.0)

    @property
    def over(self) -> bool:
        return self.done >= 1

    def advance(self) -> None:
        """One step of all bodies, and the updates that belong to it."""
        actions = self.learner.act(self.bodies, self.steps, self.done)
        self.bodies.begin(actions)
        if self.steps >= self.config.random_steps and self.replay.count:
            self.learner.update(self.done)  # on a GPU this goes on while the bodies move
        self.bodies.finish()
        self.replay.add(self.learner.kept(self.bodies))
        self.figures.add()
        self.steps += self.config.environments
        now = time.perf_counter()
        self.seconds, self.clock = self.seconds + now - self.clock, now

    def due(self, every: int) -> bool:
        """Whether the last step passed a multiple of `every`, or was the last of all."""
        passed = self.steps // every > (self.steps - self.config.environments) // every
        return passed or self.over

    def log(self) -> None:
        """A line for the log. Measuring takes no training time."""
        row = {"steps": self.steps, "seconds": round(self.seconds, 1), "updates": self.learner.updates}
        means = self.learner.take_means()
        for name, mean in means.items():
            if not math.isfinite(mean):
                raise self._diverged(f"{name} is {mean}")
        row |= self.figures.take() | means
        if self.due(self.config.measure_every):
            row |= measure(Expert(self.config, self.learner.weights()), self.measured)
        self.rows.append(row)
        self.clock = time.perf_counter()

    def note(self) -> str:
        """The last line in short."""
        short = self.figures.in_short(self.rows[-1])
        return f"{self.steps:,} steps, {self.seconds:.0f} s, {self.learner.updates:,} updates: {short}"

    def save(self) -> None:
        """The checkpoint, then what people look at: actor and log are those of the checkpoint."""
        learned = self.learner.state()
        if not all_finite(learned):
            raise self._diverged("weights are not finite")
        progress = {"steps": self.steps, "seconds": self.seconds, "rows": self.rows, "figures": self.figures.state()}
        progress |= {"bodies": _plain(self.bodies.state()), "measured": _plain(self.measured.state())}
        with replacing(self.out / CHECKPOINT) as temporary, open(temporary, "wb") as file:
            torch.save({"config": self.config.to_dict(), "learner": learned, **progress}, file)
        self.kept = self.learner.updates
        record = {
            "complete": self.over, "steps": self.steps, "updates": self.learner.updates,
            "seconds": round(self.seconds, 1), "device": self.learner.device.type,
            "measured": self.rows[-1] if self.rows else {},
        }  # fmt: skip
        save_expert(self.out, self.learner.weights(), self.config, record)
        if self.rows:
            write_log(self.out / LOG, self.rows)

    def _diverged(self, what: str) -> UserError:
        return diverged(what, self.learner.updates, self.config.learning_rate, self.out, self.kept)

    def close(self) -> None:
        self.bodies.close()
        self.measured.close()


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """The state of bodies as a checkpoint holds it."""
    return {name: torch.from_numpy(each) if isinstance(each, np.ndarray) else each for name, each in state.items()}


def _bodies(saved: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The state of bodies in a checkpoint; None where there is none."""
    state = saved.get(name)
    return state and {part: each.numpy() if torch.is_tensor(each) else each for part, each in state.items()}


def _saved(out: Path, config: ExpertConfig) -> dict[str, Any]:
    """The checkpoint of an earlier run with the same settings; empty for a new run."""
    path = out / CHECKPOINT
    if not path.exists():
        return {}
    saved = read_checkpoint(path)
    try:
        before = dict(saved["config"])
        _ = saved["learner"]["updates"], saved["steps"], saved["seconds"], saved["rows"]
    except Exception as error:
        reason = type(error).__name__
        raise UserError(f"checkpoint '{path}' cannot be read ({reason}); remove it to start anew") from None
    for name, value in config.to_dict().items():
        if name not in FREE and before.get(name) != value:
            found = f"a run with {name} {before.get(name)}, not {value}"
            raise UserError(f"'{out}' holds {found}; choose another folder or the same value")
    return saved
