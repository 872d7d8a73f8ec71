"""Who is evaluated: a planner with its controller, or a baseline, as `compdiffuser eval` was asked for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from compdiffuser.cli.choices import PLANNERS, given_options, usual_candidates
from compdiffuser.presets import PRESETS, Preset
from compdiffuser.types import Policy, UserError

if TYPE_CHECKING:
    from compdiffuser.baselines.checkpoint import BaselineCheckpoint
    from compdiffuser.cli.driving import Driven
    from compdiffuser.cli.evaluate import Eval
    from compdiffuser.domains import Controller
    from compdiffuser.evaluation.rollout import EpisodeResult
    from compdiffuser.planning.config import PlanConfig
    from compdiffuser.planning.planner import Planner

PLANNER_OPTIONS = (
    "replan", "follow", "look_ahead", "rise", "controller", "heading", "chunks", "candidates", "sampler", "order",
    "steps", "eta", "repeats", "guidance", "score", "refine", "support", "scaffold", "plots", "plans",
)  # fmt: skip


@dataclass(frozen=True)
class Contestant:
    """What acts in an evaluation, and what its result says of it."""

    preset: Preset
    policy: Callable[[int], Policy]
    """The policy of an evaluation seed."""
    seeds: int
    limit: int
    """Environment steps per episode."""
    identity: Callable[[], dict[str, Any]]
    """What a result says of it besides its episodes."""
    elsewhere: list[Driven] = field(default_factory=list)
    """Seeds that drove on other machines."""

    def add(self, driven: Driven) -> None:
        """Take in a seed that drove on another machine, whose device and planning time the result tells."""
        self.elsewhere.append(driven)

    def summary(self, runs: Sequence[Sequence[EpisodeResult]]) -> dict[str, Any]:
        """The result of the seeds so far, also within the benchmark's own step limit where that ends earlier.

        Before the first seed it says no more than what is evaluated.
        """
        from compdiffuser.evaluation.causes import causes_in
        from compdiffuser.evaluation.results import provenance, summarize

        if not runs:
            return {"complete": False, **self.identity(), **provenance()}
        benchmark = self.preset.evaluation.benchmark_step_limit
        shorter = benchmark if benchmark < self.limit else None
        causes = causes_in(self.preset.space)
        about = {"complete": len(runs) == self.seeds, **self.identity(), **provenance()}
        for driven in self.elsewhere:
            about["device"] = driven.identity["device"]
            if "planning_seconds" in about:
                about["planning_seconds"] = [*about["planning_seconds"], *driven.identity["planning_seconds"]]
        return summarize(runs, self.limit, shorter, causes=causes, **about)


def planner(options: Eval, asked: int | Literal["auto", "default"]) -> Contestant:
    """A planner and the controller that follows its plans. Raises UserError where they cannot be had."""
    from compdiffuser.following.controllers import seen_columns
    from compdiffuser.following.follower import PlanFollower
    from compdiffuser.following.settings import Following
    from compdiffuser.following.true_heading import heading_of, told_truly
    from compdiffuser.planning.in_use.plan_cache import PlanCache

    made = configured_planner(options)
    preset = made.preset
    refuse_nowhere(options.name, preset)
    chunks = chunks_of(options, asked, preset)
    most = options.candidates or usual_candidates("eval", options.sampler)
    controller = chosen_controller(options, preset)
    seen_columns(controller, preset)  # raises where they do not fit
    if options.heading == "true":
        preset, controller = told_truly(preset, controller)
    source = made if options.plans is None else PlanCache(made, options.plans)
    followers: list[PlanFollower] = []

    def policy(seed: int) -> Policy:
        following = Following(
            options.follow, options.replan, chunks, options.look_ahead, rise=options.rise, seed=1000 * seed,
            options={"n_candidates": most},
        )  # fmt: skip
        followers.append(PlanFollower(source, preset, following, controller))
        return followers[-1]

    def identity() -> dict[str, Any]:
        return {
            "dataset": preset.name,
            "planner": planner_name(options.name),
            "dims": len(preset.space.dims),
            "method": options.method,
            "sampler": "dd" if options.method == "dd" else sampler_name(options, made),
            "recipe": made.record.get("recipe", "default"),
            "trained": trained(made.record),
            "replan": options.replan,
            "controller": source_of(controller),
            "controller_horizon": controller.horizon,
            "controller_dims": len((controller.space or preset.space).dims),
            "heading": heading_of(controller),
            "data": origin_of_data(made.record),
            "settings": {
                "follow": options.follow,
                "look_ahead": options.look_ahead or controller.look_ahead,
                "rise": options.rise,
                "chunks": chunks,
                "candidates": most,
                "step_limit": options.step_limit,
                **{name: getattr(made.config, name) for name in ("score", "refine", "support")},
                "scaffold": made.scaffold,
                **asdict(made.config.sampler),
            },
            "planning_seconds": [round(follower.planning_seconds, 2) for follower in followers],
            "device": str(made.device),
        }

    return Contestant(preset, policy, options.seeds or 5, step_limit(options, preset), identity)


def chunks_of(options: Eval, asked: int | Literal["auto", "default"], preset: Preset) -> int | Literal["auto"]:
    """K as it was asked for; by default automatic, and with the paper's samplers the dataset's own."""
    if options.method == "dd":
        return 1
    if asked == "default":
        return "auto" if options.sampler == "default" else preset.chunks.count
    return asked


def configured_planner(options: Eval) -> Planner:
    """The planner of a name or a folder, set up as asked. Raises UserError for what it was not trained for."""
    from compdiffuser.baselines import decision_diffuser
    from compdiffuser.baselines.checkpoint import method_in
    from compdiffuser.planning.planner import Planner
    from compdiffuser.runs import choose_device

    if (found := method_in(options.name)) is not None:
        raise UserError(f"'{options.name}' holds a checkpoint of {found}; evaluate it with --method {found}")
    config, device, monolithic = plan_config(options), choose_device(options.device), options.method == "dd"
    if monolithic and options.scaffold != "auto":
        raise UserError("--scaffold belongs to composed plans, not to dd")
    name = decision_diffuser.trained(options.name) if monolithic else options.name
    compiled = options.compile and device.type == "cuda"
    made = Planner.from_pretrained(name, device=str(device), config=config, compiled=compiled)
    if monolithic:
        decision_diffuser.check(options.name, made.preset, made.record)
    return made


def baseline(options: Eval) -> Contestant:
    """A baseline: evaluation seed i drives with the weights of training seed i."""
    from compdiffuser.baselines.checkpoint import load
    from compdiffuser.runs import choose_device, run_folder

    refuse_planner_options(options)
    device = choose_device(options.device)
    folder, run = Path(options.name), run_folder(options.name, options.method)
    if not folder.is_dir() and run.is_dir():
        folder = run
    if not folder.is_dir() and options.name in PRESETS:
        command = f"compdiffuser train {options.name} --method {options.method}"
        raise UserError(f"there is no checkpoint at '{run}'; train one with: {command}")
    checkpoint = load(folder, options.method)
    refuse_nowhere(options.name, checkpoint.preset)
    trained = len(checkpoint.seeds)
    seeds = options.seeds or trained
    if seeds > trained:
        told = f"agents trained: {trained}; the other {seeds - trained} of {seeds} seeds repeat their weights"
        print(told, file=sys.stderr)
    identity = {**baseline_identity(checkpoint), "device": str(device)}
    limit = step_limit(options, checkpoint.preset)
    return Contestant(
        checkpoint.preset, lambda seed: checkpoint.policy(seed, device), seeds, limit, lambda: identity
    )  # fmt: skip


def refuse_nowhere(name: str, preset: Preset) -> None:
    """Raise UserError where no simulator is known in which `name` could act."""
    if preset.domain.make is None:
        why = "was trained on data without a known environment, so it cannot be evaluated"
        raise UserError(f"'{name}' {why}; a world of your own is told with --domain FILE.py")


def refuse_planner_options(options: Eval) -> None:
    """Raise UserError for a baseline that is unknown, or given what only planners have."""
    from compdiffuser.baselines import method

    method(options.method, also=PLANNERS)  # raises where there is none
    for option in fields(options):
        if option.name in PLANNER_OPTIONS and getattr(options, option.name) != option.default:
            raise UserError(f"--{option.name.replace('_', '-')} belongs to planners, not to {options.method}")


def plan_config(options: Eval) -> PlanConfig:
    """How to plan. An order comes with the paper's settings; other options change what they name."""
    from compdiffuser.planning.config import configured

    names = ("order", "steps", "eta", "repeats", "guidance", "score", "refine", "support", "scaffold")
    return configured(options.sampler, given_options(options, *names))


def sampler_name(options: Eval, planner: Planner) -> str:
    """Its name in results, which also says where plans begin if that is not usual."""
    from compdiffuser.planning.setting import usual_level

    usual = usual_level(planner) if options.sampler == "default" else None
    if planner.scaffold == usual:
        return options.sampler
    begun = "noise" if planner.scaffold is None else f"scaffold {planner.scaffold:g}"
    return begun if options.sampler == "default" else f"{options.sampler}, {begun}"


def planner_name(given: str) -> str:
    """Its name in results: of a folder, the folder's own. Planners of a dataset may differ in what they plan."""
    return Path(given).resolve().name if Path(given).is_dir() else given


def chosen_controller(options: Eval, preset: Preset) -> Controller:
    """The controller asked for, else the dataset's. One in `runs/`, which replaces the shipped one, is named."""
    from compdiffuser.following.controllers import controller_for
    from compdiffuser.following.inverse_dynamics import load_controller
    from compdiffuser.runs import RUNS

    if options.controller is not None:
        return load_controller(options.controller)
    controller = controller_for(preset)
    if controller.source is not None and Path(controller.source).is_relative_to(RUNS):
        print(f"controller: {controller.source}, trained here", file=sys.stderr)
    return controller


def source_of(controller: Controller) -> str | None:
    """Where a controller was loaded from, as a result says it: of a shipped one, its place among what is shipped."""
    from compdiffuser.files import pretrained_folder

    if controller.source is None:
        return None
    path, shipped = Path(controller.source), pretrained_folder()
    return str(Path("pretrained") / path.relative_to(shipped)) if path.is_relative_to(shipped) else str(path)


def step_limit(options: Eval, preset: Preset) -> int:
    limits = preset.evaluation
    return limits.step_limit if options.step_limit == "paper" else limits.benchmark_step_limit


def origin_of_data(record: dict[str, Any]) -> str:
    return "official" if record.get("data", {}).get("source") == "official" else "regenerated"


def trained(record: dict[str, Any]) -> dict[str, Any]:
    """How long a planner was trained, with those before it that it began with: seconds, updates, parameters, seed."""
    from compdiffuser.planning.beginning import trained_so_far

    return {
        **trained_so_far(record),
        "parameters": record.get("parameters"),
        "seed": record.get("training", {}).get("seed"),
    }


def baseline_identity(checkpoint: BaselineCheckpoint) -> dict[str, Any]:
    """What a baseline's result says of itself."""
    record = checkpoint.record
    return {
        "dataset": checkpoint.preset.name,
        "method": checkpoint.method,
        "augment": record.get("augment") or "none",
        "data": origin_of_data(record),
        "settings": asdict(checkpoint.config),
        "updates": record.get("updates"),
        "training_seeds": list(checkpoint.seeds),
    }
