"""Deletes and replacements in this process, from the condition to the snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon_sink.core.clock import Backoff
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.choosing import Answer, Work, in_threads
from paimon_sink.maintain.delete import DELETE, DeleteJob, Deletion, conditions_of, delete_rows, preview
from paimon_sink.maintain.groups import Group
from tests.support.lake import Lake

__all__ = ["delete", "look_at", "overwrite", "work_on"]


def work_on(table: Table, where: str) -> Work:
    conditions = conditions_of(table, where)

    def work(groups: Sequence[Group], write: bool) -> list[Answer]:
        return in_threads(table, groups, conditions, write=write, to=DELETE)

    return work


def delete(
    lake: Lake, where: str, *, user: str | None = None, identifier: int | None = None, table: Table | None = None
) -> Deletion:
    """Delete rows, by somebody who never waits."""
    table = table or lake.open()
    place = parse_options(lake.all_options(), purpose=Purpose.BATCH_WRITE).table
    job = DeleteJob(user, identifier, backoff=Backoff(first_seconds=0), place=place)
    return delete_rows(table, where, job, work=work_on(table, where))


def look_at(lake: Lake, where: str) -> Deletion:
    """A dry run."""
    table = lake.open()
    return preview(table, where, DeleteJob(), work=work_on(table, where))


def overwrite(lake: Lake, where: str, *batches: pa.RecordBatch) -> None:
    """A batch overwrite with ``replaceWhere``, of a task a batch."""
    lake = lake.with_options(replaceWhere=where)
    messages = [lake.batch_writer(overwrite=True).write(iter([batch])) for batch in batches]
    lake.batch_writer(overwrite=True).commit(messages)
