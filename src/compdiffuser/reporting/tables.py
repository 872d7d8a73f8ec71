"""The tables of README and docs, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from compdiffuser.reporting.ablations import (
    DIRECTIONS,
    NUMBERS,
    ORDERS,
    ORDERS_REPLANNING,
    render_additions,
    render_base,
    render_paper_curve,
    render_times,
    render_trainings,
)
from compdiffuser.reporting.columns import BEST_RL, FROM_NOISE, GSC, MEASURED, ONE_PLAN, PAPER, PUBLISHED, REPLANNING
from compdiffuser.reporting.fidelity import render_fields
from compdiffuser.reporting.grid import Result, Table
from compdiffuser.reporting.listings import (
    render_curve,
    render_executing,
    render_failures,
    render_grid,
    render_planners,
    render_speed,
    render_training,
    render_walking,
)
from compdiffuser.reporting.steered import render_steered
from compdiffuser.reporting.walkers import (
    ANT_ROWS,
    ANTMAZE,
    ANTMAZE_ENDINGS,
    ANTMAZE_PARTS,
    ANTSOCCER,
    ANTSOCCER_BASELINES,
    ANTSOCCER_ENDINGS,
    ANTSOCCER_PARTS,
    HORIZONS,
    HUMANOIDMAZE,
    HUMANOIDMAZE_BASELINES,
    HUMANOIDMAZE_ENDINGS,
    HUMANOIDMAZE_PARTS,
    LONGEST_ROWS,
    WHOLE_ENDINGS,
    WHOLE_PARTS,
    WHOLE_STATES,
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

_GIANT: Result = {"dataset": "pointmaze-giant-stitch-v0"}

POINTMAZE = Table(
    "dataset",
    _DATASETS,
    (BEST_RL, GSC, PAPER, FROM_NOISE, ONE_PLAN, REPLANNING),
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
        ("published", {**PUBLISHED, **_GIANT}),
        ("ours, same weights", {**MEASURED, "replan": False, **_GIANT}),
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


_LEGS: Result = {"settings.rise": (None, False)}
"""Ants stay where they fall, beside figures of methods that learn from data alone."""
_OURS = (ONE_PLAN[0], {name: value for name, value in ONE_PLAN[1].items() if name not in _LEGS})
SUCCESS = Table(
    "dataset", (*_DATASETS, *((title, {**row, **_LEGS}) for title, row in (*ANT_ROWS, *LONGEST_ROWS))),
    (BEST_RL, GSC, PAPER, _OURS), measured_only=True,
)  # fmt: skip

TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "success": SUCCESS.render,
    "pointmaze": POINTMAZE.render,
    "samplers": SAMPLERS.render,
    "baselines": BASELINES.render,
    "ghugare": GHUGARE.render,
    "antmaze": ANTMAZE.render,
    "antmaze-parts": ANTMAZE_PARTS.render,
    "antmaze-failures": partial(render_failures, rows=ANTMAZE_ENDINGS),
    "whole-states": WHOLE_STATES.render,
    "whole-states-parts": WHOLE_PARTS.render,
    "executing": render_executing,
    "whole-states-failures": partial(render_failures, rows=WHOLE_ENDINGS),
    "controller-horizons": HORIZONS.render,
    "humanoidmaze": HUMANOIDMAZE.render,
    "humanoidmaze-parts": HUMANOIDMAZE_PARTS.render,
    "humanoidmaze-baselines": HUMANOIDMAZE_BASELINES.render,
    "humanoidmaze-failures": partial(render_failures, rows=HUMANOIDMAZE_ENDINGS),
    "antsoccer": ANTSOCCER.render,
    "antsoccer-parts": ANTSOCCER_PARTS.render,
    "antsoccer-baselines": ANTSOCCER_BASELINES.render,
    "antsoccer-failures": partial(render_failures, rows=ANTSOCCER_ENDINGS, things=("ball",)),
    "paper-fields": render_fields,
    "paper-curve": render_paper_curve,
    "paper-orders": ORDERS.render,
    "paper-orders-replanning": ORDERS_REPLANNING.render,
    "paper-numbers": NUMBERS.render,
    "paper-times": render_times,
    "paper-directions": DIRECTIONS.render,
    "additions": render_additions,
    "trainings": render_trainings,
    "base-model": render_base,
    "baseline-training": render_training,
    "planner-training": render_planners,
    "training-curve": render_curve,
    "ant-data": render_walking,
    "baseline-speed": partial(render_grid, group="baselines"),
    "antmaze-speed": partial(render_speed, group="antmaze"),
    "rising": partial(render_speed, group="rising"),
    "humanoidmaze-speed": partial(render_speed, group="humanoidmaze"),
    "whole-states-speed": partial(render_speed, group="dimensions"),
    "antsoccer-speed": partial(render_speed, group="antsoccer"),
    "page-speed": partial(render_speed, group="page"),
    "serving": partial(render_speed, group="serving"),
    "kills": partial(render_grid, group="kills"),
    "files": partial(render_grid, group="files"),
    "endurance": partial(render_speed, group="endurance"),
    "fuzzing": partial(render_speed, group="fuzzing"),
    "exhaustion": partial(render_grid, group="exhaustion"),
    "artifacts": partial(render_speed, group="artifacts"),
    "onnx": partial(render_speed, group="onnx"),
    "growing": partial(render_grid, group="growing"),
    "chains": partial(render_grid, group="chains"),
    "data-cost": partial(render_grid, group="data-cost"),
    "against-release": partial(render_grid, group="against release"),
    "against-agents": partial(render_grid, group="against agents"),
    "one-update": partial(render_grid, group="one update"),
    "steered": render_steered,
    "repair-speed": partial(render_speed, group="repair"),
    "own-worlds": partial(render_grid, group="own-worlds"),
    "speed": render_speed,
    "speed-targets": partial(render_speed, only_targets=True),
}
