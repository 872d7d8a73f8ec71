"""The tables of README and docs, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from compdiffuser.reporting.grid import Result, Table
from compdiffuser.reporting.listings import (
    render_curve,
    render_failures,
    render_grid,
    render_planners,
    render_speed,
    render_training,
    render_walking,
)

_DATASETS = tuple(
    (title, {"dataset": name})
    for title, name in (
        ("PointMaze U (Ghugare et al.)", "robotics-pointmaze-umaze-v0"),
        ("PointMaze medium (Ghugare et al.)", "robotics-pointmaze-medium-v0"),
        ("PointMaze large (Ghugare et al.)", "robotics-pointmaze-large-v0"),
        ("pointmaze-medium-stitch", "pointmaze-medium-stitch-v0"),
        ("pointmaze-large-stitch", "pointmaze-large-stitch-v0"),
        ("pointmaze-giant-stitch", "pointmaze-giant-stitch-v0"),
    )
)

_PAPER: Result = {"origin": "published"}
_OURS: Result = {"origin": "measured", "method": "compdiffuser"}
_GIANT: Result = {"dataset": "pointmaze-giant-stitch-v0"}
_PUBLISHED = (
    ("best RL (published)", {**_PAPER, "method": "best-rl"}),
    ("GSC (published)", {**_PAPER, "method": "gsc"}),
    ("CompDiffuser (published)", {**_PAPER, "method": "compdiffuser", "replan": True, "controller_horizon": None}),
)

POINTMAZE = Table(
    "dataset",
    _DATASETS,
    (
        *_PUBLISHED,
        ("ours, one plan", {**_OURS, "sampler": "default", "replan": False}),
        ("ours, replanning", {**_OURS, "sampler": "default", "replan": True}),
    ),
)

SAMPLERS = Table(
    "sampler",
    tuple(
        (title, {"sampler": sampler})
        for title, sampler in (
            ("autoregressive, forward", "autoregressive"),
            ("autoregressive, backward", "autoregressive-backward"),
            ("parallel", "parallel"),
            ("GSC", "gsc"),
            ("one long chunk (Decision Diffuser)", "dd"),
            ("default (resampling, chosen by reconstruction)", "default"),
        )
    ),
    (
        ("published", {**_PAPER, **_GIANT}),
        ("ours, same weights", {"origin": "measured", "replan": False, **_GIANT}),
    ),
)


_STITCH = (
    *((size, {"dataset": f"pointmaze-{size}-stitch-v0"}) for size in ("medium", "large", "giant")),
    ("ant, medium", {"dataset": "antmaze-medium-stitch-v0"}),
)

BASELINES = Table(
    "method",
    tuple((title, {"method": title.lower()}) for title in ("GCBC", "GCIVL", "GCIQL", "QRL", "CRL", "HIQL")),
    tuple(
        (f"{title} ({mark})", {**dataset, "origin": origin})
        for title, dataset in _STITCH
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
)


GHUGARE = Table(
    "maze",
    tuple(
        (f"{title} ({mark})", {"dataset": f"robotics-pointmaze-{size}-v0", "origin": origin})
        for title, size in (("U", "umaze"), ("Medium", "medium"), ("Large", "large"))
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
    (
        *(
            (title + ("" if augment == "none" else f" ({augment.upper()})"), {"method": method, "augment": augment})
            for title, method in (("RvS", "rvs"), ("DT", "dt"))
            for augment in ("none", "sa", "ga")
        ),
        ("DD", {"sampler": "dd"}),
        ("GSC", {"sampler": "gsc"}),
        ("CompDiffuser, one plan", {"method": "compdiffuser", "sampler": "default", "replan": False}),
        ("CompDiffuser", {"method": "compdiffuser", "sampler": (None, "default"), "replan": True}),
    ),
)


_ANTMAZE = tuple(
    (name.removesuffix("-v0"), {"dataset": name, "steps_limit": (None, limit)})
    for name, limit in (
        ("antmaze-medium-stitch-v0", 1000),
        ("antmaze-large-stitch-v0", 2000),
        ("antmaze-giant-stitch-v0", 2000),
        ("antmaze-medium-explore-v0", 1000),
        ("antmaze-large-explore-v0", 1000),
    )
)
_ALL_HORIZONS: Result = {**_OURS, "controller_horizon": None}

_ONE_PLAN: Result = {**_ALL_HORIZONS, "sampler": "default", "replan": False}

_HUMANOIDMAZE = tuple(
    (f"humanoidmaze-{size}-stitch", {"dataset": f"humanoidmaze-{size}-stitch-v0", "steps_limit": (None, limit)})
    for size, limit in (("medium", 5000), ("large", 5000), ("giant", 8000))
)

SUCCESS = Table(
    "dataset", (*_DATASETS, *_ANTMAZE, _HUMANOIDMAZE[0]), (*_PUBLISHED, ("ours, one plan", _ONE_PLAN))
)  # fmt: skip

HUMANOIDMAZE = Table(
    "dataset",
    _HUMANOIDMAZE,
    (
        *_PUBLISHED,
        ("ours, one plan", _ONE_PLAN),
        ("ours, replanning", {**_ONE_PLAN, "replan": True}),
        ("controller on perfect plans", {"origin": "measured", "cell": "perfect"}),
        ("the same, true heading", {"origin": "measured", "cell": "perfect-true-heading"}),
    ),
)

ANTMAZE = Table(
    "dataset",
    _ANTMAZE,
    (
        *_PUBLISHED,
        ("ours, one plan", _ONE_PLAN),
        ("ours, replanning", {**_ONE_PLAN, "replan": True}),
    ),
)

ANTMAZE_PARTS = Table(
    "dataset",
    _ANTMAZE,
    (
        ("GSC on our network", {**_ONE_PLAN, "sampler": "gsc"}),
        ("ours, from pure noise", {**_ONE_PLAN, "sampler": "noise"}),
        ("ours", _ONE_PLAN),
    ),
)

HORIZONS = Table(
    "maze",
    tuple(
        (f"{size} ({mark})", {"dataset": f"antmaze-{size}-stitch-v0", "origin": origin, "replan": True})
        for size in ("large", "giant")
        for mark, origin in (("published", "published"), ("here", "measured"))
    ),
    tuple((str(horizon), {"controller_horizon": horizon}) for horizon in (8, 12, 16, 20, 24, 28)),
)

_ENDS = tuple(
    (f"{title}, {way}", {**row, **_ALL_HORIZONS, "sampler": "default", "replan": replan})
    for title, row in _ANTMAZE
    for way, replan in (("one plan", False), ("replanning", True))
)

TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "success": SUCCESS.render,
    "pointmaze": POINTMAZE.render,
    "samplers": SAMPLERS.render,
    "baselines": BASELINES.render,
    "ghugare": GHUGARE.render,
    "antmaze": ANTMAZE.render,
    "antmaze-parts": ANTMAZE_PARTS.render,
    "humanoidmaze": HUMANOIDMAZE.render,
    "antmaze-failures": partial(render_failures, rows=_ENDS),
    "controller-horizons": HORIZONS.render,
    "baseline-training": render_training,
    "planner-training": render_planners,
    "training-curve": render_curve,
    "ant-data": render_walking,
    "baseline-speed": partial(render_grid, group="baselines"),
    "antmaze-speed": partial(render_speed, group="antmaze"),
    "serving": partial(render_speed, group="serving"),
    "speed": render_speed,
    "speed-targets": partial(render_speed, only_targets=True),
}
