"""Tables of the paper's ablations and of what each addition is worth, from the files under `results/ablations/`.

`benchmarks/ablations.py` measures the cells that are named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, pstdev
from typing import Any

from compdiffuser.reporting.columns import PUBLISHED
from compdiffuser.reporting.grid import MISSING, Result, Table, figure, find, markdown

ORIGIN = "ablation"
"""Of results in that folder, which no other table looks at."""
GIANT, EXPLORE = "pointmaze-giant-stitch-v0", "antmaze-large-explore-v0"
TRAINED = (GIANT, "antmaze-giant-stitch-v0")
"""Datasets on which planners are trained with several seeds."""
STITCH = tuple(f"{body}maze-{size}-stitch-v0" for body in ("point", "ant") for size in ("medium", "large", "giant"))
COUNTS = (7, 8, 9, 10, 11, 12)
TIMES = {"pointmaze-medium-stitch-v0": 3, "pointmaze-large-stitch-v0": 6, "pointmaze-giant-stitch-v0": 9}
"""Datasets whose sampling is timed, with the K that the paper times."""
TIMED = {"dd": "one long chunk", "parallel": "parallel", "autoregressive": "autoregressive"}
WEIGHTS = {"paper": "the paper's preset", "default": "shipped weights"}
ADDITIONS = {
    "resampling": "our sampler: ten levels, resampled, η = 1",
    "refinement": "refinement",
    "reconstruction": "choice by reconstruction",
    "support": "choice by reconstruction and support",
    "scaffold": "scaffold",
    "automatic-k": "automatic K",
    "progress": "following by progress",
}
"""Additions, and what they are called in tables."""


def _columns(
    orders: dict[str, str], published: Result, ending: str = "", counted: bool = False
) -> tuple[tuple[str, Result], ...]:
    """For each order, by its title: the published figure, then ours by each of the weights."""
    made: list[tuple[str, Result]] = []
    for title, order in orders.items():
        # Its tables 1, 2 and 5, of more datasets than its table of orders, are autoregressive too.
        usual = published["method"] == "compdiffuser-order" and order == "autoregressive"
        told: Result = {"method": "compdiffuser", "dims": None} if usual else {"order": order}
        made.append((f"{title} (published)", {**PUBLISHED, **published, **told}))
        wanted: Result = {"origin": ORIGIN, "ending": order + ending, **({} if counted else {"count": None})}
        made += [(f"{title}, {whose}", {**wanted, "weights": name}) for name, whose in WEIGHTS.items()]
    return tuple(made)


def _rows(datasets: Sequence[str]) -> tuple[tuple[str, Result], ...]:
    return tuple((name.removesuffix("-v0"), {"dataset": name}) for name in datasets)


_BOTH = {"parallel": "parallel", "autoregressive": "autoregressive"}
_WAYS = {"forward": "autoregressive", "backward": "autoregressive-backward"}

ORDERS = Table("dataset", _rows(STITCH), _columns(_BOTH, {"method": "compdiffuser-order", "replan": False}))
ORDERS_REPLANNING = Table(
    "dataset", _rows(STITCH), _columns(_BOTH, {"method": "compdiffuser-order", "replan": True}, "-replan")
)  # fmt: skip
DIRECTIONS = Table("dataset", _rows(STITCH[:3]), _columns(_WAYS, {"method": "compdiffuser-direction"}))
NUMBERS = Table(
    "K",
    tuple((str(count), {"dataset": GIANT, "count": count}) for count in COUNTS),
    _columns({"ours": "autoregressive", "GSC": "gsc"}, {"method": "compdiffuser-count"}, counted=True),
)


def entry(content: dict[str, Any]) -> Result:
    """A file's result with the fields that the tables ask for: how its cell's name ends, and the K in it."""
    ending = str(content.get("cell", "")).removeprefix(f"{content.get('dataset')}-")
    start, counted, count = ending.rpartition("-k")
    if counted and count.isdigit():
        return {**content, "origin": ORIGIN, "ending": start, "count": int(count)}
    return {**content, "origin": ORIGIN, "ending": ending}


def render_additions(results: Sequence[Result]) -> str:
    """What each addition is worth: given to the paper's sampler, and taken from ours; one table for all worlds."""
    datasets = (GIANT, "antmaze-giant-stitch-v0", EXPLORE)

    def cell(dataset: str, ending: str, weights: str) -> str:
        wanted = {"origin": ORIGIN, "dataset": dataset, "ending": ending, "weights": weights, "count": None}
        return figure(find(results, wanted))

    columns = [(dataset, kind, weights) for weights in WEIGHTS for dataset in datasets for kind in ("added", "removed")]
    bases = {"added": "autoregressive", "removed": "ours"}
    rows: list[tuple[str, dict[str, str]]] = [("none", bases)]
    rows += [(title, {kind: f"{kind}-{name}" for kind in bases}) for name, title in ADDITIONS.items()]
    body = [[title, *(cell(d, endings[kind], w) for d, kind, w in columns)] for title, endings in rows]
    head = [f"{kind}, {d.removesuffix('-v0')}, {WEIGHTS[w]}" for d, kind, w in columns]
    kept = [i for i in range(len(columns)) if any(line[i + 1] != MISSING for line in body)]
    if not kept:
        return markdown(["addition", "added", "removed"], [[title, MISSING, MISSING] for title, _ in rows])
    return markdown(
        ["addition", *(head[i] for i in kept)], [[line[0], *(line[i + 1] for i in kept)] for line in body]
    )  # fmt: skip


def render_trainings(results: Sequence[Result]) -> str:
    """Success of our planner by the seed of its training: the shipped one's is 0, others have weights `seed-N`."""
    body = []
    for dataset in TRAINED:
        found = [
            result for result in results
            if result.get("origin") == ORIGIN and (result.get("dataset"), result.get("ending")) == (dataset, "ours")
            and (result["weights"] == "default" or str(result["weights"]).startswith("seed-"))
        ]  # fmt: skip
        means = [float(each["success"]) for each in sorted(found, key=lambda each: str(each["weights"]))]
        told = [f"{mean(means):.1f} ± {pstdev(means):.1f}", ", ".join(f"{one:g}" for one in means)] if means else []
        body.append([dataset.removesuffix("-v0"), str(len(means)), *(told or [MISSING, MISSING])])
    return markdown(["dataset", "trainings", "mean ± spread over trainings", "each"], body)


def render_times(results: Sequence[Result]) -> str:
    """Seconds of sampling: the paper's figures for one trajectory, and ours for 40 candidates."""
    measured = [result for result in results if result.get("origin") == ORIGIN and "what" in result]
    published = {
        (result["dataset"], result["order"]): result["seconds"]
        for result in results if result.get("method") == "compdiffuser-time"
    }  # fmt: skip
    makers = list(dict.fromkeys((each["weights"], each["hardware"]) for each in measured))
    head = ["dataset, sampler", "published, one L40S"]
    head += [f"preset `{weights}`, {machine}" for weights, machine in makers]
    body = []
    for dataset, count in TIMES.items():
        for what, title in TIMED.items():
            told = published.get((dataset, what))
            line = [f"{dataset.removesuffix('-v0')}, K = {count}, {title}", f"{told:g} s" if told else MISSING]
            for weights, machine in makers:
                found = [each for each in measured if (each["dataset"], each["what"]) == (dataset, what)
                         and (each["weights"], each["hardware"]) == (weights, machine)]  # fmt: skip
                line.append(f"{found[0]['seconds']:.2f} s" if found else MISSING)
            body.append(line)
    return markdown(head, body)


def render_base(results: Sequence[Result]) -> str:
    """Candidates from pure noise, by how the model was trained: those that are sound, and problems with a sound one."""
    found = [result for result in results if result.get("origin") == ORIGIN and "sound" in result]
    found.sort(key=lambda each: (each["dataset"], each["training"]["steps"], each["training"].get("parameters", 0),
                                 each["variant"]))  # fmt: skip
    body = [
        [each["dataset"].removesuffix("-v0"), each["variant"], f"{each['training']['steps']:,}",
         f"{each['training']['parameters'] / 1e6:.1f}M" if "parameters" in each["training"] else MISSING,
         *(f"{100 * each['sound'][way][share]:.1f}" for way in ("ours", "paper") for share in ("sound", "solved"))]
        for each in found
    ]  # fmt: skip
    head = ["dataset", "variant", "updates", "parameters"]
    head += [f"{what}, {way}" for way in ("ours", "paper") for what in ("sound", "solved")]
    return markdown(head, body or [[MISSING] * len(head)])


def render_paper_curve(results: Sequence[Result]) -> str:
    """Success of planners of the paper's recipes in the giant maze, by how long they were trained.

    Those are the evaluations in the folder that are no cell of a table.
    """
    found = [
        result for result in results
        if result.get("origin") == ORIGIN and not result.get("cell") and result.get("recipe") in ("paper", "authors")
    ]  # fmt: skip
    found.sort(key=lambda each: (each["recipe"], each["sampler"], float(each["trained"]["seconds"]), each["replan"]))
    rows: dict[tuple[Any, ...], dict[bool, Result]] = {}
    for each in found:
        key = each["recipe"], each["sampler"], round(float(each["trained"]["seconds"]))
        rows.setdefault(key, {})[bool(each["replan"])] = each
    body = [
        [f"`{recipe}`", f"`{sampler}`", f"{seconds / 60:g}", _updates(cells), figure(cells.get(False)),
         figure(cells.get(True))]
        for (recipe, sampler, seconds), cells in rows.items()
    ]  # fmt: skip
    head = ["preset", "sampler", "minutes of training", "updates", "one plan", "replanning"]
    wanted: Result = {**PUBLISHED, "method": "compdiffuser", "dataset": GIANT}
    told = [figure(find(results, {**wanted, "replan": replan})) for replan in (False, True)]
    return markdown(head, [*body, ["published", MISSING, MISSING, "1,200,000", *told]])


def _updates(cells: dict[bool, Result]) -> str:
    counts = [each["trained"].get("updates") for each in cells.values()]
    return f"{counts[0]:,}" if counts and counts[0] else MISSING
