"""Pictures and a video of an evaluation's first seed: a file per task, all tasks in one file, one episode as a film."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from compdiffuser.data.mazes import maze
from compdiffuser.evaluation.replay import Recorder, replay
from compdiffuser.evaluation.rollout import EpisodeResult
from compdiffuser.evaluation.tasks import task_count
from compdiffuser.presets import Preset
from compdiffuser.types import UserError


@dataclass(frozen=True)
class Pictures:
    """What is to be drawn; nothing of what is None."""

    plots: Path | None = None
    """Folder for each task's first episode with its last plan."""
    png: Path | None = None
    """File for each task's first episode with its first plan, side by side."""
    video: Path | None = None
    """File for a film of one episode."""
    video_task: int | None = None
    """Task whose first episode is filmed; the first task where None."""

    def check(self) -> None:
        """A sentence for what could not be drawn, before there is anything to draw."""
        if self.png is not None:
            from compdiffuser.plotting.plans import check_picture

            check_picture(self.png)
        if self.video is not None:
            from compdiffuser.plotting.video import check_video

            check_video(self.video)
        elif self.video_task is not None:
            raise UserError(f"--video-task {self.video_task} chooses what --video films, and there is no --video")

    def check_task(self, preset: Preset, tasks: Sequence[int] | None) -> None:
        """A sentence where the task to be filmed is not among those that are evaluated (None: all)."""
        chosen = range(1, task_count(preset) + 1) if tasks is None else tasks
        if self.video_task is not None and self.video_task not in chosen:
            numbers = ", ".join(str(task) for task in chosen)
            raise UserError(f"task {self.video_task} is not evaluated, so it cannot be filmed; evaluated: {numbers}")

    def draw(self, preset: Preset, recorder: Recorder, results: Sequence[EpisodeResult], title: str) -> list[Path]:
        """Write what was asked for; the files."""
        written = []
        if self.plots is not None:
            written += _plot_tasks(self.plots, recorder, results)
        if self.png is not None:
            written.append(_plot_panels(self.png, preset, recorder, results, title))
        if self.video is not None:
            task = results[0].task if self.video_task is None else self.video_task
            row = next(row for row, result in enumerate(results) if result.task == task)
            with Console(stderr=True).status(f"filming task {task} …"):
                written.append(film(self.video, preset, recorder, results, row))
        return written


def film(path: Path, preset: Preset, recorder: Recorder, results: Sequence[EpisodeResult], row: int) -> Path:
    """A video of one of the recorded episodes: the simulator plays it again and MuJoCo draws it."""
    from compdiffuser.plotting.video import Shot, frames, thinned, write_video

    result, plans = results[row], recorder.plans(row)
    model, positions = replay(preset, result, recorder.actions(row, result.steps))
    shots = []
    for step in thinned(result.steps):
        followed = [plan.chunks for since, plan in plans if since <= step]
        shots.append(Shot(positions[step], followed[-1] if followed else None))
    with closing(frames(model, shots, maze(preset.maze), recorder.goals[row])) as pictures:
        return write_video(pictures, path)


def _plot_tasks(folder: Path, recorder: Recorder, results: Sequence[EpisodeResult]) -> list[Path]:
    written = []
    for row, result in _first_episodes(results):
        written.append(folder / f"task{result.task}.png")
        recorder.plans(row)[-1][1].plot(written[-1], executed=result.path, title=_title(result))
    return written


def _plot_panels(
    png: Path, preset: Preset, recorder: Recorder, results: Sequence[EpisodeResult], title: str
) -> Path:  # fmt: skip
    from compdiffuser.plotting.plans import Panel, plot_episodes

    panels = [
        Panel(
            _title(result),
            result.success,
            recorder.starts[row],
            recorder.goals[row],
            executed=result.path,
            chunks=recorder.plans(row)[0][1].chunks if recorder.plans(row) else None,
        )
        for row, result in _first_episodes(results)
    ]
    plot_episodes(panels, maze(preset.maze), title=title, png=png)
    return png


def _first_episodes(results: Sequence[EpisodeResult]) -> list[tuple[int, EpisodeResult]]:
    return [(row, result) for row, result in enumerate(results) if result.episode == 0]


def _title(result: EpisodeResult) -> str:
    outcome = f"goal reached in {result.steps} steps" if result.success else f"failed: {result.cause}"
    return f"task {result.task}, {outcome}"
