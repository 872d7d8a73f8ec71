"""`compdiffuser data`: make, inspect and draw datasets. Results go to stdout, progress to stderr."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from compdiffuser.types import UserError, counted

if TYPE_CHECKING:
    from compdiffuser.presets import Preset
    from compdiffuser.types import Episodes


@dataclass(frozen=True)
class Make:
    """Record a dataset in its simulator, with a tenth more episodes for validation.

    The same seed gives the same file whatever the number of workers. A run that was cut off goes on where it stopped;
    a dataset that is already there is left alone. A manifest (recipe, seed, versions, sha256) lies beside each file.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Dataset to make, e.g. pointmaze-giant-stitch-v0; `compdiffuser data list` shows all but those of any size:
    pointmaze-NxM-seed-S-stitch has a maze of N rows and M columns of cells, border included, drawn from seed S."""
    episodes: int | None = None
    """Training episodes. Default: as many as the published dataset has."""
    workers: int | None = None
    """Worker processes. Default: one per core."""
    seed: int = 0
    """Seed of all randomness."""
    source: Literal["regenerate", "official"] = "regenerate"
    """`regenerate` records it here; `official` takes OGBench's own file from ~/.ogbench/data, or downloads it."""
    engine: Literal["local", "ray"] = "local"
    """`local` processes, or a `ray` cluster: the one that RAY_ADDRESS names, else one on this machine."""
    out: Path | None = None
    """File to write, ending in .npz. Default: the cache, where every command finds the dataset by name."""
    expert: Path | None = None
    """Folder of an expert that moves the body in place of the shipped one."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the manifest as JSON."""

    def run(self) -> int:
        from compdiffuser.data import generate, official, storage
        from compdiffuser.experts.policy import experts_for
        from compdiffuser.files import check_writable
        from compdiffuser.presets import preset

        if self.out is not None:
            check_writable(self.out)
        if self.source == "official":
            for name in ("episodes", "workers", "seed", "engine", "expert"):
                if getattr(self, name) != getattr(Make, name):
                    raise UserError(f"--{name} is for what is recorded here; OGBench's own file is as it is")
            path = official.fetch(self.name, self.out)
        else:
            experts = experts_for(preset(self.name), self.expert)
            self._tell_of_another()
            path = generate.make(self.name, self.episodes, self.workers, self.seed, self.engine, self.out, experts)
        manifest = storage.manifest_of(path) or {}
        if self.json:
            _print_json({"path": str(path), **manifest})
        else:
            size = f"{counted(manifest['episodes'], 'episode')}, {counted(manifest['states'], 'state')}"
            print(f"{path}: {size}, sha256 {manifest['sha256'][:12]}…")
            if manifest.get("blown_up"):
                print(f"simulations that blew up, and were recorded again: {manifest['blown_up']}")
        return 0

    def _tell_of_another(self) -> None:
        """Say so where a dataset of another size or seed is about to be replaced."""
        from compdiffuser.data import storage
        from compdiffuser.data.walking import recorded
        from compdiffuser.presets import preset

        if any(number is not None and number < 1 for number in (self.episodes, self.workers, self.seed + 1)):
            return  # refused, so that nothing is replaced
        path = self.out or storage.file_of(self.name)
        found = (storage.manifest_of(path) if path.exists() else None) or {}
        usual = recorded(preset(self.name)).episodes
        was, now = (found.get("episodes"), found.get("seed")), (self.episodes or usual, self.seed)
        if None not in was and was != now:
            told = f"{now[0]:,} episodes of seed {now[1]} take the place of {was[0]:,} of seed {was[1]}"
            print(f"{told} in {path}; --out keeps both", file=sys.stderr)


@dataclass(frozen=True)
class Info:
    """Describe a dataset: episodes, lengths, the range of every field, how far episodes get, and how it was made."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|PATH")]
    """A known name, a file or folder of your own (npz, HDF5, Zarr, LeRobot), or minari:ID."""
    split: Literal["train", "val"] = "train"
    """Training or validation episodes."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print everything as JSON."""

    def run(self) -> int:
        from compdiffuser.data import storage
        from compdiffuser.data.advice import on_jumps, on_precision
        from compdiffuser.data.statistics import statistics
        from compdiffuser.domains import Space

        episodes = storage.load(self.dataset, self.split)
        path, manifest = storage.origin_of(self.dataset, self.split)
        known = storage.preset_of(self.dataset, self.split)
        space = known.space if known else Space.of(range(min(2, episodes.observations.shape[1])))
        description = {
            "dataset": self.dataset,
            "path": str(path) if path else None,
            **episodes.describe(),
            "statistics": statistics(episodes, known) if known and known.maze else None,
            "notes": on_jumps(episodes, space) + on_precision(episodes, space),
            "manifest": manifest,
        }
        if self.json:
            _print_json(description)
        else:
            _print_description(description)
        return 0


@dataclass(frozen=True)
class Plot:
    """Draw a dataset on its maze: every region in its colour, or a few episodes on top of all."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|PATH")]
    """A known name, a file or folder of your own (npz, HDF5, Zarr, LeRobot), or minari:ID."""
    png: Path | None = None
    """Picture to write. Default: the dataset's name with .png, in this folder."""

    def run(self) -> int:
        from compdiffuser.data import storage
        from compdiffuser.data.regions import REGIONS
        from compdiffuser.domains import PLANE
        from compdiffuser.files import check_writable
        from compdiffuser.plotting.datasets import plot_dataset
        from compdiffuser.plotting.output import check_picture

        png = self.png or Path(f"{Path(self.dataset).stem.removeprefix('minari:')}.png")
        check_picture(png)
        check_writable(png)
        episodes = storage.load(self.dataset)
        known = storage.preset_of(self.dataset)
        if known is None:
            plot_dataset(episodes, None, PLANE, png)
        else:
            regions = len(REGIONS.get(known.maze.name, ((),))) if known.maze else 1
            plot_dataset(episodes, known.maze, known.space, png, regions, title=_title(known, episodes))
        print(png)
        return 0


@dataclass(frozen=True)
class List:
    """List the datasets that can be made, and which of them are."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the list as JSON."""

    def run(self) -> int:
        from rich.console import Console
        from rich.table import Table

        from compdiffuser.data import storage
        from compdiffuser.presets import PRESETS

        rows: list[dict[str, Any]] = []
        for name, known in PRESETS.items():
            path = storage.file_of(name)
            found = storage.manifest_of(path) or {} if path.exists() else {}
            rows.append(
                {
                    "name": name,
                    "made": path.exists(),
                    "path": str(path),
                    "episodes": found.get("episodes", known.recording.episodes if known.recording else None),
                    "megabytes": round(path.stat().st_size / 1e6, 1) if path.exists() else None,
                    "source": found.get("source"),
                    "seed": found.get("seed"),
                }
            )
        if self.json:
            _print_json(rows)
            return 0
        table = Table("dataset", "made", "episodes", "MB", "source", "seed", box=None, pad_edge=False)
        for row in rows:
            values = (row["episodes"], row["megabytes"], row["source"], row["seed"])
            table.add_row(row["name"], "yes" if row["made"] else "no", *("" if v is None else str(v) for v in values))
        console = Console()
        console.print(table)
        console.print(f"\nin {storage.home() / 'data'}", highlight=False, soft_wrap=True)
        return 0


def _title(known: Preset, episodes: Episodes) -> str:
    return f"{known.name}: {len(episodes):,} episodes, {int(episodes.lengths.sum()):,} states"


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _print_description(description: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    length = description["episode_length"]
    console.print(f"[bold]{description['dataset']}[/bold]", highlight=False, soft_wrap=True)
    if description["path"]:
        console.print(description["path"], highlight=False, soft_wrap=True)
    console.print(
        f"{counted(description['episodes'], 'episode')}, {counted(description['states'], 'state')}; "
        f"{length['min']} to {length['max']} states each, median {length['median']:g}\n",
        highlight=False,
    )
    table = Table("field", "shape", "type", "min", "max", box=None, pad_edge=False)
    for name, field in description["fields"].items():
        ranges = (" ".join(f"{value:.2f}" for value in field[end]) for end in ("min", "max"))
        table.add_row(name, str(field["shape"]).replace("[", "\\["), field["dtype"], *ranges)
    console.print(table)
    if description["names"]:
        named = ", ".join(f"{number} {name}" for number, name in enumerate(description["names"]))
        console.print(f"\nobserved numbers: {named}", highlight=False, markup=False, soft_wrap=True)
    if (seconds := description["step_seconds"]) is not None:
        console.print(f"\n{1 / seconds:.4g} states a second", highlight=False)
    for note in description["notes"]:
        console.print(f"\nnote: {note}", highlight=False, markup=False, soft_wrap=True)
    if description["statistics"]:
        console.print()
        for line in _sentences(description["statistics"]):
            console.print(line, highlight=False, soft_wrap=True)
    manifest = description["manifest"]
    if manifest:
        console.print()
        for key, value in manifest.items():
            text = value if isinstance(value, str) else json.dumps(value)
            console.print(f"{key}: {text}", highlight=False, markup=False, soft_wrap=True)


def _sentences(figures: dict[str, Any]) -> list[str]:
    """What `data.statistics` found, for people."""
    visited = f"{figures['free_cells_visited']:.0%} of free cells visited"
    if "mean_cells_net" in figures:
        gone = f"an episode ends {figures['mean_cells_net']:.2f} cells from its start and gets at most "
        visited = f"{gone}{figures['mean_cells_farthest']:.2f} away (means); {visited}"
    lines = [visited]
    if "goal_reached" in figures:
        median = figures["median_steps_to_goal"]
        lines.append(
            f"{figures['goal_reached']:.1%} of episodes reach the cell of their goal"
            + ("" if median is None else f", half of these within {median:g} steps")
        )
    if "upright_episodes" in figures:
        lines.append(
            f"{figures['upright_episodes']:.1%} of episodes never lie on their backs; "
            f"{figures['upright_states']:.1%} of states are upright"
        )
    for what in (name.removesuffix("_moves") for name in figures if name.endswith("_moves")):
        metres = figures[f"{what}_metres"]
        far = "" if metres is None else f", on average {metres:.1f} m from start to end"
        lines.append(f"the {what} moves in {figures[f'{what}_moves']:.1%} of episodes{far}")
    if figures["mean_step"] is not None:
        lines.append(f"a step is {figures['mean_step']:.3f} m (mean), at most {figures['largest_step']:.3f} m")
    return [*lines, f"{figures['states_in_walls']:,} states in walls"]
