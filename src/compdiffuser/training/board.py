"""Curves for TensorBoard, written as they are made.

TensorBoard's own writer has a thread, which dies with a traceback where the disk is full. Here, every line of the log
is written and flushed by the one who trains, so that whatever goes wrong is told in its place.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from compdiffuser.files import make_folder, writing

NUMBERS = itertools.count()
"""Of this process's files."""


class Board:
    """A file of events; those of an earlier run from step `begin` on no longer count."""

    def __init__(self, folder: Path, begin: int) -> None:
        # Runs of one process may follow each other within a second.
        writer = f"{socket.gethostname()}.{os.getpid()}.{next(NUMBERS)}"
        self.path = folder / f"events.out.tfevents.{int(time.time()):010d}.{writer}"
        with writing(self.path):
            make_folder(folder)
            self.file = open(self.path, "wb")  # noqa: SIM115, closed by `close`
        self.records = RecordWriter(self.file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        self._write(Event(wall_time=time.time(), step=begin, session_log=SessionLog(status=SessionLog.START)))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers by name, of one step. Raises UserError where they cannot be written."""
        told = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=told)))

    def close(self) -> None:
        with writing(self.path):
            self.file.close()

    def _write(self, event: Event) -> None:
        with writing(self.path):
            self.records.write(event.SerializeToString())
            self.records.flush()
