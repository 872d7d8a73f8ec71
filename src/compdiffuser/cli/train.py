"""`compdiffuser train`: from a dataset to a planner or a baseline."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.cli.choices import ARCHITECTURES, BASELINES, PLANNERS, listed
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from compdiffuser.presets import Preset

BASELINE_OPTIONS = ("seeds_at_once", "set", "augment", "clusters")
TRIAL = 100
"""Updates; a planner of fewer has learned nothing that could be told."""
PLANNER_OPTIONS = ("preset", "architecture", "width", "depth", "neighbours", "horizon", "overlap", "stride", "dims")


@dataclass(frozen=True)
class Train:
    """Train a planner, or a baseline, on short trajectories.

    Killed and started again with the same --out, it continues from its last checkpoint. Several processes:
    accelerate launch --multi_gpu --num_processes 2 -m compdiffuser train DATASET …
    """

    dataset: tyro.conf.Positional[str]
    """Name of a dataset (see `compdiffuser data list`), a file or folder of your own, or minari:ID."""
    method: Annotated[str, tyro.conf.arg(metavar=listed(*PLANNERS, *BASELINES))] = "compdiffuser"
    """compdiffuser: chunks to compose; dd: one monolithic model of whole plans (Decision Diffuser); else a baseline."""
    augment: Literal["none", "sa", "ga"] = "none"
    """Baselines only: goals from other episodes, joined where states (sa) or goals (ga) are in one cluster."""
    clusters: int = 40
    """Baselines only: clusters of an augmentation."""
    preset: Literal["default", "paper"] = "default"
    """Noise formulation: ours (EDM preconditioning), or the paper's (512-step cosine DDPM predicting x₀)."""
    steps: int | None = None
    """Updates (baselines: rounded up to a multiple of 50); by default 40,000 (1,000,000), or as many as the time limit
    allows."""
    time_limit: float | None = None
    """Seconds of training."""
    batch: int | None = None
    """Chunks, or transitions, per update; by default 1024, or what the method asks for."""
    learning_rate: float | None = None
    """Peak learning rate; by default 5e-4, or what the method asks for."""
    seed: int = 0
    """Initial weights and batches depend on it; batches of agents side by side on their number too."""
    seeds_at_once: int = 1
    """Baselines only: agents trained side by side, with seeds counted from --seed."""
    set: tuple[str, ...] = ()
    """Baselines only: settings of the method, such as alpha=3 'hidden=[64,64]'."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-METHOD, with -AUGMENT where there is one."""
    architecture: Annotated[str, tyro.conf.arg(metavar=listed(*ARCHITECTURES))] = "dit1d"
    """Transformer, or the paper's U-Net."""
    width: int | None = None
    """Transformer width (256), or channels of the U-Net's first level (64)."""
    depth: int | None = None
    """Transformer blocks (6), or U-Net levels (4)."""
    neighbours: Literal["channels", "encoder"] = "channels"
    """Neighbouring chunks as aligned input channels, or through the paper's encoder."""
    horizon: int | None = None
    """States per chunk; by default the dataset's. With dd, states per plan."""
    overlap: int | None = None
    """States shared by neighbouring chunks; by default the dataset's."""
    stride: int | None = None
    """Environment steps between the states of a chunk; by default the dataset's."""
    dims: str | None = None
    """Planned observation dimensions, as in 0,1; by default the dataset's."""
    checkpoint_every: int | None = None
    """Updates between checkpoints; by default 2,000 (baselines: 100,000)."""
    log_every: int | None = None
    """Updates between lines of the log; by default 100 (baselines: 1,000)."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to compute."""
    compile: bool = True
    """Compile the network on a GPU (half a minute once, then faster)."""
    json: bool = False
    """Print the outcome as one JSON object."""

    def run(self) -> int:
        if self.method not in PLANNERS:
            return self._run_baseline()
        self._refuse(BASELINE_OPTIONS, f"belongs to baselines, not to {self.method}")
        from compdiffuser.cli.proposing import how_long, proposed, untuned
        from compdiffuser.data import storage
        from compdiffuser.data.advice import on_jumps, on_windows
        from compdiffuser.models import DenoiserConfig, architecture
        from compdiffuser.planning.training import train_planner
        from compdiffuser.runs import choose_device
        from compdiffuser.training.config import TrainConfig

        device, known = choose_device(self.device), storage.preset_for(self.dataset)
        proposal = proposed(self, known, device.type == "cuda") if untuned(known) and self.method != "dd" else None
        preset = self._chunked(proposal.preset if proposal else known)
        usual = proposal.sizes if proposal else {"steps": 40_000}
        sizes = {name: usual[name] for name in ("width", "depth") if name in usual and self.architecture == "dit1d"}
        sizes |= {name: value for name in ("width", "depth") if (value := getattr(self, name)) is not None}
        model = DenoiserConfig(
            horizon=preset.chunks.horizon,
            overlap=preset.chunks.overlap,
            formulation=self.preset,
            neighbours=self.neighbours,
            network=architecture(self.architecture)(**sizes),
        )
        given = ({"batch": usual["batch"]} if proposal else {}) | self._given()
        config = TrainConfig(steps=self._steps(usual["steps"]), time_limit=self.time_limit, seed=self.seed, **given)
        episodes, out = storage.load(self.dataset), self._out(preset.name)
        if proposal:
            advise([*proposal.reasons, how_long(episodes, preset, model, config, device)])
        advise(on_jumps(episodes, preset.space) + on_windows(episodes, preset.chunks))
        checkpoint = train_planner(
            episodes, preset, out, model=model, config=config, device=device,
            soundness_told=proposal is not None and config.steps >= TRIAL, method=self.method,
            manifest=storage.origin_of(self.dataset)[1],
            compiled=None if self.compile else False,
        )  # fmt: skip
        hint = f"plan with: compdiffuser plan {out} --start … --goal …"
        return tell(checkpoint.record["outcome"], out, hint, self.json)

    def _chunked(self, preset: Preset) -> Preset:
        """The preset with the dimensions and chunks that were asked for."""
        from compdiffuser.baselines.decision_diffuser import monolithic

        if self.dims is not None:
            preset = preset.planning(dimensions(self.dims))
        names = ("stride",) if self.method == "dd" else ("stride", "horizon", "overlap")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        preset = replace(preset, chunks=replace(preset.chunks, **given))
        if self.method == "dd":
            self._refuse(("overlap",), "belongs to composed chunks, and dd plans in one")
            return monolithic(preset, self.horizon)
        return preset

    def _run_baseline(self) -> int:
        """A baseline, with the settings that its dataset asks for."""
        from compdiffuser.baselines import method
        from compdiffuser.baselines.augmented import Augmentation
        from compdiffuser.baselines.presets import config_for, parse_changes
        from compdiffuser.baselines.training import train_baseline, train_config
        from compdiffuser.data import storage
        from compdiffuser.runs import choose_device

        method(self.method, also=PLANNERS)  # raises where there is none
        self._refuse(PLANNER_OPTIONS, f"belongs to planners, not to {self.method}")
        if self.augment == "none":
            self._refuse(("clusters",), "belongs to an augmentation, and --augment is none")
        preset = storage.preset_for(self.dataset)
        changes = parse_changes(self.method, self.set)
        given = self._given()
        for name in ("batch", "learning_rate"):
            if name in given and name in changes:
                raise UserError(f"{name} is given twice, {given[name]} and by --set {changes[name]}")
        changes |= {name: given.pop(name) for name in ("batch", "learning_rate") if name in given}
        config = config_for(self.method, preset, changes)
        training = train_config(config, self._steps(1_000_000), time_limit=self.time_limit, seed=self.seed, **given)
        episodes, out = storage.load(self.dataset), self._out(preset.name)
        checkpoint = train_baseline(
            self.method, episodes, preset, out, config=config, training=training,
            seeds=self.seeds_at_once, device=choose_device(self.device),
            augment=None if self.augment == "none" else Augmentation(self.augment, self.clusters),
            manifest=storage.origin_of(self.dataset)[1], compiled=None if self.compile else False,
        )  # fmt: skip
        hint = f"evaluate with: compdiffuser eval {out} --method {self.method}" if preset.domain.make else ""
        return tell(checkpoint.record["outcome"], out, hint, self.json)

    def _steps(self, usual: int) -> int:
        return self.steps if self.steps is not None else 10_000_000 if self.time_limit else usual

    def _given(self) -> dict[str, Any]:
        """The loop's settings that were asked for; the others keep their defaults."""
        names = ("batch", "learning_rate", "checkpoint_every", "log_every")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _out(self, dataset: str) -> Path:
        """The folder of the run. Raises UserError where nothing can be written to it."""
        from compdiffuser.files import check_writable
        from compdiffuser.runs import run_folder

        out = self.out or run_folder(dataset, self.method, None if self.augment == "none" else self.augment)
        check_writable(out / "config.json")
        return out

    def _refuse(self, names: Sequence[str], why: str) -> None:
        """Raise UserError for an option that would have no effect."""
        for field in fields(self):
            if field.name in names and getattr(self, field.name) != field.default:
                raise UserError(f"--{field.name.replace('_', '-')} {why}")


def tell(results: Mapping[str, Any], out: Path, hint: str, as_json: bool) -> int:
    """What a training came to, for people or as one JSON object; of several processes the first one tells it."""
    from compdiffuser.runs import rank

    if rank() > 0:
        return 0
    outcome = {"out": str(out), **results}
    if as_json:
        print(json.dumps(outcome))
    else:
        print(f"trained {outcome['steps']} updates in {outcome['seconds']:.0f} s, loss {outcome['loss']:.4f}")
        print(f"written {out}; {hint}" if hint else f"written {out}")
    return 0


def advise(sentences: Sequence[str]) -> None:
    """Tell people what to think of before the work; the first of several processes does."""
    from compdiffuser.runs import rank

    if rank() == 0:
        for sentence in sentences:
            print(f"note: {sentence}", file=sys.stderr)


def dimensions(text: str) -> tuple[int, ...]:
    """The dimensions in "0,1"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"dims are whole numbers separated by commas, not '{text}'") from None
