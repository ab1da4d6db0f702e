"""The columns of a table as they are and were, and changes that somebody asks for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from paimon_sink.core.errors import UnsupportedTableError
from paimon_sink.core.evolve import Change, accepted, dotted
from paimon_sink.core.evolve_requests import Request, requested_changes
from paimon_sink.formats.contract import Table
from paimon_sink.formats.evolution import ColumnInfo, SchemaVersion
from paimon_sink.formats.evolving import change_columns, evolution_of
from paimon_sink.formats.values import SnapshotInfo

__all__ = ["SchemaReport", "VersionReport", "change_schema", "planned_changes", "read_schema"]


@dataclass(frozen=True)
class VersionReport:
    """One version of the columns, and since when it was in use."""

    version: SchemaVersion
    differences: tuple[str, ...]
    """To the version before it, a line each."""
    first: SnapshotInfo | None
    """The oldest snapshot that stands and has it. None: none that stands does."""


@dataclass(frozen=True)
class SchemaReport:
    table: str
    location: str
    versions: tuple[VersionReport, ...]
    """Oldest first. The last is that of today."""

    @property
    def today(self) -> SchemaVersion:
        return self.versions[-1].version


def read_schema(table: Table) -> SchemaReport:
    if table.evolution is None:
        raise UnsupportedTableError(f"Cannot show the columns of {table.label}: its format does not offer that.")
    versions = table.evolution.versions()
    first: dict[int | None, SnapshotInfo] = {}
    for snapshot in table.upkeep.history():
        first.setdefault(snapshot.schema_id, snapshot)
    before: Sequence[SchemaVersion | None] = [None, *versions]
    reports = (
        VersionReport(version, tuple(_differences(older, version)), first.get(version.schema_id))
        for older, version in zip(before, versions, strict=False)
    )
    return SchemaReport(table.label, table.location, tuple(reports))


def planned_changes(table: Table, requests: Sequence[Request]) -> list[Change]:
    """What the requests need on the table as it stands. Raises where a rule forbids one, and changes nothing."""
    evolution = evolution_of(table)
    comments = {column.path: column.comment for column in evolution.versions()[-1].columns}
    found = requested_changes(requests, table.schema, fixed=evolution.fixed, comments=comments)
    changes = accepted(found, table=table.label, doing="change")
    evolution.check(changes)
    return changes


def change_schema(table: Table, requests: Sequence[Request], *, reopen: Callable[[], Table]) -> Table:
    """Do what the requests ask for, and return the table as it then is."""
    return change_columns(table, reopen=reopen, needed=partial(planned_changes, requests=requests))


def _differences(before: SchemaVersion | None, after: SchemaVersion) -> Iterator[str]:
    """Columns are known by their ids, and where they have none by their names."""
    if before is None:
        return
    then = {_key(column): column for column in before.columns}
    for column in after.columns:
        old = then.pop(_key(column), None)
        name = dotted(column.path)
        if old is None:
            yield f"added {name} {column.type_name}"
            continue
        if old.path[-1] != column.path[-1]:
            yield f"renamed {dotted(old.path)} to {name}"
        if old.type_name != column.type_name and not _is_above_others(column, after):
            yield f"changed {name} from {old.type_name} to {column.type_name}"
        if old.nullable != column.nullable:
            yield f"made {name} {'nullable' if column.nullable else 'not null'}"
        if old.comment != column.comment:
            yield f"commented {name}"
    yield from (f"dropped {dotted(column.path)}" for column in then.values())


def _key(column: ColumnInfo) -> object:
    return column.path if column.field_id is None else column.field_id


def _is_above_others(column: ColumnInfo, version: SchemaVersion) -> bool:
    """Whether what changed in its type is told of the fields inside it."""
    depth = len(column.path)
    return any(len(each.path) > depth and each.path[:depth] == column.path for each in version.columns)
