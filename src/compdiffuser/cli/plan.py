"""`compdiffuser plan`: from a start and a goal to a plan, a picture, an animation, a file."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.cli.choices import BLENDINGS, ORDERS, RULES, SAMPLERS, SCORES, given_options, listed, usual_candidates
from compdiffuser.progress import progress_bar
from compdiffuser.types import UserError, counted

if TYPE_CHECKING:
    from rich.progress import Progress
    from torch import Tensor

    from compdiffuser.domains import Domain
    from compdiffuser.planning.config import PlanConfig
    from compdiffuser.planning.planner import Planner
    from compdiffuser.planning.progress import Round


@dataclass(frozen=True)
class Plan:
    """Plan from a start to a goal with a trained chunk model.

    Example: compdiffuser plan pointmaze-giant-stitch-v0 --start 0,0 --goal 52,36 --png plan.png
    """

    model: tyro.conf.Positional[str]
    """Name of a shipped planner, or the folder of one of yours."""
    start: str | None = None
    """Where to start, as numbers separated by commas. Places are enough: a simulator adds the posture of a body."""
    goal: str | None = None
    """Where to end. Where only a ball has to be there, its place is enough."""
    start_from_task: int | None = None
    """Instead of both: the start and the goal of this task of the benchmark, as its simulator begins it."""
    chunks: str = "auto"
    """Number of chunks to compose; auto tries several and takes the best plan that is certified."""
    candidates: int | None = None
    """Most fresh candidates to make, of which the best of each wave are refined on top; 64, with the paper's sampler
    40."""
    seed: int = 0
    """The same seed gives the same plan."""
    sampler: Annotated[str, tyro.conf.arg(metavar=listed(*SAMPLERS))] = "default"
    """Ours; the paper's (50 deterministic steps, guidance 2, 40 candidates from noise, chosen by overlap, fixed K); or
    the one in its authors' code. The options below change what they name."""
    via: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A place x,y to pass on the way; several are passed in order. x,y@ball: what passes it is the ball; x,y~0.5:
    within half a metre."""
    avoid: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A region to keep out of: disc:x,y,r, box:x0,y0,x1,y1 or polygon:x,y,x,y,…; may be given several times. With
    @ball at its end, only the ball has to."""
    margin: float = 0.0
    """Metres to keep away from the regions."""
    plans: int = 1
    """Plans to choose from, at most: all take different ways."""
    order: Annotated[str, tyro.conf.arg(metavar=listed("default", *ORDERS))] = "default"
    """Order in which chunks are denoised; the default is autoregressive."""
    rule: Annotated[str | None, tyro.conf.arg(metavar=listed(*RULES))] = None
    """Step rule of the sampler; by default euler."""
    steps: int | None = None
    """Noise levels to walk down: 10, the paper's 50."""
    repeats: int | None = None
    """How often each step in the resampling window is taken: 8, the paper's 1."""
    score: Annotated[str | None, tyro.conf.arg(metavar=listed(*SCORES))] = None
    """How the best candidate is chosen; by default by reconstruction, in the paper by overlap."""
    blending: Annotated[str, tyro.conf.arg(metavar=listed(*BLENDINGS))] = "exponential"
    """How overlapping chunks are merged."""
    scaffold: Annotated[float | Literal["auto", "none"], tyro.conf.arg(metavar="auto|none|SIGMA")] = "auto"
    """Noise level of scaffolds, paths through recorded states from which plans begin; none: all from pure noise; auto:
    what the preset says."""
    wave: int | None = None
    """Candidates made at a time, until one is certified; by default 8 on a CPU and 64 on a GPU."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to compute."""
    png: Path | None = None
    """Draw the plan into this file."""
    poses: Path | None = None
    """Draw the planned body in fifty poses into this PNG file, where postures are planned."""
    gif: Path | None = None
    """Draw the denoising into this file."""
    save: Path | None = None
    """Keep the plan in this .npz file."""
    json: bool = False
    """Print the plan as one JSON object."""

    def run(self) -> int:
        from compdiffuser.evaluation.poses import check_poses, draw_poses
        from compdiffuser.planning.planner import Planner
        from compdiffuser.planning.roads.goals import check_room
        from compdiffuser.plotting.groups import check_plane

        self._check_files()
        ends, steering = self._ends(), self._steering()
        planner = Planner.from_pretrained(self.model, self.device, self._config())
        start, goal = placed(planner.preset.domain, ends)
        check_room(planner.preset.domain, start, goal)
        if self.poses:
            check_poses(planner.preset.domain)
        if self.png or self.gif:
            check_plane(planner.space)
        fixed = self.chunks == "auto" and self.sampler != "default"
        chunks = planner.preset.chunks.count if fixed else chunk_count(self.chunks)
        most = usual_candidates("plan", self.sampler) if self.candidates is None else self.candidates
        frames = Frames() if self.gif else None
        with progress_bar(transient=True, remaining=False) as bar:
            plan = planner.plan(
                start, goal, n_chunks=chunks, n_candidates=most, seed=self.seed, watch=Wave(bar, frames).watch,
                **steering,
            )  # fmt: skip
        if self.save:
            plan.save(self.save)
        if self.png:
            plan.plot(self.png)
        if self.poses:
            draw_poses(plan, planner.preset.domain, self.poses)
        if self.gif and frames is not None:
            frames.animate(planner, plan, self.gif)
        if self.json:
            others = {"others": [other.to_dict() for other in plan.others]} if self.plans > 1 else {}
            print(json.dumps({**plan.to_dict(), **others}))
        else:
            tell(plan, [path for path in (self.png, self.poses, self.gif, self.save) if path], self.plans)
        return 0 if plan.ok else 3

    def _ends(self) -> int | tuple[list[float], list[float]]:
        """The number of a task, or a start and a goal. Raises UserError where it is neither."""
        if self.start_from_task is not None:
            if self.start is not None or self.goal is not None:
                raise UserError("--start-from-task gives the start and the goal; leave out --start and --goal")
            return self.start_from_task
        for what, given in (("start", self.start), ("goal", self.goal)):
            if given is None:
                raise UserError(f"--{what} is missing: a plan needs --start and --goal, or --start-from-task")
        return numbers(self.start or "", "start"), numbers(self.goal or "", "goal")

    def _steering(self) -> dict[str, Any]:
        """What steers the plan. Raises UserError for what is none, and for a film of several plans."""
        from compdiffuser.planning.steering.regions import region
        from compdiffuser.planning.steering.steering import waypoint

        if self.plans != 1 and self.gif:
            raise UserError(f"--gif shows the denoising of one plan, not of {self.plans}")
        avoid, via = [region(text) for text in self.avoid], [waypoint(text) for text in self.via]
        return {"avoid": avoid, "via": via, "margin": self.margin, "n_plans": self.plans}

    def _config(self) -> PlanConfig:
        """How to plan. Raises UserError for an unknown name and a number that cannot be."""
        from compdiffuser.checks import member
        from compdiffuser.planning.config import configured

        member("sampler", self.sampler, SAMPLERS)
        changes = given_options(self, "rule", "steps", "repeats", "score", "blending", "wave", "scaffold")
        if self.order != "default":
            changes["order"] = self.order
        return configured(self.sampler, changes)

    def _check_files(self) -> None:
        """Raise UserError for files that could not be written, before there is anything to write."""
        from compdiffuser.files import check_writable
        from compdiffuser.plotting.output import check_gif, check_picture, check_poses_picture

        if self.png:
            check_picture(self.png)
        if self.gif:
            check_gif(self.gif)
        if self.poses:
            check_poses_picture(self.poses)
        for path in (self.png, self.poses, self.gif, self.save):
            if path:
                check_writable(path)


BEGINNINGS = {"noise": "noise", "scaffold": "a scaffold", "refined": "another candidate, refined"}


def tell(plan: Any, files: list[Path], asked: int = 1) -> None:
    """The plan in a few lines; of several that were `asked` for, those that were found."""
    size = f"{counted(len(plan.states), 'state')} in {counted(plan.n_chunks, 'chunk')}"
    print(f"plan      {size}, {plan.length:.1f} m")
    print(f"verdict   {plan.verdict}")
    print(f"began     from {BEGINNINGS[plan.origin]}")
    among = counted(len(plan.scores), "candidate")
    print(f"score     {plan.score:.4f} (confidence {plan.confidence:.2f}), best of {among}")
    print(f"time      {plan.seconds:.2f} s")
    for number, other in enumerate(plan.others, 2):
        print(f"plan {number}    {len(other.states)} states, {other.length:.1f} m, {other.verdict}")
    if (found := 1 + len(plan.others)) < asked:
        print(f"plans     {found} of {asked}: no further certified one that takes another way was found")
    for path in files:
        print(f"written   {path}")
    sys.stdout.flush()


def placed(domain: Domain, ends: int | tuple[list[float], list[float]]) -> tuple[list[float], list[float]]:
    """Start and goal, as far as a simulator is needed to know them. Raises UserError where there is none."""
    from compdiffuser.evaluation.ends import begun, completed
    from compdiffuser.evaluation.problems import Task

    if isinstance(ends, int):
        begin, asked = begun(domain, Task(ends, seed=0))
        return begin.tolist(), asked.tolist()
    start, goal = ends
    return completed(domain, start, goal), goal


def numbers(text: str, what: str) -> list[float]:
    """The state in "x,y,…"."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"the {what} must be numbers separated by commas, not '{text}'") from None


def chunk_count(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise UserError(f"chunks must be 'auto' or a number, not '{text}'") from None


class Wave:
    """Shows on a bar how far the present wave of candidates is, and passes on what it sees."""

    def __init__(self, bar: Progress, frames: Frames | None) -> None:
        self.bar, self.frames = bar, frames
        self.waves = 0
        self.line = bar.add_task("planning")

    def watch(self, seen: Round) -> None:
        self.waves += seen.index == 0
        told = f"planning, wave {self.waves}"
        self.bar.update(self.line, description=told, completed=seen.index + 1, total=seen.count)
        if self.frames is not None:
            self.frames(seen)


class Frames:
    """Collects the estimates of a denoising, thinned out."""

    def __init__(self, most: int = 40) -> None:
        self.most = most
        self.seen: dict[int, list[Tensor]] = {}
        """The estimates of the chunks [K, H, D] of each candidate, round by round."""

    def __call__(self, seen: Round) -> None:
        if seen.index % max(seen.count // self.most, 1) == 0 or seen.index == seen.count - 1:
            for candidate, rows in seen.of(0):
                self.seen.setdefault(candidate, []).append(seen.estimates[rows].clone())

    def animate(self, planner: Planner, plan: Any, path: Path) -> None:
        """Show how the chosen candidate took shape."""
        import numpy as np
        import torch

        from compdiffuser.plotting.plans import animate_denoising

        made = [rounds for rounds in self.seen.values() if rounds[-1].shape == plan.chunks.shape]
        chosen = planner.normalizer.normalize(plan.chunks)
        seen = torch.stack(min(made, key=lambda rounds: float(np.abs(rounds[-1].cpu().numpy() - chosen).max())))
        frames = planner.normalizer.denormalize(seen).cpu().numpy()
        frames[(seen == 0).all(dim=3).all(dim=2).cpu().numpy()] = np.nan  # chunks whose turn has not come
        animate_denoising(frames, path, space=plan.space, maze=plan.maze, start=plan.start, goal=plan.goal)
