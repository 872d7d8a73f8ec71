"""`compdiffuser eval`: drive the real environment with a planner or a baseline, and count the goals reached."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from compdiffuser.cli.choices import BASELINES, ORDERS, PLANNERS, SAMPLERS, SCORES, listed
from compdiffuser.cli.summary import show
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from compdiffuser.cli.contestants import Contestant
    from compdiffuser.evaluation.pictures import Pictures


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
    """Follow a plan by progress along it, state by state as the paper does, or from the planned state that is nearest
    in place and posture."""
    look_ahead: float | None = None
    """Metres ahead along the plan that the agent heads for; by default the controller's own number."""
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
    """Simulator processes; one per core where not given."""
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
        from compdiffuser.cli.contestants import baseline, planner

        tasks, chunks = self._checked()
        contestant = planner(self, chunks) if self.method in PLANNERS else baseline(self)
        return self._measure(contestant, tasks)

    def _measure(self, contestant: Contestant, tasks: list[int] | None) -> int:
        """Run the episodes of every seed, tell the result, and draw.

        After each seed `--out` holds the summary so far, so that a run that is cut off has not been in vain; it is
        `complete` after the last.
        """
        from compdiffuser.evaluation.environments import EnvironmentPool
        from compdiffuser.evaluation.replay import Recorder
        from compdiffuser.evaluation.rollout import EpisodeResult, evaluate
        from compdiffuser.files import write_json

        preset = contestant.preset
        if preset.domain.make is None:
            raise UserError(f"'{self.name}' was trained on data without a known environment, so it cannot be evaluated")
        pictures = self._pictures()
        pictures.check_task(preset, tasks)
        runs: list[list[EpisodeResult]] = []
        limit = contestant.limit
        with EnvironmentPool(preset.domain, self.workers) as pool:
            first = Recorder(contestant.policy(0))
            if self.out is not None:
                write_json(self.out, contestant.summary(runs))
            for seed in range(contestant.seeds):
                driver = contestant.policy(seed) if seed else first
                runs.append(evaluate(driver, preset, tasks, self.episodes, seed, limit, pool=pool, progress=True))
                if self.out is not None:
                    write_json(self.out, contestant.summary(runs))
        if self.json:
            print(json.dumps(contestant.summary(runs), ensure_ascii=False), flush=True)
        else:
            show(contestant.summary(runs))
        written = pictures.draw(preset, first, runs[0], title=f"{preset.name}, {self.method}")
        if written and not self.json:
            print("pictures:", *written)
        return 0

    def _pictures(self) -> Pictures:
        from compdiffuser.evaluation.pictures import Pictures

        return Pictures(self.plots, self.png, self.video, self.video_task)

    def _checked(self) -> tuple[list[int] | None, int | Literal["auto", "default"]]:
        """Task numbers (None: all) and chunks. Raises UserError for what is neither."""
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"an evaluation needs at least 1 seed, not {self.seeds}")
        if self.episodes is not None and self.episodes < 1:
            raise UserError(f"an evaluation needs at least 1 episode per task, not {self.episodes}")
        if self.candidates is not None and self.candidates < 1:
            raise UserError(f"a plan is chosen among at least 1 candidate, not {self.candidates}")
        if self.chunks not in CHUNKS and not (self.chunks.isdigit() and int(self.chunks) >= 1):
            raise UserError(f"the number of chunks is 'auto' or at least 1, not '{self.chunks}'")
        numbers = self.tasks.split(",")
        if self.tasks != "all" and not all(number.strip().isdigit() for number in numbers):
            raise UserError(f"tasks are 'all' or numbers such as '1,3', not '{self.tasks}'")
        self._pictures().check()
        if self.out is not None:
            from compdiffuser.files import check_writable

            check_writable(self.out)
        tasks = None if self.tasks == "all" else [int(number) for number in numbers]
        words: dict[str, Literal["auto", "default"]] = {"auto": "auto", "default": "default"}
        return tasks, words[self.chunks] if self.chunks in words else int(self.chunks)
