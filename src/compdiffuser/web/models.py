"""What clients are told of planners and their worlds: part of the OpenAPI document."""

from __future__ import annotations

from compdiffuser.web.message import Message


class MazeReply(Message):
    rows: list[str]
    """`#` is a wall."""
    unit: float
    origin: list[float]
    row_sign: int
    clearance: float
    """Room that the agent needs around it."""


class GroupReply(Message):
    """Something that has a place."""

    name: str
    columns: list[int]
    """Where its x and y, and perhaps z, stand in a planned state."""
    asked: bool
    """Whether its place at the goal counts."""


class ModelReply(Message):
    name: str
    title: str
    """What people call it."""
    dim: int
    names: list[str]
    """What each number of a planned state is."""
    groups: list[GroupReply]
    """What has a place, the agent first."""
    start_columns: list[int]
    """Columns of a planned state that a start has to name."""
    goal_columns: list[int]
    """Columns of a planned state that a goal has to name."""
    horizon: int
    overlap: int
    max_chunks: int
    """Largest K that `auto` tries."""
    low: list[float]
    high: list[float]
    maze: MazeReply | None
    recorded: list[list[float]] | None
    """Some recorded places, all groups' one after another, where no maze is known to draw."""
    example: dict[str, list[float]]
    """A start and a goal to begin with."""
    drivable: bool
    """Whether its plans can be followed in a simulator."""


class Limb(Message):
    """A part of a body that moves as one."""

    parent: int
    """The number of the limb that carries it; -1: the world."""
    pos: list[float]
    quat: list[float]
    joints: list[dict[str, str | int | float | list[float]]]
    """`kind`, where its numbers stand `at` in qpos, `axis`, `pos`, and its `zero`."""
    shapes: list[dict[str, str | list[float]]]
    """`kind`, `size`, `pos`, `quat` and `rgba`, as MuJoCo has them."""


class SceneReply(Message):
    """What moves in a world, for a drawing in three dimensions."""

    limbs: list[Limb]
    qpos: list[float]
    """How it stands when an episode begins."""
    pose: list[list[int]]
    """Pairs: a column of a planned state, and the number of qpos that it is."""
