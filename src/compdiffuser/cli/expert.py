"""`compdiffuser data expert`: train, or measure, the policy that walks a body while its data is recorded."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from compdiffuser.types import UserError


@dataclass(frozen=True)
class ExpertCommand:
    """Train a locomotion expert with soft actor-critic, or measure one.

    Killed and started again with the same --out, it continues from its last checkpoint. The folder holds the actor
    (actor.safetensors and config.json) and log.csv with the metres walked in 200 steps in the commanded direction.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ant|ball|humanoid")]
    """Body to train."""
    steps: int | None = None
    """Environment steps; by default as many as OGBench's recipe has."""
    out: Path | None = None
    """Folder of the run; by default runs/expert-NAME."""
    learning_rate: float | None = None
    """Learning rate of all networks."""
    environments: int | None = None
    """Bodies simulated side by side; by default 16."""
    updates_per_step: float | None = None
    """Updates for each environment step."""
    fall_cost: float | None = None
    """Reward lost by falling on the back."""
    top_speed: float | None = None
    """Metres per step beyond which more is not worth more; by default 0.12 for ants."""
    relabel: float | None = None
    """Share of each batch that gets another direction in hindsight."""
    log_every: int | None = None
    """Environment steps between lines of the log."""
    checkpoint_every: int | None = None
    """Environment steps between checkpoints."""
    seed: int | None = None
    """Initial weights, exploration and batches depend on it."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to learn; bodies always move on the CPU."""
    evaluate: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Measure the expert in --out (by default the shipped one) instead of training."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the figures as one JSON object."""

    def run(self) -> int:
        from compdiffuser.experts.config import ExpertConfig, expert_config

        config = expert_config(self.name)
        if self.evaluate:
            return self._evaluate()
        from compdiffuser.experts.training import train_expert
        from compdiffuser.planning.checkpoint import choose_device

        known = {field.name for field in fields(ExpertConfig)} - {"name"}
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name in known}
        config = replace(config, **{name: value for name, value in given.items() if value is not None})
        out = self.out or Path("runs") / f"expert-{self.name}"
        rows = train_expert(config, out, choose_device(self.device))
        if not rows:
            raise UserError(f"'{out}' was trained for {config.steps} steps already")
        self._tell({"out": str(out), **rows[-1]})
        return 0

    def _evaluate(self) -> int:
        """Many episodes on open ground, and one from every cell of the giant maze."""
        from compdiffuser.experts.bodies import Bodies
        from compdiffuser.experts.evaluation import measure, survival
        from compdiffuser.experts.policy import load_expert

        expert, config = load_expert(self.out or self.name, noise=0.2)
        bodies = Bodies(config, seed=7, count=16)
        figures: dict[str, Any] = measure(expert, bodies, rounds=8)
        bodies.close()
        if config.name == "ant":
            figures["maze"] = survival(expert, "antmaze-giant-stitch-v0", rounds=2)
        self._tell(figures)
        return 0

    def _tell(self, figures: dict[str, Any]) -> None:
        if self.json:
            print(json.dumps(figures))
            return
        for name, value in figures.items():
            print(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
