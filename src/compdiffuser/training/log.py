"""The log of a training run: a progress bar, a CSV file, and TensorBoard where it is installed."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from compdiffuser.files import replacing, writing
from compdiffuser.progress import progress_bar
from compdiffuser.training.config import TrainConfig
from compdiffuser.types import UserError

if TYPE_CHECKING:
    from compdiffuser.training.board import Board

COLUMNS = ("step", "loss", "learning_rate", "seconds")


class TrainLog:
    """Continues the log of an earlier run up to the step it resumed from. The loss may have named parts."""

    def __init__(
        self, out: Path, config: TrainConfig, step: int, seconds: float, parts: Sequence[str] = (), *,
        show: bool, write: bool,
    ) -> None:  # fmt: skip
        self.config = config
        self.columns = (*COLUMNS, *parts)
        self.last_loss = float("nan")
        self.begin = (step, seconds)
        self.path = out / "log.csv" if write else None
        self.board: Board | None = None
        if self.path is not None:
            self._keep_until(step)
            if importlib.util.find_spec("tensorboard") is not None:
                from compdiffuser.training.board import Board

                self.board = Board(out / "tensorboard", step)
        self.bar = progress_bar("{task.percentage:3.0f}%", "{task.fields[note]}", shown=show)
        self.task = self.bar.add_task("[bold]training", total=1.0, note="")

    def _keep_until(self, step: int) -> None:
        assert self.path is not None
        rows: list[list[str]] = []
        if self.path.exists():
            try:
                with open(self.path, newline="", encoding="utf-8") as file:
                    rows = [row for row in list(csv.reader(file))[1:] if self._complete(row) and int(row[0]) <= step]
                self.last_loss = float(rows[-1][1]) if rows else self.last_loss
            except (OSError, ValueError, csv.Error) as error:
                raise UserError(f"'{self.path}' is not the log of a training run: {error}; remove it") from None
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *rows])
        with replacing(self.path) as temporary:
            temporary.write_text(text.getvalue())

    def _complete(self, row: list[str]) -> bool:
        """Whether a line was written to its end: a killed run may leave a part of one."""
        return len(row) == len(self.columns) and row[0].isdigit()

    def write(self, step: int, losses: Sequence[float], rate: float, seconds: float) -> None:
        """A line for `losses`: the loss, then its parts."""
        loss, *parts = losses
        self.last_loss = loss
        if self.path is not None:
            with writing(self.path), open(self.path, "a") as file:
                file.write(",".join([f"{step},{loss:.6g},{rate:.4g},{seconds:.2f}", *(f"{p:.6g}" for p in parts)]))
                file.write("\n")
        if self.board is not None:
            named = {f"loss/{name}": part for name, part in zip(self.columns[len(COLUMNS) :], parts, strict=True)}
            self.board.add(step, {"loss": loss, "learning_rate": rate, **named})
        steps, since = step - self.begin[0], seconds - self.begin[1]
        speed = steps / since if since > 0 else 0.0
        note = f"step {step}  loss {loss:.4f}  {speed:.1f} it/s"
        self.bar.update(self.task, completed=self.config.progress(step, seconds), note=note)

    def __enter__(self) -> TrainLog:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
        if self.board is not None:
            with suppress(UserError):  # the last line is on disk, or the training ended because it is not
                self.board.close()
