"""Tables of bodies with legs, as data: AntMaze, HumanoidMaze and AntSoccer, with how their episodes ended."""

from __future__ import annotations

from compdiffuser.reporting.columns import (
    BEST,
    BEST_RL,
    DEFAULT,
    FROM_NOISE,
    GSC,
    MEASURED,
    ONE_PLAN,
    PAPER,
    REPLANNING,
    STAYING_DOWN,
)
from compdiffuser.reporting.grid import ANY, Result, Table

Row = tuple[str, Result]

SIZES = ("medium", "large", "giant")
PLANE: Result = {"dims": (None, 2)}
"""Plans of x and y alone."""
ANT_ROWS: tuple[Row, ...] = tuple(
    (name.removesuffix("-v0"), {"dataset": name, "steps_limit": (None, limit), **PLANE})
    for name, limit in (
        ("antmaze-medium-stitch-v0", 1000),
        ("antmaze-large-stitch-v0", 2000),
        ("antmaze-giant-stitch-v0", 2000),
        ("antmaze-medium-explore-v0", 1000),
        ("antmaze-large-explore-v0", 1000),
    )
)
WHOLE_ROWS: tuple[Row, ...] = tuple(
    (f"{title}, {dims}D", {**row, "dims": (None, 2) if dims == 2 else dims})
    for title, row in ANT_ROWS[: len(SIZES)]
    for dims in (2, 15, 29)
)
"""Ants whose plans hold x and y, the posture too (15D), or all of an observation (29D)."""
_DOWN: Result = {"settings.rise": (None, False)}
"""Ants that stay where they fall, so that what differs is the plan."""
_ONE_PLAN, _FROM_NOISE = ((title, {**wanted, **_DOWN}) for title, wanted in (ONE_PLAN, FROM_NOISE))
_OWN: Result = {"steps_limit": ANY, "dims": ANY}
"""Of a ceiling: it has its own limit, and plans nothing."""
_EXPERTS = ("experts on a breadth-first path", {**MEASURED, "cell": "experts", **_OWN})


def _limited(title: str, wanted: Result, paper: int, benchmark: int) -> tuple[Row, Row]:
    """A row at the paper's step limit, where published figures name none, and one at the benchmark's own."""
    return (
        (f"{title}, {paper:,} steps", {**wanted, "steps_limit": (None, paper)}),
        (f"{title}, {benchmark:,} steps", {**wanted, "steps_limit": benchmark}),
    )


_HUMANOID = tuple(
    _limited(f"humanoidmaze-{size}-stitch", {"dataset": f"humanoidmaze-{size}-stitch-v0"}, *limits)
    for size, limits in zip(SIZES, ((5000, 2000), (5000, 2000), (8000, 4000)), strict=True)
)
_SOCCER = tuple(
    _limited(f"antsoccer-{size}-stitch, {dims}D", {"dataset": f"antsoccer-{size}-stitch-v0", "dims": dims}, 5000, 1000)
    for size in ("arena", "medium")
    for dims in (4, 17)
)
HUMANOID_ROWS = tuple(row for rows in _HUMANOID for row in rows)
SOCCER_ROWS = tuple(row for rows in _SOCCER for row in rows)
LONGEST_ROWS: tuple[Row, ...] = tuple(
    (paper[0].rpartition(", ")[0], paper[1]) for paper, _ in (*_HUMANOID, *_SOCCER)
)  # fmt: skip
"""HumanoidMaze's and AntSoccer's at the paper's limits alone."""

_UP = tuple((title, {**wanted, "settings.rise": True}) for title, wanted in (ONE_PLAN, REPLANNING))
ANTMAZE = Table("dataset", ANT_ROWS, (BEST_RL, GSC, PAPER, STAYING_DOWN, *_UP))
ANTMAZE_PARTS = Table(
    "dataset",
    ANT_ROWS,
    (
        ("GSC on our network", {**_ONE_PLAN[1], "sampler": "gsc"}),
        _FROM_NOISE,
        ("ours", _ONE_PLAN[1]),
        _EXPERTS,
    ),
)
WHOLE_STATES = Table("dataset", WHOLE_ROWS, (PAPER, BEST, STAYING_DOWN, *_UP))
WHOLE_PARTS = Table(
    "dataset",
    tuple(row for row in WHOLE_ROWS if not row[0].endswith(" 2D")),
    (
        ("from pure noise", _FROM_NOISE[1]),
        ("controller told places", _ONE_PLAN[1]),
        *(
            (f"told whole states, by {way}", {**_ONE_PLAN[1], "controller_dims": (15, 29), "settings.follow": way})
            for way in ("progress", "phase")
        ),
    ),
)
"""One plan: from what it begins, and what its controller is told of it."""
HORIZONS = Table(
    "maze",
    tuple(
        (f"{size} ({mark})", {"dataset": f"antmaze-{size}-stitch-v0", "origin": origin, "replan": True, **PLANE})
        for size in ("large", "giant")
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
    tuple((str(horizon), {"controller_horizon": horizon}) for horizon in (8, 12, 16, 20, 24, 28)),
)

_NOISE = ("from pure noise", {**DEFAULT, "sampler": "noise", "replan": ANY})
_TRUE = ("true heading", {**DEFAULT, "sampler": (None, "default"), "heading": "true", "cell": (None, "true-heading"),
                          "replan": ANY})  # fmt: skip
_PERFECT = ("controller on perfect plans", {**MEASURED, "cell": "perfect"})
_PERFECT_TRUE = ("on perfect plans, true heading", {**MEASURED, "cell": "perfect-true-heading"})
HUMANOIDMAZE = Table("dataset", HUMANOID_ROWS, (GSC, PAPER, BEST, ONE_PLAN, REPLANNING))
HUMANOIDMAZE_PARTS = Table("dataset", HUMANOID_ROWS, (_NOISE, _TRUE, _PERFECT, _PERFECT_TRUE))

_OUR_GSC = ("GSC on our network", {**DEFAULT, "sampler": "gsc", "replan": ANY})
_RECORDED = tuple(
    (f"controller on recorded plans, {what}", {**MEASURED, "cell": f"recorded-{kind}", **_OWN})
    for what, kind in (("walking", "navigate"), ("dribbling", "dribble"))
)
ANTSOCCER = Table("dataset", SOCCER_ROWS, (BEST_RL, GSC, PAPER, STAYING_DOWN, *_UP))
ANTSOCCER_PARTS = Table("dataset", LONGEST_ROWS[len(SIZES) :], (_OUR_GSC, _NOISE, *_RECORDED, _EXPERTS))

_AGENTS = tuple(
    (f"{title} ({mark})", {"method": title.lower(), "origin": origin, "dims": ANY})
    for title in ("GCBC", "GCIVL", "HIQL")
    for mark, origin in (("published", "published"), ("here", "measured"))
)
HUMANOIDMAZE_BASELINES = Table("dataset", HUMANOID_ROWS, _AGENTS)
ANTSOCCER_BASELINES = Table(
    "dataset",
    tuple(
        row
        for size in ("arena", "medium")
        for row in _limited(f"antsoccer-{size}-stitch", {"dataset": f"antsoccer-{size}-stitch-v0"}, 5000, 1000)
    ),
    _AGENTS,
)


def _endings(rows: tuple[Row, ...], columns: tuple[Row, ...]) -> tuple[Row, ...]:
    """Each row with each way of acting, for tables of how episodes ended."""
    ways = [(title.removeprefix("ours, "), wanted) for title, wanted in columns]
    return tuple((f"{title}, {way}", {**row, **wanted}) for title, row in rows for way, wanted in ways)


WHOLE_ENDINGS = _endings(WHOLE_ROWS, (STAYING_DOWN, *_UP))
ANTMAZE_ENDINGS = _endings(ANT_ROWS, (STAYING_DOWN, *_UP))
HUMANOIDMAZE_ENDINGS = _endings(
    LONGEST_ROWS[: len(SIZES)], (ONE_PLAN, REPLANNING, _NOISE, _TRUE, _PERFECT, _PERFECT_TRUE)
)  # fmt: skip
ANTSOCCER_ENDINGS = _endings(LONGEST_ROWS[len(SIZES) :], (STAYING_DOWN, *_UP, _OUR_GSC, _NOISE))
