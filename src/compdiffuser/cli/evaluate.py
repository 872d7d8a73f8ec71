"""`compdiffuser eval`: drive the real environment with a planner or a baseline, and count the goals reached."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.cli.choices import BASELINES, ORDERS, PLANNERS, SAMPLERS, SCORES, listed
from compdiffuser.cli.summary import show
from compdiffuser.cli.worlds import loaded_worlds
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from compdiffuser.cli.contestants import Contestant
    from compdiffuser.evaluation.pictures import Pictures
    from compdiffuser.evaluation.replay import Recorder
    from compdiffuser.evaluation.rollout import EpisodeResult
    from compdiffuser.presets import Preset


CHUNKS = ("default", "auto")


@dataclass(frozen=True)
class Eval:
    """Success of a planner or a baseline in its environment: tasks × episodes × seeds."""

    name: tyro.conf.Positional[str]
    """A pretrained planner's name, or the folder of one you trained."""
    method: Annotated[str, tyro.conf.arg(metavar=listed(*PLANNERS, *BASELINES))] = "compdiffuser"
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
    follow: Literal["progress", "time", "phase"] = "progress"
    """How far along a plan its agent is: as far as it got (progress), as far as the clock says, as in the paper (time),
    or at the planned state that is nearest in place and posture (phase)."""
    look_ahead: float | None = None
    """Metres ahead along the plan that the agent heads for; by default the controller's own number."""
    rise: bool = True
    """Whether an ant on its back gets up, by a reflex that was not learned from the data."""
    controller: Path | None = None
    """Folder of a learned controller; by default runs/DATASET-controller where it is, else the shipped one."""
    heading: Literal["estimated", "true"] = "estimated"
    """Where a body whose observations do not tell it has its heading from: the controller's estimate, or, for
    comparison alone, the simulator."""
    chunks: str = "default"
    """Chunks per plan: a number, or auto; by default auto, with the paper's sampler the dataset's number."""
    candidates: int | None = None
    """Most fresh plans made for each problem, of which the best is followed; 256, with the paper's sampler 40."""
    sampler: Annotated[str, tyro.conf.arg(metavar=listed(*SAMPLERS, *ORDERS))] = "default"
    """The default; the paper's (autoregressive, 50 deterministic steps, guidance 2, 40 candidates, chosen by overlap,
    fixed K), or that with its chunks denoised in another order; or the one in its authors' code."""
    order: Annotated[str | None, tyro.conf.arg(metavar=listed(*ORDERS))] = None
    """Order in which chunks are denoised, where it should differ from the sampler's own."""
    steps: int | None = None
    """Denoising steps, where they should differ from the sampler's own."""
    eta: float | None = None
    """Stochasticity between 0 and 1, where it should differ."""
    repeats: int | None = None
    """Times each step is taken in the resampling window, where they should differ."""
    guidance: float | None = None
    """Guidance weight, where it should differ."""
    score: Annotated[str | None, tyro.conf.arg(metavar=listed(*SCORES))] = None
    """How the best candidate is chosen, where it should differ."""
    refine: Annotated[float | Literal["none"] | None, tyro.conf.arg(metavar="none|SIGMA")] = None
    """Noise level up to which the best candidates are noised and denoised again, where it should differ."""
    support: bool = True
    """Whether candidates are also judged by the recorded segments, and not by the model alone."""
    scaffold: Annotated[float | Literal["auto", "none"], tyro.conf.arg(metavar="auto|none|SIGMA")] = "auto"
    """Noise level of scaffolds, paths through recorded states from which plans begin; none: all from pure noise; auto:
    what the preset says, none with the paper's sampler."""
    workers: int | None = None
    """Simulator processes; one per core where not given. With --engine ray, seeds side by side."""
    engine: Literal["local", "ray"] = "local"
    """`local` processes, or a `ray` cluster, where each seed is a job: the one that RAY_ADDRESS names, else one on this
    machine. A folder must then be one that all its nodes see."""
    gpus: float = 0.0
    """With --engine ray: GPUs that each seed takes, such as 1 or 0.5."""
    device: str = "auto"
    """Where the planner runs: auto, cpu, cuda."""
    compile: bool = True
    """Compile the network on a GPU: some seconds once, then about twice as fast."""
    plans: Path | None = None
    """Folder that caches plans: those that are in it are not made again, new ones are added."""
    out: Path | None = None
    """Also write the JSON object to this file; `complete` is false in it until the last seed is done."""
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
        tasks = self.task_numbers()
        self._check_outputs()
        contestant = self.contestant()
        preset, pictures = contestant.preset, self._pictures()
        pictures.check_task(preset, tasks)
        runs, first = self._far(contestant) if self.engine == "ray" else self._here(contestant, tasks)
        if self.json:
            print(json.dumps(contestant.summary(runs), ensure_ascii=False), flush=True)
        else:
            show(contestant.summary(runs))
        if first is not None:
            written = pictures.draw(preset, first, runs[0], title=f"{preset.name}, {self.method}")
            if written and not self.json:
                print("pictures:", *written)
        return 0

    def task_numbers(self) -> list[int] | None:
        """Those that are asked for; None: all."""
        return self._checked()[0]

    def contestant(self) -> Contestant:
        """Who is evaluated. Raises UserError where it cannot be had."""
        from compdiffuser.cli.contestants import baseline, planner

        return planner(self, self._checked()[1]) if self.method in PLANNERS else baseline(self)

    def measured(self) -> dict[str, Any]:
        """The summary of all seeds, driven in this process and its simulators."""
        contestant = self.contestant()
        return contestant.summary(self._here(contestant, self.task_numbers())[0])

    def check(self, preset: Preset) -> None:
        """Raise UserError for options with which what is trained for a dataset could not be evaluated."""
        from compdiffuser.cli.contestants import plan_config, refuse_nowhere, refuse_planner_options
        from compdiffuser.evaluation.problems import Task

        refuse_nowhere(self.name, preset)
        for task in self.task_numbers() or ():
            Task(task, 0).check(preset.domain)
        if self.method in PLANNERS:
            plan_config(self)
        else:
            refuse_planner_options(self)

    def _here(self, contestant: Contestant, tasks: list[int] | None) -> tuple[list[list[EpisodeResult]], Recorder]:
        """Run the episodes of every seed, one after the other; the first one's policy is recorded.

        After each seed `--out` holds the summary so far, so that a run that is cut off has not been in vain; it is
        `complete` after the last.
        """
        from compdiffuser.evaluation.environments import EnvironmentPool
        from compdiffuser.evaluation.replay import Recorder
        from compdiffuser.evaluation.rollout import evaluate

        runs: list[list[EpisodeResult]] = []
        with EnvironmentPool(contestant.preset.domain, self.workers) as pool:
            first = Recorder(contestant.policy(0))
            self._keep(contestant, runs)
            for seed in range(contestant.seeds):
                driver = contestant.policy(seed) if seed else first
                episodes = evaluate(
                    driver, contestant.preset, tasks, self.episodes, seed, contestant.limit, pool=pool, progress=True
                )  # fmt: skip
                runs.append(episodes)
                self._keep(contestant, runs)
        return runs, first

    def _far(self, contestant: Contestant) -> tuple[list[list[EpisodeResult]], None]:
        """Run the seeds as jobs of a cluster. What `--out` holds meanwhile is the summary of the first seeds."""
        from compdiffuser import parallel
        from compdiffuser.cli.driving import Driven, drive

        jobs = [(replace(self, out=None), seed, loaded_worlds()) for seed in range(contestant.seeds)]
        done: dict[int, Driven] = {}
        runs: list[list[EpisodeResult]] = []
        self._keep(contestant, runs)
        for seed, driven in parallel.stream(drive, jobs, self.workers, "ray", "seeds", gpus=self.gpus):
            done[seed] = driven
            while len(runs) in done:
                contestant.add(done[len(runs)])
                runs.append(done[len(runs)].episodes)
                self._keep(contestant, runs)
        return runs, None

    def _keep(self, contestant: Contestant, runs: list[list[EpisodeResult]]) -> None:
        from compdiffuser.files import write_json

        if self.out is not None:
            write_json(self.out, contestant.summary(runs))

    def _pictures(self) -> Pictures:
        from compdiffuser.evaluation.pictures import Pictures

        return Pictures(self.plots, self.png, self.video, self.video_task)

    def _check_outputs(self) -> None:
        """Raise UserError for what could not be written."""
        from compdiffuser.files import check_writable

        self._pictures().check()
        if self.out is not None:
            check_writable(self.out)

    def _checked(self) -> tuple[list[int] | None, int | Literal["auto", "default"]]:
        """Task numbers (None: all) and chunks. Raises UserError for what is neither."""
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"an evaluation needs at least 1 seed, not {self.seeds}")
        if self.episodes is not None and self.episodes < 1:
            raise UserError(f"an evaluation needs at least 1 episode per task, not {self.episodes}")
        if self.candidates is not None and self.candidates < 1:
            raise UserError(f"a plan is chosen among at least 1 candidate, not {self.candidates}")
        if self.chunks not in CHUNKS and not (self.chunks.isdecimal() and int(self.chunks) >= 1):
            raise UserError(f"the number of chunks is 'auto' or at least 1, not '{self.chunks}'")
        if self.engine == "ray" and any((self.plots, self.png, self.video)):
            raise UserError("pictures are drawn of episodes that ran on this machine; leave out --engine ray")
        if self.engine != "ray" and self.gpus:
            raise UserError(f"a share of {self.gpus:g} GPUs is for --engine ray; here one process evaluates all seeds")
        numbers = self.tasks.split(",")
        if self.tasks != "all" and not all(number.strip().isdecimal() for number in numbers):
            raise UserError(f"tasks are 'all' or numbers such as '1,3', not '{self.tasks}'")
        tasks = None if self.tasks == "all" else [int(number) for number in numbers]
        if tasks is not None and len(set(tasks)) < len(tasks):
            raise UserError(f"each task is evaluated once, but some are named twice in '{self.tasks}'")
        words: dict[str, Literal["auto", "default"]] = {"auto": "auto", "default": "default"}
        return tasks, words[self.chunks] if self.chunks in words else int(self.chunks)
