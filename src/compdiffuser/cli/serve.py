"""`compdiffuser serve`: the page, and plans over HTTP."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from compdiffuser.types import UserError, install


@dataclass(frozen=True)
class Serve:
    """Serve the page on which plans form, and the same plans over HTTP.

    Only this machine can reach it unless --host says otherwise. A token in the variable COMPDIFFUSER_TOKEN, or in
    --token-file, is then asked of every request.
    """

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 lets other machines in."""
    port: int = 8000
    """Port to listen on; 0 takes any that is free."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda")] = "auto"
    """Where to compute."""
    models: tuple[str, ...] = ()
    """Planners to offer, by name or folder; by default all that are shipped."""
    token_file: Path | None = None
    """File that holds the token."""
    origins: tuple[str, ...] = ()
    """Web pages of other hosts that may use this server, such as https://example.org."""
    queue: int = 64
    """Requests under way at the same time; further ones are told to come back."""
    connections_per_address: int = 128
    """Connections of one address at the same time; give more where a proxy brings many people."""
    timeout: float = 60.0
    """Seconds after which a request is answered with the best plan so far."""

    def run(self) -> int:
        try:
            from compdiffuser.web import server, settings
        except ModuleNotFoundError as error:
            raise UserError(f"serving needs '{error.name}'; {install('web')}") from None
        chosen = settings.Settings(
            host=self.host, port=self.port, device=self.device, token=self._token(), origins=self.origins,
            queue=self.queue, connections_per_address=self.connections_per_address, timeout=self.timeout,
        )  # fmt: skip
        server.serve(chosen, self.models)
        return 0

    def _token(self) -> str | None:
        if self.token_file is None:
            return os.environ.get("COMPDIFFUSER_TOKEN") or None
        try:
            return self.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UserError(f"cannot read the token in '{self.token_file}': {error.strerror}") from None
