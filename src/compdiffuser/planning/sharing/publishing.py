"""A planner for others: its files with a model card, which says what it plans, how it was made and how far to trust it.

Figures of the card are those that the planner's own files hold. The rates of its certificate are measured for it, on
plans between random recorded states.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from compdiffuser.checks import is_finite
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.config import PlanConfig
from compdiffuser.planning.recorded.calibration import WINDOWS
from compdiffuser.planning.sharing.hub import check_push, uploaded
from compdiffuser.planning.sharing.soundness import Soundness, random_pairs, soundness
from compdiffuser.types import Array, UserError, counted

CARD = "README.md"
CARD_PAIRS, MOST_PAIRS, CARD_CANDIDATES = 32, 10_000, 64
TAGS = ("compdiffuser", "robotics", "planning", "diffusion", "trajectory-stitching")


def pushed(
    checkpoint: Checkpoint,
    repository: str,
    *,
    licence: str = "unknown",
    private: bool = False,
    pairs: int = CARD_PAIRS,
    device: str = "cpu",
) -> str:
    """Upload a planner with its card as `owner/name`, over the one that is there; the address of its page.

    `licence` is one of the hub's names for licences, such as "mit". `pairs` plans are made for the rates on the card; 0
    leaves them out. Raises UserError without a token, and where the hub refuses or cannot be reached.
    """
    check_push(repository)
    if not (type(pairs) is int and 0 <= pairs <= MOST_PAIRS):
        raise UserError(f"rates are measured on 0 to {MOST_PAIRS:,} pairs, not on {pairs!r}")
    if not licence.replace("-", "").replace(".", "").isalnum():
        raise UserError(f"a licence is named as the hub does, such as mit or apache-2.0, not '{licence}'")
    ends = stored_pairs(checkpoint, pairs) if pairs else None
    rates = None if ends is None else soundness(checkpoint, *ends, device, PlanConfig(), CARD_CANDIDATES)
    with tempfile.TemporaryDirectory() as temporary:
        folder = checkpoint.save(temporary)
        (folder / CARD).write_text(card(checkpoint, repository, licence, rates), encoding="utf-8")
        return uploaded(folder, repository, private=private)


def stored_pairs(checkpoint: Checkpoint, pairs: int, seed: int = 0) -> tuple[Array, Array] | None:
    """Starts and goals [P, D] among the recorded states that a planner keeps; None where it keeps none."""
    space, support, postures = checkpoint.preset.space, checkpoint.support, checkpoint.postures
    if postures is not None:
        states = postures.snippets[:, 0]
    elif support is not None and space.only_places:
        states = support.segments.new_zeros(len(support.segments), len(space.dims))
        states[:, space.columns] = support.segments[:, : len(space.columns)]
    else:
        return None
    recorded = checkpoint.normalizer.denormalize(states).cpu().numpy()
    return random_pairs(recorded, checkpoint, pairs, seed)


def card(checkpoint: Checkpoint, repository: str, licence: str = "unknown", rates: Soundness | None = None) -> str:
    """The model card: front matter for the hub, and words for people."""
    preset = checkpoint.preset
    world = preset.domain.title or preset.domain.name
    paragraphs = [
        "\n".join(_front_matter(preset.name, licence)),
        f"# {repository}",
        f"A CompDiffuser planner, trained on `{preset.name}` ({world}). It plans long trajectories by composing short "
        "chunks that a diffusion model has learned.",
        "## What it plans",
        "\n".join(_planned(checkpoint)),
        "## Data and training",
        "\n".join(_made(checkpoint.record)) or "Its files do not say how it was trained.",
        "## How far to trust it",
        _trust(checkpoint, rates),
        "## Use",
        _use(checkpoint, repository),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _front_matter(dataset: str, licence: str) -> Iterator[str]:
    yield "---"
    yield f"license: {licence}"
    yield "library_name: compdiffuser"
    yield "pipeline_tag: robotics"
    yield "tags:"
    yield from (f"- {tag}" for tag in TAGS)
    # No id of a dataset on the hub, which `datasets:` would take it for.
    yield f"- dataset-{''.join(c if c.isalnum() or c in '-._' else '-' for c in dataset)}"
    yield "---"


def _planned(checkpoint: Checkpoint) -> Iterator[str]:
    space, chunks, sizes = checkpoint.preset.space, checkpoint.preset.chunks, checkpoint.denoiser.config
    low, high = checkpoint.normalizer.low, checkpoint.normalizer.high
    shown = [f"{n} ({a:.4g} to {b:.4g})" for n, a, b in zip(space.names, low, high, strict=True)]
    rest = f" and {counted(len(shown) - 12, 'more number')}" if len(shown) > 12 else ""
    yield f"- A state: {', '.join(shown[:12])}{rest}."
    yield f"- A chunk: {sizes.horizon} states, {sizes.overlap} of them shared with the next; stride {chunks.stride}."
    yield f"- A plan: 1 to {chunks.most} chunks, as many as are needed."


def _made(record: Mapping[str, Any]) -> Iterator[str]:
    data, outcome = _part(record, "data"), _part(record, "outcome")
    if data:
        counts = [counted(data[n], n[:-1]) for n in ("episodes", "states") if isinstance(data.get(n), int)]
        source = f" ({data['source']})" if isinstance(data.get("source"), str) else ""
        yield f"- Data: `{data.get('name', 'unnamed')}`{source}" + (f", {', '.join(counts)}." if counts else ".")
        if isinstance(data.get("sha256"), str):
            yield f"- SHA-256 of the data: `{data['sha256']}`."
    if isinstance(record.get("parameters"), int):
        yield f"- Network: {record['parameters']:,} parameters."
    if is_finite(outcome.get("seconds")) and isinstance(outcome.get("steps"), int):
        device = f" on {record['device']}" if isinstance(record.get("device"), str) else ""
        loss = f", last loss {outcome['loss']:.4g}" if is_finite(outcome.get("loss")) else ""
        yield f"- Training: {counted(outcome['steps'], 'update')} in {outcome['seconds']:,.0f} s{device}{loss}."
    before = _part(record, "begun_with")
    if isinstance(before.get("planner"), str):
        made = f", after {counted(before['updates'], 'update')}" if isinstance(before.get("updates"), int) else ""
        yield f"- Training began with the weights of `{before['planner']}`{made}."
    if isinstance(record.get("versions"), dict):
        yield "- Versions: " + ", ".join(f"{name} {version}" for name, version in record["versions"].items()) + "."


def _part(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _trust(checkpoint: Checkpoint, rates: Soundness | None) -> str:
    share = PlanConfig().certify
    limit = checkpoint.calibration.threshold(share)
    near = "" if checkpoint.support is None else ", and it must keep near recorded segments"
    words = [
        f"A plan is certified (`plan.ok`) when its worst chunk is pulled no further than {share:.1%} of recorded "
        f"chunks are: {limit:.3g} times the usual error, measured on {WINDOWS:,} recorded windows. Its steps must be "
        f"no longer than the data's, its ends must be where they were asked for{near}."
    ]
    if checkpoint.support is None:
        words.append("No recorded segments are kept: only the model itself is asked.")
    if rates is not None:
        words.append(f"Measured when this was pushed, with at most {CARD_CANDIDATES} candidates for each: {rates}.")
    words.append("The certificate knows the data, not the world: check plans against a map where there is one.")
    return "\n\n".join(words)


def _use(checkpoint: Checkpoint, repository: str) -> str:
    ends = stored_pairs(checkpoint, 1)
    start, goal = (["…"], ["…"]) if ends is None else ([[f"{v:.4g}" for v in each[0]] for each in ends])
    lines = [
        "```python",
        "from compdiffuser import Planner",
        "",
        f'planner = Planner.from_pretrained("{repository}")',
        f"plan = planner.plan(({', '.join(start)}), ({', '.join(goal)}))",
        "print(plan.ok, plan.states.shape)",
        "```",
    ]
    return "\n".join(lines)
