"""The rows of some files written anew by a task, all of them or some: what compactions, deletes and replacements do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from paimon_sink.core.errors import CorruptTableError, FilesReplacedError, PwcError, StorageError, TableChangedError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.groups import Group
from paimon_sink.write.task import write_task

__all__ = ["reading_group", "rewritten"]

Choice = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Which rows of a batch go into the new files."""


def rewritten(table: Table, group: Group, *, to: str, keep: Choice | None = None) -> TaskMessage:
    """Write the rows of a group anew, in their order: all, or those to keep.

    ``to`` is what errors say could not be done. Raises ``FilesReplacedError`` when others replaced the group's files.
    """
    with reading_group(table, group, to=to):
        message = write_task(
            _rows(table, group, keep, to),
            table=table,
            incoming=table.schema,
            case_sensitive=True,
            target_bytes=group.file_bytes,
            query_id=None,
        )
    strange = [file for file in message.files if file.partition != group.partition]
    if strange:
        # May go: the message never left this function.
        table.files.drop(file.path for file in message.files)
        raise TableChangedError(
            f"Cannot {to} {table.label}: rows of {_name(group)} belong to another partition now, such as those of "
            f"{strange[0].path}. Nothing was committed. Either the partitioning changed meanwhile, then run it again; "
            "or another engine filed rows under the wrong partition."
        )
    return message


@contextmanager
def reading_group(table: Table, group: Group, *, to: str) -> Iterator[None]:
    """Say what it means that files of a group cannot be read: that others replaced them, or that they are broken."""
    try:
        yield
    except Exception as error:
        # A task that wrote removed its files. Those that others replaced may be expired and deleted by now.
        if _is_overtaken(table, group):
            raise FilesReplacedError(
                f"Cannot {to} {table.label}: files of {_name(group)} were replaced or deleted while they were read. "
                "Nothing was committed; run it again."
            ) from error
        if isinstance(error, PwcError):
            raise
        kind = StorageError if isinstance(error, OSError) else CorruptTableError
        raise kind(
            f"Cannot {to} {table.label}: files of {_name(group)} cannot be read or written anew ({error!r}). "
            "Nothing was committed. Check the table with pwc verify."
        ) from error


def _rows(table: Table, group: Group, keep: Choice | None, to: str) -> Iterator[pa.RecordBatch]:
    for file in group.files:
        rows = 0
        for batch in table.scans.read_split(file.split, table.schema.names):
            rows += batch.num_rows
            yield batch if keep is None else keep(batch)
        if rows != file.rows:
            raise CorruptTableError(
                f"Cannot {to} {table.label}: {file.path} has {rows:,} rows, its manifest says {file.rows:,}. "
                "Nothing was committed. Restore the file, or roll the table back."
            )


def _is_overtaken(table: Table, group: Group) -> bool:
    try:
        return not group.paths <= {file.path for file in table.scans.live_files()}
    except (OSError, PwcError):
        # Then the error that led here says more.
        return False


def _name(group: Group) -> str:
    values = ", ".join("null" if value is None else value for value in group.partition)
    return f"the partition {values}" if values else "the table"
