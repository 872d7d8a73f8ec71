"""Pictures and a video of an evaluation's first seed: a file per task, all tasks in one file, one episode as a film."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from compdiffuser.evaluation.replay import Recorder, has_scene, replay
from compdiffuser.evaluation.rollout import EpisodeResult
from compdiffuser.files import check_writable
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
        """Raise UserError for what could not be written, before there is anything to draw."""
        if self.video is None and self.video_task is not None:
            raise UserError(f"--video-task {self.video_task} chooses what --video films, and there is no --video")
        if self.png is not None:
            from compdiffuser.plotting.output import check_picture

            check_picture(self.png)
        if self.video is not None:
            from compdiffuser.plotting.video import check_video

            check_video(self.video)
        for path in (self.plots and self.plots / "task1.png", self.png, self.video):
            if path is not None:
                check_writable(path)

    def check_task(self, preset: Preset, tasks: Sequence[int] | None) -> None:
        """Raise UserError where a film is asked for that could not be drawn.

        Its task is not among those that are evaluated (None: all), or the world has a scene and there is no OpenGL.
        """
        chosen = range(1, preset.domain.tasks + 1) if tasks is None else tasks
        if self.video_task is not None and self.video_task not in chosen:
            numbers = ", ".join(str(task) for task in chosen)
            raise UserError(f"task {self.video_task} is not evaluated, so it cannot be filmed; evaluated: {numbers}")
        if self.video is not None and preset.maze is not None and preset.maze.is_grid and has_scene(preset.domain):
            from compdiffuser.plotting.scene_video import check_opengl

            check_opengl()

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
    """A video of one of the recorded episodes, which is played again.

    MuJoCo draws it where the world has a scene and a maze of cells; all others are filmed on their map.
    """
    from compdiffuser.plotting.map_video import map_frames
    from compdiffuser.plotting.scene_video import scene_frames
    from compdiffuser.plotting.video import Shot, thinned, write_video

    result, plans, space, maze = results[row], recorder.plans(row), preset.space, preset.maze
    if result.problem is None:
        raise UserError(f"task {result.task} cannot be filmed: its result does not say how the episode began")
    played = replay(preset.domain, result.problem, recorder.actions(row, result.steps))
    places = space.places(space.planned(played.observations))
    shots = []
    for step in thinned(result.steps):
        followed = [plan.chunks for since, plan in plans if since <= step]
        qpos = None if played.qpos is None else played.qpos[step]
        shots.append(Shot(places[step], followed[-1] if followed else None, qpos))
    start, goal = space.planned(recorder.starts[row]), space.planned(recorder.goals[row])
    if played.qpos is None or maze is None or not maze.is_grid:
        pictures = map_frames(shots, maze, start, goal, space)
    else:
        pictures = scene_frames(played.model, shots, maze, start, goal, space)
    with closing(pictures):
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
            preset.space.planned(recorder.starts[row]),
            preset.space.planned(recorder.goals[row]),
            executed=result.path,
            chunks=recorder.plans(row)[0][1].chunks if recorder.plans(row) else None,
        )
        for row, result in _first_episodes(results)
    ]
    plot_episodes(panels, preset.maze, space=preset.space, title=title, png=png)
    return png


def _first_episodes(results: Sequence[EpisodeResult]) -> list[tuple[int, EpisodeResult]]:
    return [(row, result) for row, result in enumerate(results) if result.episode == 0]


def _title(result: EpisodeResult) -> str:
    outcome = f"goal reached in {result.steps} steps" if result.success else f"failed: {result.cause}"
    return f"task {result.task}, {outcome}"
