"""`compdiffuser data expert`: train, or measure, the policy that moves a body while its data is recorded."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from compdiffuser.types import UserError


@dataclass(frozen=True)
class ExpertCommand:
    """Train an expert that walks, runs or dribbles as it is told, or measure one.

    Killed and started again with the same --out, it continues from its last checkpoint. The folder holds the actor
    (actor.safetensors and config.json) and log.csv.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ant|humanoid|ball|humanoid-student")]
    """Expert to train."""
    steps: int | None = None
    """Environment steps; by default those of its recipe."""
    time_limit: float | None = None
    """Seconds of training after which it ends before its steps. Those before a resume count."""
    out: Path | None = None
    """Folder of the run; by default runs/expert-NAME."""
    teacher: Path | None = None
    """Folder of the expert that a student imitates."""
    learning_rate: float | None = None
    """Learning rate of all networks."""
    environments: int | None = None
    """Bodies simulated side by side."""
    processes: int | None = None
    """Processes in which they are simulated; by default one for each core."""
    batch: int | None = None
    """Transitions in a batch."""
    updates_per_step: float | None = None
    """Updates for each environment step."""
    fall_cost: float | None = None
    """Reward lost by falling on the back."""
    top_speed: float | None = None
    """Metres per step beyond which more is not worth more."""
    relabel: float | None = None
    """Share of each batch that gets another command in hindsight."""
    replay: int | None = None
    """Transitions that are kept."""
    random_steps: int | None = None
    """Environment steps before learning begins."""
    log_every: int | None = None
    """Environment steps between lines of the log."""
    checkpoint_every: int | None = None
    """Environment steps between checkpoints."""
    measure_every: int | None = None
    """Environment steps between measurements; there is always one at the end."""
    seed: int | None = None
    """Initial weights, exploration and batches depend on it."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to learn; bodies always move on the CPU."""
    evaluate: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Measure the expert in --out (by default the shipped one) instead of training."""
    rounds: int = 4
    """Rounds of 64 bodies that --evaluate measures."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the figures as one JSON object."""

    def run(self) -> int:
        from compdiffuser.experts.config import ExpertConfig, expert_config

        config = expert_config(self.name)
        if self.evaluate:
            return self._evaluate()
        from compdiffuser.experts.training import train_expert
        from compdiffuser.files import check_writable
        from compdiffuser.runs import run_folder

        known = {field.name for field in fields(ExpertConfig)} - {"name", "teacher"}
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name in known}
        config = replace(config, **{name: value for name, value in given.items() if value is not None})
        if self.teacher is not None and config.learner != "imitation":
            raise UserError(f"the {config.name} expert learns by itself, so '{self.teacher}' has nobody to teach")
        out = self.out or run_folder("expert", self.name)
        check_writable(out / "config.json")
        rows = train_expert(config, out, self.device, teacher=self.teacher, processes=self.processes)
        self._tell({"out": str(out), **rows[-1]})
        return 0

    def _evaluate(self) -> int:
        """Many episodes on open ground and, if it records data, some from every cell of its largest maze."""
        from compdiffuser.experts.evaluation import BODIES_MEASURED, largest_maze, measure, survival
        from compdiffuser.experts.policy import load_expert
        from compdiffuser.experts.simulators import Simulators

        if self.rounds < 1:
            raise UserError(f"rounds must be at least 1, not {self.rounds}")
        expert, config = load_expert(self.out or self.name, noise=0.2)
        with Simulators(config, 7, BODIES_MEASURED, self.processes) as bodies:
            figures: dict[str, Any] = {"episodes": BODIES_MEASURED * self.rounds}
            figures |= measure(expert, bodies, self.rounds)
        if (dataset := largest_maze(config.name)) is not None:
            figures["maze"] = survival(expert, dataset, rounds=2)
        self._tell(figures)
        return 0

    def _tell(self, figures: dict[str, Any]) -> None:
        if self.json:
            print(json.dumps(figures))
            return
        for name, value in figures.items():
            print(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
