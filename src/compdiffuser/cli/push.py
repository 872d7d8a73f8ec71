"""`compdiffuser push`: a planner with its model card, to the hub."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from compdiffuser.types import counted


@dataclass(frozen=True)
class Push:
    """Upload a planner with a model card to the Hugging Face hub.

    Example: compdiffuser push out/my-robot me/my-robot --licence mit

    It needs a token that may write: log in with `hf auth login`, or set HF_TOKEN.
    """

    model: tyro.conf.Positional[str]
    """Name of a shipped planner, or the folder of one of yours."""
    repository: tyro.conf.Positional[str]
    """Where to, as owner/name; it is made where there is none."""
    licence: str = "unknown"
    """The licence under which others may use it, in the hub's short names: mit, apache-2.0, cc-by-4.0."""
    private: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Show a new repository to nobody else."""
    pairs: int = 32
    """Plans between random recorded states, made for the rates on the card; 0 leaves them out."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to compute these plans."""

    def run(self) -> int:
        from compdiffuser.planning.checkpoint import load
        from compdiffuser.planning.sharing.publishing import pushed

        checkpoint = load(self.model)
        if self.pairs:
            print(f"planning {counted(self.pairs, 'pair')} of recorded states for the card ...", file=sys.stderr)
        address = pushed(
            checkpoint, self.repository, licence=self.licence, private=self.private, pairs=self.pairs,
            device=self.device,
        )  # fmt: skip
        print(address)
        print(f"load it with: Planner.from_pretrained('{self.repository}')", file=sys.stderr)
        return 0
