"""From a simulator to an expert on disk: walk, learn, measure, checkpoint; a killed run goes on where it was.

The folder of a run holds `log.csv`, the actor as it is now, `checkpoint.pt` and the transitions in `replay.bin`.
"""

from __future__ import annotations

import csv
import io
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from compdiffuser.experts.bodies import Bodies
from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.evaluation import measure
from compdiffuser.experts.policy import Expert, save_expert
from compdiffuser.experts.replay import Replay
from compdiffuser.experts.sac import SoftActorCritic
from compdiffuser.files import replacing
from compdiffuser.types import Array, UserError

CHECKPOINT, TRANSITIONS, LOG = "checkpoint.pt", "replay.bin", "log.csv"
MEASURED = 16
"""Bodies that walk when an expert is measured."""
FREE = {"steps", "log_every", "checkpoint_every"}  # what may change between a run and its continuation

Rows = list[dict[str, float]]


def train_expert(config: ExpertConfig, out: Path, device: torch.device | str = "cpu", *, progress: bool = True) -> Rows:
    """Train an expert into `out`, continuing what is there; the lines of its log."""
    run = Run(config, out, torch.device(device))
    with _bar(progress) as bar:
        task = bar.add_task(config.name, total=config.steps, completed=run.steps, note="")
        while run.steps < config.steps:
            run.advance()
            if run.due(config.log_every):
                run.measure()
                bar.update(task, note=run.note())
            if run.due(config.checkpoint_every):
                run.save()
            bar.update(task, completed=run.steps)
    run.close()
    return run.rows


class Run:
    """A training run between two checkpoints: bodies, transitions, agent, and the lines of the log so far."""

    def __init__(self, config: ExpertConfig, out: Path, device: torch.device) -> None:
        self.config, self.out = config, out
        saved = _saved(out, config)
        self.steps = int(saved.get("steps", 0))
        self.rows: Rows = list(saved.get("rows", []))
        self.begun = time.perf_counter() - float(saved.get("seconds", 0.0))
        # Where a run continues, its episodes are other ones.
        self.bodies = Bodies(config, config.seed + 1000 * self.steps)
        self.measured = Bodies(config, config.seed + 1, MEASURED) if config.directed else None
        self.replay = Replay(out / TRANSITIONS, config.replay, self.bodies.sizes, device, count=self.steps)
        self.agent = SoftActorCritic(config, self.replay, device)
        if saved:
            self.agent.restore(saved["agent"])
        self.rng = np.random.default_rng([config.seed, self.steps])
        self.returns = Returns(config.environments)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    def advance(self) -> None:
        """One step of all bodies, and the updates that belong to it."""
        if self.steps < self.config.random_steps:
            shape = (self.config.environments, self.bodies.sizes.action)
            actions = self.rng.uniform(-1, 1, shape).astype(np.float32)
        else:
            actions = self.agent.act(self.bodies.states)
            self.agent.update()  # on a GPU this goes on while the bodies move
        transitions, ended = self.bodies.step(actions)
        self.replay.add(transitions)
        self.returns.add(transitions, self.bodies, ended)
        self.bodies.restart(ended)
        self.steps += self.config.environments

    def due(self, every: int) -> bool:
        """Whether the last step passed a multiple of `every`, or was the last of all."""
        passed = self.steps // every > (self.steps - self.config.environments) // every
        return passed or self.steps >= self.config.steps

    def measure(self) -> None:
        """A line for the log."""
        row = {"steps": self.steps, "seconds": round(self.seconds, 1), "return": self.returns.mean()}
        figures = measure(Expert(_weights(self.agent)), self.measured) if self.measured is not None else {}
        self.rows.append(row | figures | self.agent.mean_measures())

    def note(self) -> str:
        last = self.rows[-1]
        return f"{last['distance']:.1f} m in 200 steps" if "distance" in last else f"return {last['return']:.2f}"

    def save(self) -> None:
        """The checkpoint, then what people look at: actor and log are those of the checkpoint."""
        self.replay.file.flush()
        progress = {"steps": self.steps, "seconds": self.seconds, "rows": self.rows}
        with replacing(self.out / CHECKPOINT) as temporary, open(temporary, "wb") as file:
            torch.save({"config": self.config.to_dict(), "agent": self.agent.state(), **progress}, file)
        record: dict[str, Any] = {"steps": self.steps, "updates": self.agent.updates, "seconds": round(self.seconds, 1)}
        record |= {"device": self.agent.device.type, "measured": self.rows[-1] if self.rows else {}}
        save_expert(self.out, _weights(self.agent), self.config, record)
        if self.rows:
            text = io.StringIO()
            writer = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: f"{value:.6g}" for name, value in row.items()} for row in self.rows)
            with replacing(self.out / LOG) as temporary:
                temporary.write_text(text.getvalue())

    def close(self) -> None:
        self.bodies.close()
        if self.measured is not None:
            self.measured.close()


class Returns:
    """Mean return of the episodes that ended since it was last asked for."""

    def __init__(self, count: int) -> None:
        self.running, self.done = np.zeros(count), list[float]()

    def add(self, transitions: Array, bodies: Bodies, ended: Array) -> None:
        width = bodies.sizes.direction
        reward = transitions[:, -2].copy()
        if width:
            direction, push = transitions[:, -2 - 2 * width : -2 - width], transitions[:, -2 - width : -2]
            reward += (direction * push).sum(axis=1)
        self.running += reward
        self.done += self.running[ended].tolist()
        self.running[ended] = 0.0

    def mean(self) -> float:
        done, self.done = self.done or [float("nan")], []
        return float(np.mean(done))


def _weights(agent: SoftActorCritic) -> dict[str, Array]:
    return {name: weight.detach().cpu().numpy() for name, weight in agent.actor.state_dict().items()}


def _saved(out: Path, config: ExpertConfig) -> dict[str, Any]:
    """The checkpoint of an earlier run with the same settings; empty for a new run."""
    path = out / CHECKPOINT
    if not path.exists():
        return {}
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
        before = dict(saved["config"])
    except Exception as error:
        reason = type(error).__name__
        raise UserError(f"checkpoint '{path}' cannot be read ({reason}); remove it to start anew") from None
    for name, value in config.to_dict().items():
        if name not in FREE and before.get(name) != value:
            found = f"a run with {name} {before.get(name)}, not {value}"
            raise UserError(f"'{out}' holds {found}; choose another folder or the same value")
    return saved


def _bar(shown: bool) -> Progress:
    return Progress(
        TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.completed:,} steps"),
        TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=not shown, transient=not sys.stderr.isatty(),
    )  # fmt: skip
