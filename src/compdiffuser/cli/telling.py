"""What commands that train say: notes before the work, and what it came to."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def tell(results: Mapping[str, Any], out: Path, hint: str, as_json: bool) -> int:
    """What a training came to, for people or as one JSON object; of several processes the first one tells it."""
    from compdiffuser.runs import rank

    if rank() > 0:
        return 0
    outcome = {"out": str(out), **results}
    if as_json:
        print(json.dumps(outcome))
    else:
        print(f"trained {outcome['steps']} updates in {outcome['seconds']:.0f} s, loss {outcome['loss']:.4f}")
        print(f"written {out}; {hint}" if hint else f"written {out}")
    return 0


def advise(sentences: Sequence[str]) -> None:
    """Tell people what to think of before the work; the first of several processes does."""
    from compdiffuser.runs import rank

    if rank() == 0:
        for sentence in sentences:
            print(f"note: {sentence}", file=sys.stderr)
