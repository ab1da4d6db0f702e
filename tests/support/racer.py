"""One writer of a race, as a process of its own: it waits until all are there, and then commits as fast as it can."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from tests.support.processes import CONTEXT

if TYPE_CHECKING:
    from tests.support.lake import Lake

__all__ = ["Errand", "Report", "race", "some_of"]


@dataclass(frozen=True)
class Errand:
    """What one process does: ``commits`` batches of one row each, with ids from ``first_id`` on."""

    options: dict[str, str]
    table: str
    commit_user: str
    first_id: int
    commits: int
    writer: str = "paimon-sink"
    """``paimon-sink``, ``pypaimon``, ``pyiceberg``, or ``create``: only create the table."""
    warm: bool = False
    """Whether to load everything and open the table before the start."""


@dataclass(frozen=True)
class Report:
    """Ids whose commit was acknowledged, and the first words of what went wrong with the others."""

    acknowledged: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    began_s: float = 0.0
    ended_s: float = 0.0
    """By a clock that all processes of the machine share."""


def some_of(commits: int) -> int:
    """A race of that many commits a process: in full with ``make races``, elsewhere a quarter of it."""
    return commits if os.environ.get("PWC_RACES") == "full" else commits // 4


def race(errands: Sequence[Errand], *, timeout_s: float = 850) -> list[Report]:
    """Run all at once and collect what each was told."""
    start = CONTEXT.Barrier(len(errands))
    return [_report(running, timeout_s) for running in [_start(errand, start) for errand in errands]]


def _start(errand: Errand, start: Any) -> Connection:
    here, there = CONTEXT.Pipe(duplex=False)
    CONTEXT.Process(target=_run, args=(errand, start, there), daemon=True).start()
    # Only the other process holds this end now: should it die, we hear of it.
    there.close()
    return here


def _report(running: Connection, timeout_s: float) -> Report:
    with running:
        assert running.poll(timeout_s), "a process of the race does not answer"
        report: Report = running.recv()
    return report


def _run(errand: Errand, start: Any, told: Connection) -> None:
    from tests.support.lake import Lake

    # They tell of every lost round; a race has thousands.
    for library in ("pypaimon", "pyiceberg"):
        logging.getLogger(library).setLevel(logging.ERROR)
    lake = Lake(errand.options, errand.table, {"commitUser": errand.commit_user})
    if errand.warm:
        from tests.support.engines import other_engine

        other_engine(lake)
        lake.open()
    start.wait(timeout=120)
    began_s = time.monotonic()
    report = _commit_all(lake, errand)
    told.send(replace(report, began_s=began_s, ended_s=time.monotonic()))


def _commit_all(lake: Lake, errand: Errand) -> Report:
    from tests.support.engines import other_engine
    from tests.support.lake import rows

    report = Report()
    for number in range(errand.commits):
        row = errand.first_id + number
        try:
            if errand.writer == "create":
                report.acknowledged.append(len(lake.files_of([lake.write()])))
                continue
            if errand.writer == "pypaimon":
                from tests.support import foreign

                foreign.append(lake, rows(row), commit_user=errand.commit_user, identifier=number)
            elif errand.writer == "pyiceberg":
                other_engine(lake).append_beside(rows(row))
            else:
                lake.append(number, rows(row))
            report.acknowledged.append(row)
        except Exception as error:  # noqa: BLE001 - the race counts them
            report.failures.append(f"{type(error).__name__}: {error}"[:300])
    return report
