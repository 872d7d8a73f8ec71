"""`compdiffuser eval`: drive the real environment with a planner or a baseline, and count the goals reached."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.cli.summary import show
from compdiffuser.cli.train import METHODS, PLANNERS
from compdiffuser.types import Policy, UserError

if TYPE_CHECKING:
    from compdiffuser.baselines.checkpoint import BaselineCheckpoint
    from compdiffuser.evaluation.pictures import Pictures
    from compdiffuser.evaluation.rollout import EpisodeResult
    from compdiffuser.planning.follower import PlanFollower
    from compdiffuser.planning.planner import Planner
    from compdiffuser.presets import Preset

    Runs = list[list[EpisodeResult]]


PLANNER_OPTIONS = (
    "replan", "follow", "look_ahead", "controller", "chunks", "candidates", "sampler", "steps", "eta", "repeats",
    "guidance", "scaffold", "plots", "plans",
)  # fmt: skip


@dataclass(frozen=True)
class Eval:
    """Success of a planner or a baseline in its environment: tasks × episodes × seeds."""

    name: tyro.conf.Positional[str]
    """A pretrained planner's name, or the folder of one you trained."""
    method: Annotated[str, tyro.conf.arg(metavar=METHODS)] = "compdiffuser"
    """What acts: composed chunks, one long chunk (Decision Diffuser) with a model trained for it, or a baseline."""
    tasks: str = "all"
    """Task numbers, such as 1,3, or all."""
    episodes: int | None = None
    """Episodes per task and seed; the benchmark's own number where not given."""
    seeds: int | None = None
    """Evaluation seeds: 0, 1, …; by default 5, for a baseline as many as were trained, each with its own weights."""
    replan: bool = True
    """Whether a lost agent gets a new plan."""
    step_limit: Literal["paper", "ogbench"] = "paper"
    """Whose limit of environment steps per episode: the paper's, or the one that the benchmark registers."""
    follow: Literal["progress", "time"] = "progress"
    """Follow a plan by progress along it, or state by state as the paper does."""
    look_ahead: float | None = None
    """Metres ahead along the plan that the agent heads for; by default the controller's own number."""
    controller: Path | None = None
    """Folder of a learned controller; by default runs/DATASET-controller where it is, else the shipped one."""
    chunks: str = "auto"
    """Chunks per plan: a number, or auto."""
    candidates: int | None = None
    """Most fresh plans made for each problem, of which the best is followed; 256, with the paper's samplers 40."""
    sampler: Literal["default", "parallel", "autoregressive", "autoregressive-backward", "gsc"] = "default"
    """The default, or the paper's way in this order: 50 deterministic steps, guidance 2, chosen by overlap, fixed K."""
    steps: int | None = None
    """Denoising steps, where they should differ from the sampler's own."""
    eta: float | None = None
    """Stochasticity between 0 and 1, where it should differ."""
    repeats: int | None = None
    """Times each step is taken in the resampling window, where they should differ."""
    guidance: float | None = None
    """Guidance weight, where it should differ."""
    scaffold: Annotated[float | Literal["auto", "none"], tyro.conf.arg(metavar="auto|none|SIGMA")] = "auto"
    """Noise level from which plans begin along a way through the data; none: all from pure noise; auto: as the preset
    says, with the paper's samplers none."""
    workers: int | None = None
    """Simulator processes; one per core where not given."""
    device: str = "auto"
    """Where the planner runs: auto, cpu, cuda."""
    compile: bool = True
    """Compile the network on a GPU: some seconds once, then about twice as fast."""
    plans: Path | None = None
    """Folder of plans: those that are in it are not made again, new ones are added."""
    out: Path | None = None
    """Also write the JSON object to this file."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object instead of tables."""
    plots: Path | None = None
    """Draw plan and executed path of each task's first episode into this folder."""
    png: Path | None = None
    """Draw each task's first episode into this file: its first plan, the path that was taken, how it ended."""
    video: Path | None = None
    """Film an episode of the first seed into this .mp4 or .gif file."""
    video_task: int | None = None
    """Task whose first episode is filmed; by default the first one that is evaluated."""

    def run(self) -> int:
        tasks, chunks = self._checked()
        if self.method not in PLANNERS:
            return self._run_baseline(tasks)
        from compdiffuser.baselines import decision_diffuser
        from compdiffuser.baselines.checkpoint import method_in
        from compdiffuser.evaluation.results import provenance, summarize
        from compdiffuser.planning.checkpoint import choose_device
        from compdiffuser.planning.controllers import controller_for
        from compdiffuser.planning.inverse_control import load_controller
        from compdiffuser.planning.kept import KeptPlans
        from compdiffuser.planning.planner import Planner

        if (found := method_in(self.name)) is not None:
            raise UserError(f"'{self.name}' holds a checkpoint of {found}; evaluate it with --method {found}")

        device = choose_device(self.device)
        compiled = self.compile and device.type == "cuda"
        name = decision_diffuser.trained(self.name) if self.method == "dd" else self.name
        planner = self._sampling(Planner.from_pretrained(name, device=str(device), compiled=compiled))
        preset = planner.preset
        if self.method == "dd":
            if self.scaffold != "auto":
                raise UserError("--scaffold belongs to composed plans, not to dd")
            decision_diffuser.check(self.name, preset, planner.record)
        if self.method == "dd" or (self.sampler != "default" and chunks == "auto"):
            chunks = 1 if self.method == "dd" else preset.chunks
        controller = load_controller(self.controller) if self.controller else controller_for(preset)
        candidates = self.candidates or (256 if self.sampler == "default" else 40)
        source = planner if self.plans is None else KeptPlans(planner, self.plans)
        followers: list[PlanFollower] = []

        def policy(seed: int) -> Policy:
            from compdiffuser.planning.follower import Following, PlanFollower

            options = {"n_candidates": candidates}
            following = Following(
                self.follow, self.replan, chunks, self.look_ahead, seed=1000 * seed, options=options
            )  # fmt: skip
            followers.append(PlanFollower(source, preset, following, controller))
            return followers[-1]

        limit = self._limit(preset)

        def summary(runs: Runs) -> dict[str, Any]:
            return summarize(
                runs,
                limit,
                _shorter(preset, limit),
                dataset=preset.name,
                method=self.method,
                sampler="dd" if self.method == "dd" else self._sampler_name(planner),
                replan=self.replan,
                controller_horizon=getattr(controller, "horizon", None),
                data="official" if planner.record.get("data", {}).get("source") == "official" else "regenerated",
                settings={
                    "follow": self.follow,
                    "look_ahead": self.look_ahead or controller.look_ahead,
                    "chunks": chunks,
                    "candidates": candidates,
                    "step_limit": self.step_limit,
                    "score": planner.config.score,
                    "refine": planner.config.refine,
                    "scaffold": planner.scaffold,
                    **asdict(planner.config.sampler),
                },
                planning_seconds=[round(follower.planning_seconds, 2) for follower in followers],
                device=str(planner.device),
                **provenance(),
            )

        return self._measure(policy, preset, tasks, self.seeds or 5, limit, summary)

    def _run_baseline(self, tasks: list[int] | None) -> int:
        """A baseline: evaluation seed i drives with the weights of training seed i."""
        from compdiffuser.baselines import method
        from compdiffuser.baselines.checkpoint import load
        from compdiffuser.evaluation.results import provenance, summarize
        from compdiffuser.planning.checkpoint import choose_device
        from compdiffuser.presets import PRESETS

        method(self.method, also=PLANNERS)  # a sentence where there is none
        for field in fields(self):
            if field.name in PLANNER_OPTIONS and getattr(self, field.name) != field.default:
                raise UserError(f"--{field.name.replace('_', '-')} belongs to planners, not to {self.method}")
        device = choose_device(self.device)
        folder = Path(self.name)
        if not folder.is_dir() and (run := Path("runs") / f"{self.name}-{self.method}").is_dir():
            folder = run
        if not folder.is_dir() and self.name in PRESETS:
            command = f"compdiffuser train {self.name} --method {self.method}"
            raise UserError(f"there is no checkpoint at '{run}'; train one with: {command}")
        checkpoint = load(folder, self.method)
        preset, limit = checkpoint.preset, self._limit(checkpoint.preset)
        trained = len(checkpoint.seeds)
        seeds = self.seeds or trained
        if seeds > trained:
            told = f"agents trained: {trained}; the other {seeds - trained} of {seeds} seeds repeat their weights"
            print(told, file=sys.stderr)

        def summary(runs: Runs) -> dict[str, Any]:
            return summarize(
                runs, limit, _shorter(preset, limit), **_identity(checkpoint), device=str(device), **provenance()
            )  # fmt: skip

        return self._measure(lambda seed: checkpoint.policy(seed, device), preset, tasks, seeds, limit, summary)

    def _limit(self, preset: Preset) -> int:
        return preset.step_limit if self.step_limit == "paper" else preset.ogbench_step_limit

    def _sampling(self, planner: Planner) -> Planner:
        """The planner with the sampler asked for. Another order than the default comes with the paper's settings."""
        if self.sampler != "default":
            paper = {"steps": 50, "eta": 0.0, "repeats": 1, "guidance": 2.0}
            planner = planner.with_sampler(order=self.sampler, **paper)
            planner = planner.with_config(score="overlap", refine=None, scaffold=None)
        if self.scaffold != "auto":
            planner = planner.with_config(scaffold=None if self.scaffold == "none" else self.scaffold)
        given = {"steps": self.steps, "eta": self.eta, "repeats": self.repeats, "guidance": self.guidance}
        return planner.with_sampler(**{name: value for name, value in given.items() if value is not None})

    def _sampler_name(self, planner: Planner) -> str:
        """As results call it; what differs from the preset in where plans begin is part of the name."""
        usual = planner.preset.scaffold if self.sampler == "default" else None
        if planner.scaffold == usual:
            return self.sampler
        begun = "noise" if planner.scaffold is None else f"scaffold {planner.scaffold:g}"
        return begun if self.sampler == "default" else f"{self.sampler}, {begun}"

    def _measure(
        self, policy: Callable[[int], Policy], preset: Preset, tasks: list[int] | None, seeds: int, limit: int,
        summary: Callable[[Runs], dict[str, Any]],
    ) -> int:  # fmt: skip
        """Run the episodes of every seed, each driven by the policy made for it, tell the result, and draw.

        After each seed `--out` holds the summary so far, so that a run that is cut off has not been in vain.
        """
        from compdiffuser.evaluation.environments import EnvironmentPool, WorkerError
        from compdiffuser.evaluation.replay import Recorder
        from compdiffuser.evaluation.rollout import evaluate
        from compdiffuser.files import write_json

        if not preset.environment:
            raise UserError(f"'{self.name}' was trained on data without a known environment, so it cannot be evaluated")
        pictures = self._pictures()
        pictures.check_task(preset, tasks)
        runs: Runs = []
        try:
            with EnvironmentPool(preset, self.workers) as pool:
                first = Recorder(policy(0))
                for seed in range(seeds):
                    driver = policy(seed) if seed else first
                    runs.append(evaluate(driver, preset, tasks, self.episodes, seed, limit, pool=pool, progress=True))
                    if self.out is not None:
                        write_json(self.out, summary(runs))
        except WorkerError as error:
            print(f"compdiffuser: {error}", file=sys.stderr)
            return 1
        if self.json:
            print(json.dumps(summary(runs), ensure_ascii=False), flush=True)
        else:
            show(summary(runs))
        written = pictures.draw(preset, first, runs[0], title=f"{preset.name}, {self.method}")
        if written and not self.json:
            print("pictures:", *written)
        return 0

    def _pictures(self) -> Pictures:
        from compdiffuser.evaluation.pictures import Pictures

        return Pictures(self.plots, self.png, self.video, self.video_task)

    def _checked(self) -> tuple[list[int] | None, int | Literal["auto"]]:
        """Task numbers (None: all) and chunks; a sentence for what is neither."""
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"an evaluation needs at least 1 seed, not {self.seeds}")
        if self.episodes is not None and self.episodes < 1:
            raise UserError(f"an evaluation needs at least 1 episode per task, not {self.episodes}")
        if self.candidates is not None and self.candidates < 1:
            raise UserError(f"a plan is chosen among at least 1 candidate, not {self.candidates}")
        if self.chunks != "auto" and not (self.chunks.isdigit() and int(self.chunks) >= 1):
            raise UserError(f"the number of chunks is 'auto' or at least 1, not '{self.chunks}'")
        numbers = self.tasks.split(",")
        if self.tasks != "all" and not all(number.strip().isdigit() for number in numbers):
            raise UserError(f"tasks are 'all' or numbers such as '1,3', not '{self.tasks}'")
        self._pictures().check()
        tasks = None if self.tasks == "all" else [int(number) for number in numbers]
        return tasks, "auto" if self.chunks == "auto" else int(self.chunks)


def _identity(checkpoint: BaselineCheckpoint) -> dict[str, Any]:
    """What a baseline's result says of itself."""
    record = checkpoint.record
    return {
        "dataset": checkpoint.preset.name,
        "method": checkpoint.method,
        "augment": record.get("augment") or "none",
        "data": "official" if record.get("data", {}).get("source") == "official" else "regenerated",
        "settings": asdict(checkpoint.config),
        "updates": record.get("updates"),
        "training_seeds": list(checkpoint.seeds),
    }


def _shorter(preset: Preset, limit: int) -> int | None:
    """The benchmark's own step limit, where it ends episodes earlier."""
    return preset.ogbench_step_limit if preset.ogbench_step_limit < limit else None
