"""`compdiffuser train`: from a dataset to a planner or a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.cli.choices import ARCHITECTURES, BASELINES, PLANNERS, RECIPES, listed
from compdiffuser.cli.parsing import dimensions, parsed
from compdiffuser.cli.telling import advise, tell
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from compdiffuser.baselines.augmented import Augmentation
    from compdiffuser.baselines.config import AgentConfig
    from compdiffuser.data.proposal import Proposal
    from compdiffuser.planning.beginning import Beginning
    from compdiffuser.planning.recipes import Recipe
    from compdiffuser.presets import Preset
    from compdiffuser.training.config import TrainConfig

BASELINE_OPTIONS = ("seeds_at_once", "augment", "clusters")
MODEL_OPTIONS = (
    "architecture", "width", "depth", "patch", "formulation", "neighbours", "ends", "drop", "schedule", "ema", "clip",
)  # fmt: skip
CHUNK_OPTIONS = ("horizon", "overlap", "stride")
PLANNER_OPTIONS = ("preset", *MODEL_OPTIONS, *CHUNK_OPTIONS, "dims", "snapshots", "begin_with")
TRIAL = 100
"""Updates; a planner of fewer has learned nothing that could be told."""
NONE = ("clip", "ema")
"""Settings that can be turned off."""


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
    preset: Annotated[str | None, tyro.conf.arg(metavar=listed(*RECIPES))] = None
    """Network, objective and training: ours (the default), the paper's, or those of its authors' code. Other options
    change what they name."""
    begin_with: Annotated[str | None, tyro.conf.arg(metavar="PLANNER")] = None
    """Begin with the weights of a planner, whatever `compdiffuser plan` takes, instead of random ones. Its network,
    chunks, planned dimensions and units stay, and other ones are refused. By default its preset stays too; another one
    sets objective and training alone. Updates, seconds, snapshots and the learning rate begin at zero."""
    steps: int | None = None
    """Updates (baselines: rounded up to a multiple of 50); by default 40,000 (the paper's preset 1,200,000, baselines
    1,000,000), or as many as the time limit allows."""
    time_limit: float | None = None
    """Seconds of training, those of the runs that this one continues included."""
    snapshots: tuple[float, ...] = ()
    """Also keep the planner as it was after so many seconds of this training, in OUT/after-SECONDS."""
    batch: int | None = None
    """Chunks, or transitions, per update; by default 1024 (the paper's preset 128), or what the method asks for."""
    learning_rate: float | None = None
    """Peak learning rate; by default 5e-4 (the paper's preset 2e-4), or what the method asks for."""
    seed: int = 0
    """Initial weights and batches depend on it; batches of agents side by side on their number too."""
    seeds_at_once: int = 1
    """Baselines only: agents trained side by side, with seeds counted from --seed."""
    set: tuple[str, ...] = ()
    """Other settings of the method or of the planner's preset, such as alpha=3 'hidden=[64,64]' or beta2=0.999."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-METHOD, with -AUGMENT where there is one."""
    architecture: Annotated[str | None, tyro.conf.arg(metavar=listed(*ARCHITECTURES))] = None
    """Transformer, or the paper's U-Net; by default the preset's."""
    width: int | None = None
    """Transformer width (256), or channels of the U-Net's first level (64, the paper's 128)."""
    depth: int | None = None
    """Transformer blocks (6), or U-Net levels (4)."""
    patch: int | None = None
    """States per token of a transformer (8)."""
    formulation: Literal["default", "paper"] | None = None
    """Noise levels, preconditioning and loss: ours (EDM), or the paper's 512-step cosine DDPM that predicts x₀."""
    neighbours: Literal["channels", "encoder"] | None = None
    """Neighbouring chunks as aligned input channels, or through the paper's encoder."""
    ends: Literal["channels", "inpaint"] | None = None
    """Start and goal as input channels, or written over the first and the last state."""
    drop: float | None = None
    """Probability that a side of a training chunk has no condition; with the paper's preset, that neither has one."""
    schedule: Literal["cosine", "constant"] | None = None
    """Learning rate after the warm-up."""
    ema: Annotated[float | Literal["none"] | None, tyro.conf.arg(metavar="DECAY|none")] = None
    """Decay of the averaged weights, which are the ones kept."""
    clip: Annotated[float | Literal["none"] | None, tyro.conf.arg(metavar="NORM|none")] = None
    """Largest norm of a gradient."""
    horizon: int | None = None
    """States per chunk; by default the dataset's. With dd, states per plan."""
    overlap: int | None = None
    """States shared by neighbouring chunks; by default the dataset's."""
    stride: int | None = None
    """Environment steps between the states of a chunk; by default the dataset's."""
    dims: str | None = None
    """Planned observation dimensions, as in 0,1, or how many first ones, as in 15; by default the dataset's."""
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
        return self._run_planner() if self.method in PLANNERS else self._run_baseline()

    def check(self) -> Preset:
        """The preset of what is trained. Raises UserError for settings that cannot be, before any work."""
        from compdiffuser.data import storage

        preset = self._planner_settings()[1] if self.method in PLANNERS else self._baseline_settings()[0]
        storage.origin_of(self.dataset)  # raises where it is not made yet
        return preset

    def _run_planner(self) -> int:
        from compdiffuser.cli.proposing import how_long
        from compdiffuser.data import storage
        from compdiffuser.data.advice import on_jumps, on_limits, on_precision, on_windows
        from compdiffuser.planning.training import train_planner
        from compdiffuser.runs import choose_device

        device = choose_device(self.device)
        proposal, preset, recipe, begun = self._planner_settings()
        episodes, out = storage.load(self.dataset), self._out(preset.label)
        if begun:
            advise([begun.told, *on_limits(episodes, preset.space, begun.checkpoint.normalizer, begun.name)])
        if proposal:
            advise([*proposal.reasons, how_long(episodes, preset, recipe, device)])
        space = preset.space
        advise(on_jumps(episodes, space) + on_precision(episodes, space) + on_windows(episodes, preset.chunks))
        checkpoint = train_planner(
            episodes, preset, out, model=recipe.model, config=recipe.training, objective=recipe.objective,
            recipe=self.preset, device=device, method=self.method, manifest=storage.origin_of(self.dataset)[1],
            compiled=None if self.compile else False, snapshots=self.snapshots,
            soundness_told=proposal is not None and recipe.training.steps >= TRIAL, begin_with=begun,
        )  # fmt: skip
        hint = f"plan with: compdiffuser plan {out} --start … --goal …"
        return tell(checkpoint.record["outcome"], out, hint, self.json)

    def _planner_settings(self) -> tuple[Proposal | None, Preset, Recipe, Beginning | None]:
        """What is proposed for data that nobody has tuned, the dataset with its chunks, how it is learned, and from
        which planner on.
        """
        self._refuse(BASELINE_OPTIONS, f"belongs to baselines, not to {self.method}")
        from compdiffuser.cli.proposing import proposed, untuned
        from compdiffuser.data import storage
        from compdiffuser.runs import choose_device

        on_gpu, known = choose_device(self.device).type == "cuda", storage.preset_for(self.dataset)
        begun = self._begun()
        proposal = proposed(self, known, on_gpu, begun) if untuned(known) and self.method != "dd" else None
        preset = begun.preset_for(known) if begun else self._chunked(proposal.preset if proposal else known)
        return proposal, preset, self._recipe(preset, proposal.sizes if proposal else {}, begun), begun

    def _begun(self) -> Beginning | None:
        """The planner to begin with. Raises UserError where there is none, or what was asked for contradicts it."""
        from compdiffuser.planning.beginning import Beginning
        from compdiffuser.planning.beginning import dimensions as told

        if self.begin_with is None:
            return None
        begun = Beginning.of(self.begin_with)
        dims = {} if self.dims is None else {"dims": told(dimensions(self.dims))}
        begun.check({"method": self.method, **self._asked(CHUNK_OPTIONS), **dims})
        return begun

    def _recipe(self, preset: Preset, proposed: Mapping[str, int], begun: Beginning | None = None) -> Recipe:
        """The preset's recipe for a dataset, with what is proposed for one of our own recipes, and what was asked for.

        Raises UserError for a setting given twice, or another one than the planner that is begun with has.
        """
        from compdiffuser.planning.settled import settled

        name, recipe = settled(preset, self.preset, begun)
        if name == "default":
            fits = self.architecture in (None, recipe.model.network.architecture)
            recipe = recipe.changed({n: v for n, v in proposed.items() if fits or n in ("batch", "steps")})
        changes = self._asked(MODEL_OPTIONS)
        changes |= {name: None for name in NONE if changes.get(name) == "none"}
        if "drop" in changes and recipe.objective.sides == "losses":
            changes["nothing"] = changes.pop("drop")
        changes |= self._given()
        usual = {"seed": self.seed, "time_limit": self.time_limit, "steps": self._steps(recipe.training.steps)}
        changes |= {name: value for name, value in usual.items() if getattr(self, name) != getattr(Train, name)}
        network = changes.get("architecture", recipe.model.network.architecture)
        for name, value in parsed(self.set, network).items():
            if name in changes:
                raise UserError(f"{name} is given twice, {changes[name]} and by --set {value}")
            changes[name] = value
        changes = usual | changes
        if begun:
            begun.check(changes)
        return recipe.changed(changes)

    def _chunked(self, preset: Preset) -> Preset:
        """The preset with the dimensions and chunks that were asked for."""
        from compdiffuser.baselines.decision_diffuser import monolithic

        if self.dims is not None:
            preset = preset.planning(dimensions(self.dims))
        given = self._asked(("stride",) if self.method == "dd" else CHUNK_OPTIONS)
        preset = replace(preset, chunks=replace(preset.chunks, **given))
        if self.method == "dd":
            self._refuse(("overlap",), "belongs to composed chunks, and dd plans in one")
            return monolithic(preset, self.horizon)
        return preset

    def _run_baseline(self) -> int:
        """A baseline, with the settings that its dataset asks for."""
        from compdiffuser.baselines.training import train_baseline
        from compdiffuser.data import storage
        from compdiffuser.runs import choose_device

        preset, config, training, augmentation = self._baseline_settings()
        episodes, out = storage.load(self.dataset), self._out(preset.name)
        checkpoint = train_baseline(
            self.method, episodes, preset, out, config=config, training=training,
            seeds=self.seeds_at_once, device=choose_device(self.device), augment=augmentation,
            manifest=storage.origin_of(self.dataset)[1], compiled=None if self.compile else False,
        )  # fmt: skip
        hint = f"evaluate with: compdiffuser eval {out} --method {self.method}" if preset.domain.make else ""
        return tell(checkpoint.record["outcome"], out, hint, self.json)

    def _baseline_settings(self) -> tuple[Preset, AgentConfig, TrainConfig, Augmentation | None]:
        """The dataset, the method's config, the loop's, and where goals are taken from. Raises UserError for others."""
        from compdiffuser.baselines import method
        from compdiffuser.baselines.augmented import Augmentation
        from compdiffuser.baselines.presets import config_for, parse_changes
        from compdiffuser.baselines.training import train_config
        from compdiffuser.data import storage

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
        return preset, config, training, None if self.augment == "none" else Augmentation(self.augment, self.clusters)

    def _steps(self, usual: int) -> int:
        return self.steps if self.steps is not None else 10_000_000 if self.time_limit else usual

    def _given(self) -> dict[str, Any]:
        """The loop's settings that were asked for; the others keep their defaults."""
        return self._asked(("batch", "learning_rate", "checkpoint_every", "log_every"))

    def _asked(self, names: Sequence[str]) -> dict[str, Any]:
        """Those of some options that were given."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _out(self, label: str) -> Path:
        """The folder of the run. Raises UserError where nothing can be written to it."""
        from compdiffuser.files import check_writable
        from compdiffuser.runs import run_folder

        out = self.out or run_folder(label, self.method, None if self.augment == "none" else self.augment)
        check_writable(out / "config.json")
        return out

    def _refuse(self, names: Sequence[str], why: str) -> None:
        """Raise UserError for an option that would have no effect."""
        for field in fields(self):
            if field.name in names and getattr(self, field.name) != field.default:
                raise UserError(f"--{field.name.replace('_', '-')} {why}")
