"""One of many processes that change the columns of a table at once: it waits until all are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from paimon_sink.core.errors import PwcError
from tests.support.evolving import append
from tests.support.lake import Lake
from tests.support.processes import CONTEXT

__all__ = ["Adder", "race_to_add"]


@dataclass(frozen=True)
class Adder:
    """Plans and commits one row with these columns, all of text but for those in ``numbers``."""

    lake: Lake
    row: int
    columns: tuple[str, ...]
    numbers: tuple[str, ...] = ()

    @property
    def rows(self) -> pa.Table:
        texts = {name: pa.array([f"{name} of {self.row}"]) for name in self.columns}
        return pa.table({"id": [self.row], **texts, **{name: pa.array([self.row]) for name in self.numbers}})


def race_to_add(adders: Sequence[Adder], *, timeout_s: float = 300) -> list[str | None]:
    """What each was refused with, or None."""
    start = CONTEXT.Barrier(len(adders))
    ends = [_start(adder, start) for adder in adders]
    return [_told(end, timeout_s) for end in ends]


def _start(adder: Adder, start: Any) -> Connection:
    mine, its = CONTEXT.Pipe(duplex=False)
    CONTEXT.Process(target=_run, args=(adder, start, its), daemon=True).start()
    its.close()
    return mine


def _told(end: Connection, timeout_s: float) -> str | None:
    assert end.poll(timeout_s), "a process never told how it ended"
    said: str | None = end.recv()
    return said


def _run(adder: Adder, start: Any, told: Connection) -> None:
    lake = adder.lake.with_options(commitUser=f"adder-{adder.row}")
    lake.open()
    start.wait()
    try:
        append(lake, 0, adder.rows)
    except PwcError as error:
        told.send(f"{type(error).__name__}: {error}")
    else:
        told.send(None)
