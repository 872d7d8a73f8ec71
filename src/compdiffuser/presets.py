"""One frozen record per dataset: its world, how it is recorded, how it is cut into chunks, how plans are executed and
how they are evaluated.

Chunk lengths, step limits and replanning rules follow the paper's appendix; a field that differs says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Literal

from compdiffuser.checks import finite, typed, unknown, whole
from compdiffuser.domains import DOMAINS, Catalogue, Domain, Space, domain
from compdiffuser.domains.growing import GROWN, extent_of
from compdiffuser.domains.mazes import Maze
from compdiffuser.types import UserError

MOST_STATES, MOST_CHUNKS, LONGEST_NAME = 65_536, 1_024, 200
"""States of a chunk, chunks of a plan and characters of a name that no dataset here has."""


@dataclass(frozen=True)
class RecordingConfig:
    """How a dataset is recorded."""

    recipe: str
    """A key of `data.recipes.RECIPES`."""
    episodes: int
    """Training episodes; a tenth of them more is recorded for validation."""
    steps: int
    """States per episode (an upper bound where episodes end at their goal)."""
    noise: float = 0.2
    """Standard deviation of the noise on an expert's actions."""

    def __post_init__(self) -> None:
        if not (isinstance(self.recipe, str) and self.recipe):
            raise UserError("a recording names its recipe, and this one is empty")
        whole(self, "episodes", "steps", most=10**9)
        finite(self, "noise", least=0)


@dataclass(frozen=True)
class ChunkConfig:
    """How recorded states are cut into chunks, and how many a plan is made of."""

    horizon: int = 160
    """H, states per chunk."""
    overlap: int = 56
    """O, states shared by neighbouring chunks."""
    stride: int = 1
    """Environment steps between the states of a chunk."""
    count: int = 3
    """K of the paper, used where a fixed number is asked for."""
    most: int = 6
    """Largest K that automatic planning tries."""
    scaffold: float | None = None
    """Noise level σ from which candidates begin along a way through the recorded states; None: all from pure noise."""
    front_padding: int = 64
    """Copies of the first state that may precede a training window."""
    back_padding: int = 0
    """Copies of the last state that may follow a training window."""
    frame: Literal["world", "chunk"] = "world"
    """From where our network sees states: the middle of the data, or the chunk's own."""

    def __post_init__(self) -> None:
        whole(self, "horizon", most=MOST_STATES)
        whole(self, "stride", "count", "most", most=MOST_CHUNKS)
        whole(self, "overlap", "front_padding", "back_padding", least=0, most=MOST_STATES)
        if self.frame not in ("world", "chunk"):
            raise UserError(f"frame must be world or chunk, not {self.frame!r}")
        if self.overlap >= self.horizon:
            raise UserError(f"overlap must be less than the horizon {self.horizon}, not {self.overlap}")
        if self.scaffold is not None:
            finite(self, "scaffold", least=0)
            if self.scaffold == 0:
                raise UserError("scaffold must be positive or None, not 0")


@dataclass(frozen=True)
class ExecutionConfig:
    """When a plan is given up for a new one."""

    replan_distance: float = 1.0
    """Replan when the agent is further than this (metres) from its subgoal."""
    max_replans: int = 10
    """Plans per episode after the first."""
    replan_delta: int = 10
    """δ of the receding K, in planned states: larger keeps K longer."""

    def __post_init__(self) -> None:
        finite(self, "replan_distance", least=0)
        whole(self, "max_replans", "replan_delta", least=0, most=10**6)


@dataclass(frozen=True)
class EvaluationConfig:
    """What an evaluation is made of."""

    step_limit: int = 1000
    """Environment steps per episode in the paper."""
    benchmark_step_limit: int = 1000
    """Environment steps per episode as the benchmark registers it: OGBench, or gymnasium-robotics."""
    episodes: int = 20
    """Episodes per task."""

    def __post_init__(self) -> None:
        whole(self, "step_limit", "benchmark_step_limit", "episodes", most=10**7)


PARTS: dict[str, Any] = {
    "recording": RecordingConfig, "chunks": ChunkConfig, "execution": ExecutionConfig, "evaluation": EvaluationConfig,
}  # fmt: skip


@dataclass(frozen=True)
class Preset:
    """Everything that changes from one dataset to the next."""

    name: str
    """Dataset name; also the name of its pretrained planner."""
    domain: Domain
    recording: RecordingConfig | None = None
    """None: it was recorded elsewhere."""
    chunks: ChunkConfig = field(default_factory=ChunkConfig)
    execution: ExecutionConfig = field(default_factory=ExecutionConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tuned_as: str | None = None
    """Family whose tuned settings baselines take; None: the world's own."""

    def __post_init__(self) -> None:
        typed(self)
        if not 1 <= len(self.name) <= LONGEST_NAME:
            raise UserError(f"a dataset's name has 1 to {LONGEST_NAME} characters, not {len(self.name)}")

    @property
    def family(self) -> str:
        """The column of tuned settings that it belongs to."""
        return self.tuned_as or self.domain.family

    @property
    def label(self) -> str:
        """The dataset's name, with a number of dimensions where other ones than usual are planned: NAME-15d."""
        usual = PRESETS.get(self.name, self).space.dims
        return self.name if usual == self.space.dims else f"{self.name}-{len(self.space.dims)}d"

    @property
    def space(self) -> Space:
        """What is planned."""
        return self.domain.space

    @property
    def maze(self) -> Maze | None:
        return self.domain.maze

    def planning(self, dims: Sequence[int]) -> Preset:
        """The same dataset with other planned dimensions."""
        return replace(self, domain=self.domain.planning(dims))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: of the world its name, what is planned, and where its walls are."""
        world = {"name": self.domain.name, "space": self.space.to_dict(), "maze": self.maze and self.maze.to_dict()}
        plain = {part: (value := getattr(self, part)) and asdict(value) for part in PARTS}
        return {"name": self.name, "domain": world, **plain, "tuned_as": self.tuned_as}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Preset:
        """The preset that a file describes; a world that is not registered here can still be planned in and drawn."""
        described = values["domain"]
        name, space = described["name"], Space.from_dict(described["space"])
        known = DOMAINS.get(name) or Domain(name, maze=described["maze"] and Maze.from_dict(described["maze"]))
        parts: Any = {part: values[part] and kind(**values[part]) for part, kind in PARTS.items()}
        return cls(values["name"], replace(known, space=space), **parts, tuned_as=values["tuned_as"])


OWN_CHUNKS = ChunkConfig(horizon=64, overlap=24, most=16, front_padding=32, back_padding=32)
"""For data of one's own."""
OWN_RECORDING = RecordingConfig("demonstrations", episodes=1000, steps=1000)
"""For a world of one's own that demonstrates."""


def own_preset(name: str, world: Domain | None = None) -> Preset:
    """The preset of a world, or of data without one."""
    if world is None:
        return Preset(name, Domain(name), chunks=OWN_CHUNKS)
    return Preset(name, world, OWN_RECORDING if world.demonstrate else None, OWN_CHUNKS)


def _point(size: str, count: int, most: int) -> Preset:
    recording = RecordingConfig("stitch", episodes=5000, steps=201)
    chunks = ChunkConfig(count=count, most=most, scaffold=0.6)
    return Preset(f"pointmaze-{size}-stitch-v0", domain(f"pointmaze-{size}"), recording, chunks)


def _ant(size: str, count: int, most: int, step_limit: int) -> Preset:
    return Preset(
        f"antmaze-{size}-stitch-v0",
        domain(f"antmaze-{size}"),
        RecordingConfig("stitch", episodes=5000, steps=201),
        chunks=ChunkConfig(count=count, most=most, scaffold=0.25),
        execution=ExecutionConfig(replan_distance=4.0, replan_delta=50),
        evaluation=EvaluationConfig(step_limit=step_limit),
    )


def _ant_explore(size: str, count: int, most: int) -> Preset:
    """Chunks cover 192 steps as in the paper, by every fourth state; random walks get half a cell far in that time."""
    return Preset(
        name=f"antmaze-{size}-explore-v0",
        domain=domain(f"antmaze-{size}"),
        recording=RecordingConfig("explore", episodes=10_000, steps=501, noise=1.0),
        chunks=ChunkConfig(horizon=48, overlap=16, stride=4, count=count, most=most, scaffold=0.25),
        execution=ExecutionConfig(replan_distance=2.0, replan_delta=50),
        tuned_as="explore",
    )


def _humanoid(size: str, count: int, most: int, episodes: int, step_limit: int, benchmark: int) -> Preset:
    """Chunks cover 352 steps and share 128, the paper's 336 and 128, by every fourth state.

    It starts on the ground, and standing still and lying are part of the data: windows take them as they come, and as
    many again begin with copies of the first state, as every plan does while the body gets up.
    """
    return Preset(
        name=f"humanoidmaze-{size}-stitch-v0",
        domain=domain(f"humanoidmaze-{size}"),
        recording=RecordingConfig("stitch", episodes=episodes, steps=401),
        chunks=ChunkConfig(88, 32, stride=4, count=count, most=most, scaffold=0.25, front_padding=176),
        execution=ExecutionConfig(replan_distance=10.0, replan_delta=75),
        evaluation=EvaluationConfig(step_limit=step_limit, benchmark_step_limit=benchmark),
    )


def _soccer(size: str, count: int, most: int, episodes: int, steps: int) -> Preset:
    """Chunks cover 160 steps and share 64, by every fourth state. Plans hold the places of the ant and of the ball."""
    return Preset(
        name=f"antsoccer-{size}-stitch-v0",
        domain=domain(f"antsoccer-{size}"),
        recording=RecordingConfig("soccer", episodes=episodes, steps=steps),
        chunks=ChunkConfig(40, 16, stride=4, count=count, most=most, scaffold=0.25),
        execution=ExecutionConfig(replan_distance=4.0, replan_delta=12),
        evaluation=EvaluationConfig(step_limit=5000),
    )


def _robotics(size: str, horizon: int, overlap: int, episodes: int, steps: int, step_limit: int) -> Preset:
    """About a million states. Episodes end at their goal, many before H states, hence the padding on both sides."""
    half, recording = horizon // 2, RecordingConfig("regions", episodes=episodes, steps=steps)
    return Preset(
        f"robotics-pointmaze-{size}-v0", domain(f"robotics-pointmaze-{size}"), recording,
        chunks=ChunkConfig(horizon, overlap, count=5, most=8, scaffold=0.25, front_padding=half, back_padding=half),
        execution=ExecutionConfig(replan_distance=0.5),
        evaluation=EvaluationConfig(benchmark_step_limit=step_limit, episodes=10),
    )  # fmt: skip


@cache
def _grown(name: str) -> Preset:
    """As many states for each free cell as in the giant maze, which has 86, and limits by its longest way, 31 steps."""
    cells, way = extent_of(world := domain(name.removesuffix("-stitch")))
    recording = RecordingConfig("stitch", episodes=round(5000 * cells / 86), steps=201)
    count, most = math.ceil(way * 8 / 31), max(6, math.ceil(way * 16 / 31))
    chunks = ChunkConfig(count=count, most=most, scaffold=0.6, frame="chunk")
    limit = max(1000, 100 * math.ceil(10 * way / 31))
    return Preset(name, world, recording, chunks, evaluation=EvaluationConfig(limit, limit))


PRESETS: Catalogue[Preset] = Catalogue(
    (preset.name, preset)
    for preset in (
        _point("medium", count=3, most=6),
        _point("large", count=5, most=8),
        _point("giant", count=8, most=12),
        _ant("medium", count=3, most=6, step_limit=1000),
        _ant("large", count=6, most=8, step_limit=2000),
        _ant("giant", count=9, most=12, step_limit=2000),
        _ant_explore("medium", count=5, most=32),
        _ant_explore("large", count=6, most=48),
        _humanoid("medium", count=4, most=6, episodes=5000, step_limit=5000, benchmark=2000),
        _humanoid("large", count=6, most=8, episodes=5000, step_limit=5000, benchmark=2000),
        _humanoid("giant", count=11, most=14, episodes=10_000, step_limit=8000, benchmark=4000),
        _soccer("arena", count=5, most=10, episodes=5000, steps=201),
        _soccer("medium", count=12, most=24, episodes=8000, steps=501),
        _robotics("umaze", 40, 16, episodes=34_000, steps=150, step_limit=300),
        _robotics("medium", 144, 56, episodes=18_000, steps=400, step_limit=600),
        _robotics("large", 192, 64, episodes=8_000, steps=800, step_limit=800),
    )
)
"""Every dataset that commands know; `compdiffuser.register` adds yours."""
PRESETS.families[re.compile(f"{GROWN.pattern}-stitch")] = _grown


def preset(name: str) -> Preset:
    """The record of a dataset. Raises UserError with the nearest name."""
    if name in PRESETS:
        return PRESETS[name]
    raise unknown("dataset", name, PRESETS, "names")
