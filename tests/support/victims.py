"""Drivers and tasks that die: processes of their own, killed by SIGKILL at exactly the step that a test names."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from paimon_sink.core.steps import OF_FOLLOWERS, OF_OUTBOXES, OF_PLANNING, OF_ROLLBACKS, Step, listen
from paimon_sink.read.scan import ReadTask
from paimon_sink.read.scan import rows as rows_of
from tests.support.compaction import compact
from tests.support.deleting import delete
from tests.support.evolving import append, with_note
from tests.support.lake import Lake, rows
from tests.support.processes import CONTEXT

__all__ = [
    "COMMIT_STEPS",
    "RETURNED",
    "RIVAL_ID",
    "TASK_STEPS",
    "TELL_STEPS",
    "Batch",
    "killed_compaction",
    "killed_delete",
    "killed_driver",
    "killed_job_that_changes_columns",
    "killed_reader",
    "killed_task",
]

TASK_STEPS = (Step.WRITE_STARTED, Step.ROWS_WRITTEN, Step.FILE_CLOSED, Step.MESSAGE_BUILT)
COMMIT_STEPS = tuple(
    step for step in Step if step not in {*TASK_STEPS, *OF_FOLLOWERS, *OF_OUTBOXES, *OF_PLANNING, *OF_ROLLBACKS}
)
TELL_STEPS = (Step.BEFORE_NOTIFY, Step.NOTIFIED)
"""Of a commit. A compaction is nothing to tell of."""
RETURNED = None
"""No step of ours: the call returned, and the process dies before Spark writes it down."""
RIVAL_ID = 1000
"""The row of the writer that a driver meets when it is to die at its read-back."""
_DEAD_WITHIN_S = 120


@dataclass(frozen=True)
class Batch:
    """One row a task; every task writes in a process of its own when Spark runs it, here one after the other."""

    number: int
    ids: tuple[int, ...]

    def written(self, lake: Lake) -> list[Any]:
        return [lake.write(rows(row)) for row in self.ids]

    def append(self, lake: Lake) -> None:
        lake.commit(self.number, *self.written(lake))


def killed_task(lake: Lake, batch: Batch, step: Step | None) -> None:
    """Let a task write the batch and die. Nobody hears of what it wrote."""
    _kill(_write, lake, batch, step)


def killed_driver(lake: Lake, batch: Batch, step: Step | None) -> None:
    """Let a driver commit the batch and die."""
    _kill(_commit, lake, batch, step)


def killed_reader(lake: Lake, task: ReadTask, names: Sequence[str], *, batches: int) -> list[Any]:
    """Let a task read so many batches of rows and die. What it had handed on by then."""
    ours, its = CONTEXT.Pipe(duplex=False)
    victim = CONTEXT.Process(target=_read, args=(lake, task, tuple(names), batches, its), daemon=True)
    victim.start()
    its.close()
    found: list[Any] = []
    with suppress(EOFError):
        while True:
            found.append(ours.recv())
    victim.join(_DEAD_WITHIN_S)
    assert victim.exitcode == -signal.SIGKILL, f"the process ended with {victim.exitcode}"
    return found


def killed_compaction(lake: Lake, step: Step | None) -> None:
    """Let somebody compact the table and die."""
    _kill(_compact, lake, None, step)


def killed_delete(lake: Lake, step: Step | None) -> None:
    """Let somebody delete the row 1, as the job 7 of ``eraser``, and die."""
    _kill(_delete, lake, None, step)


def killed_job_that_changes_columns(lake: Lake, batch: Batch, step: Step | None) -> None:
    """Let one process plan a batch whose rows have a new column, write and commit it, and die on the way."""
    _kill(_plan_write_and_commit, lake, batch, step)


def _kill(run: Callable[[Lake, Any, Step | None], None], lake: Lake, batch: Batch | None, step: Step | None) -> None:
    victim = CONTEXT.Process(target=run, args=(lake, batch, step), daemon=True)
    victim.start()
    victim.join(_DEAD_WITHIN_S)
    assert victim.exitcode == -signal.SIGKILL, f"the process ended with {victim.exitcode} and never came to {step}"


def _write(lake: Lake, batch: Batch, step: Step | None) -> None:
    listen(_die_at(step))
    batch.written(lake)
    if step is RETURNED:
        _die()


def _read(lake: Lake, task: ReadTask, names: Sequence[str], batches: int, pipe: Connection) -> None:
    for number, batch in enumerate(rows_of(lake.open(), task, names)):
        if number == batches:
            break
        pipe.send(batch.to_pylist())
    _die()


def _commit(lake: Lake, batch: Batch, step: Step | None) -> None:
    messages = batch.written(lake)
    if step is Step.BEFORE_READ_BACK:
        listen(_lose_the_round_and_die(lake))
    else:
        listen(_die_at(step))
    lake.commit(batch.number, *messages)
    if step is RETURNED:
        _die()


def _plan_write_and_commit(lake: Lake, batch: Batch, step: Step | None) -> None:
    listen(_die_at(step))
    append(lake, batch.number, with_note(*batch.ids))
    if step is RETURNED:
        _die()


def _compact(lake: Lake, _: None, step: Step | None) -> None:
    listen(_lose_the_round_and_die(lake) if step is Step.BEFORE_READ_BACK else _die_at(step))
    compact(lake)
    if step is RETURNED:
        _die()


def _delete(lake: Lake, _: None, step: Step | None) -> None:
    listen(_lose_the_round_and_die(lake) if step is Step.BEFORE_READ_BACK else _die_at(step))
    delete(lake, "id = 1", user="eraser", identifier=7)
    if step is RETURNED:
        _die()


def _die_at(fatal: Step | None) -> Callable[[Step], None]:
    return lambda step: _die() if step is fatal else None


def _lose_the_round_and_die(lake: Lake) -> Callable[[Step], None]:
    """A put is read back only when it did not land plainly: let another writer take its place."""
    rival = lake.with_options(commitUser="rival")

    def listener(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            listen(None)
            rival.batch_writer().commit([rival.batch_writer().write(iter([rows(RIVAL_ID)]))])
            listen(_die_at(Step.BEFORE_READ_BACK))

    return listener


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
