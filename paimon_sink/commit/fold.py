"""Fold the messages of a batch into one plan. Pure: a missing message means no plan, never half a batch."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paimon_sink.core.clock import Moment
from paimon_sink.core.errors import MessageError, OptionError, TableChangedError
from paimon_sink.core.messages import DataFile, RoutedFiles, TaskMessage
from paimon_sink.core.option_groups import CommitOptions
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import CommitKind, Plan, PlannedOn


def fold(
    messages: Sequence[TaskMessage | None], *, table: str, options: CommitOptions, batch_id: int, overwrite: bool
) -> Plan | None:
    """The plan of batch ``batch_id``, or None when no task reported and there is nothing to publish."""
    reported = _all_reported(messages, table)
    check_batch(reported, batch_id)
    if not reported and not overwrite:
        return None
    query_id = _query_of(reported)
    commit_user = options.commit_user or query_id
    if commit_user is None:
        raise OptionError(
            f"Cannot commit batch {batch_id} to {table}: the writer has no name. Outside a streaming query "
            "there is no query id to stand for it; set the option commitUser."
        )
    return _plan(
        reported,
        table=table,
        commit_user=commit_user,
        batch_id=batch_id,
        query_id=query_id,
        kind=commit_kind(overwrite=overwrite, dynamic=_is_dynamic(reported, options)),
    )


def fold_job(
    messages: Sequence[TaskMessage | None], *, table: str, options: CommitOptions, overwrite: bool, unique_id: str
) -> Plan:
    """The plan of a batch write: in the ledger when the user gave it an identifier, else under a user of its own."""
    reported = _all_reported(messages, table)
    if options.commit_identifier is not None and options.commit_user is not None:
        commit_user = options.commit_user
    else:
        commit_user = "-".join(filter(None, (options.commit_user, unique_id)))
    identifier = options.commit_identifier
    if identifier is None and any(message.rejected is not None or message.routed for message in reported):
        # Its rows are owed to other tables, and what is owed stands in the ledger.
        identifier = 0
    return _plan(
        reported,
        table=table,
        commit_user=commit_user,
        batch_id=identifier,
        query_id=None,
        kind=commit_kind(overwrite=overwrite, dynamic=_is_dynamic(reported, options)),
        in_any_order=identifier is not None,
    )


def fold_rewrite(messages: Sequence[TaskMessage], *, table: str, commit_user: str, removed: Iterable[str]) -> Plan:
    """The plan of a compaction: these files in place of those ``removed``, with the same rows. It is in no ledger."""
    return _plan(
        messages,
        table=table,
        commit_user=commit_user,
        batch_id=None,
        query_id=None,
        kind=CommitKind.REWRITE,
        removed=frozenset(removed),
    )


def fold_delete(
    messages: Sequence[TaskMessage],
    *,
    table: Table,
    commit_user: str,
    commit_identifier: int | None,
    removed: Mapping[str, int],
    planned_on: PlannedOn | None,
) -> Plan:
    """The plan of a delete: these files in place of those ``removed``, whose rows are counted there by path."""
    plan = _plan(
        messages,
        table=table.label,
        commit_user=commit_user,
        batch_id=commit_identifier,
        query_id=None,
        kind=CommitKind.DELETE,
        removed=frozenset(removed),
        in_any_order=commit_identifier is not None,
    )
    return replace(
        plan,
        table_identity=table.identity,
        kept_rows=plan.rows,
        taken_rows=sum(removed.values()) - plan.rows,
        planned_on=None if commit_identifier is None else planned_on,
    )


def with_replaced(
    plan: Plan,
    messages: Sequence[TaskMessage],
    *,
    table: Table,
    removed: Mapping[str, int],
    planned_on: PlannedOn,
) -> Plan:
    """A batch of new rows that take the place of some: with the files that hold what is left of those ``removed``."""
    kept = _plan(
        messages,
        table=table.label,
        commit_user=plan.commit_user,
        batch_id=plan.batch_id,
        query_id=None,
        kind=CommitKind.REPLACE,
        removed=frozenset(removed),
    )
    return replace(
        plan,
        kind=CommitKind.REPLACE,
        files=(*plan.files, *kept.files),
        removed=kept.removed,
        table_identity=plan.table_identity or table.identity,
        schema_ids=plan.schema_ids | kept.schema_ids,
        kept_rows=kept.rows,
        taken_rows=sum(removed.values()) - kept.rows,
        planned_on=planned_on,
    )


def as_step(plan: Plan, *, unique_id: str) -> Plan:
    """A delete that is not known to be the whole of it: under a user of its own, so that no ledger has it."""
    user = f"{plan.commit_user}-{unique_id}"
    return replace(plan, commit_user=user, batch_id=None, in_any_order=False, planned_on=None)


def commit_kind(*, overwrite: bool, dynamic: bool) -> CommitKind:
    """Static overwrite replaces the whole table, dynamic only the partitions that were written."""
    if not overwrite:
        return CommitKind.APPEND
    return CommitKind.OVERWRITE_PARTITIONS if dynamic else CommitKind.OVERWRITE


def check_batch(messages: Sequence[TaskMessage | None], batch_id: int) -> None:
    """Refuse a message of another batch: its files may be in the table, or go there twice."""
    for message in messages:
        if message is not None and message.batch_id not in (None, batch_id):
            raise MessageError(
                f"A commit message is of batch {message.batch_id}, this is batch {batch_id}. Nothing was committed or "
                "deleted."
            )


def least_watermark(messages: Iterable[TaskMessage]) -> int | None:
    """How far all tasks have come that saw an event time, in all their tables. An idle one holds nobody back."""
    found = list(messages)
    marks = [message.watermark_ms for message in found]
    marks += [part.watermark_ms for message in found for part in message.routed]
    return min((mark for mark in marks if mark is not None), default=None)


def written_files(messages: Sequence[TaskMessage | None]) -> tuple[DataFile, ...]:
    """The files of the tasks that reported, each inside the table."""
    return _inside(file for message in messages if message is not None for file in message.files)


def routed_files(messages: Sequence[TaskMessage | None]) -> tuple[RoutedFiles, ...]:
    """What the tasks that reported wrote into the tables that rows chose, a table once, in the order of their names."""
    found: dict[str, list[RoutedFiles]] = {}
    for message in messages:
        for part in () if message is None else message.routed:
            found.setdefault(part.table, []).append(part)
    return tuple(_one_table(table, found[table]) for table in sorted(found))


def _one_table(table: str, parts: Sequence[RoutedFiles]) -> RoutedFiles:
    identities = {part.table_identity for part in parts}
    if len(identities) > 1:
        raise TableChangedError(
            f"Cannot commit to {table}: the table was dropped and created again while the tasks were writing. "
            "Nothing was committed. Restart the query, or run the job again, to write into the new table."
        )
    return RoutedFiles(
        table,
        identities.pop(),
        frozenset().union(*(part.schema_ids for part in parts)),
        _once(_inside(file for part in parts for file in part.files)),
        min((part.watermark_ms for part in parts if part.watermark_ms is not None), default=None),
    )


def _inside(found: Iterable[DataFile]) -> tuple[DataFile, ...]:
    files = tuple(found)
    for file in files:
        if file.path != posixpath.normpath(file.path) or file.path.startswith(("/", "../")) or file.path in (".", ".."):
            raise MessageError(
                f"A commit message names the file {file.path!r}, which is not inside the table. Refused."
            )
    return files


def _plan(
    messages: Sequence[TaskMessage],
    *,
    table: str,
    commit_user: str,
    batch_id: int | None,
    query_id: str | None,
    kind: CommitKind,
    removed: frozenset[str] = frozenset(),
    in_any_order: bool = False,
) -> Plan:
    """The one place where plans are made."""
    files = _once(written_files(messages))
    routed = routed_files(messages)
    if (files and routed) or (routed and kind is not CommitKind.APPEND):
        raise MessageError("The commit messages are of writers with different options. Nothing was committed.")
    return Plan(
        commit_user=commit_user,
        batch_id=batch_id,
        query_id=query_id,
        files=files,
        kind=kind,
        table_identity=_identity_of(messages, table),
        schema_ids=frozenset(message.schema_id for message in messages),
        planned=_planned(messages),
        removed=removed,
        watermark_ms=least_watermark(messages),
        in_any_order=in_any_order,
        rejected=tuple(message.rejected for message in messages if message.rejected is not None),
        routed=routed,
    )


def _once(files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    doubled = [path for path, count in Counter(file.path for file in files).items() if count > 1]
    if doubled:
        raise MessageError(f"Two commit messages name the same file {doubled[0]!r}. Nothing was committed.")
    return files


def _is_dynamic(messages: Sequence[TaskMessage], options: CommitOptions) -> bool:
    """The option, or where there is none, the setting of the Spark session as its tasks saw it."""
    if options.partition_overwrite_mode is not None:
        return options.partition_overwrite_mode == "dynamic"
    return any(message.dynamic_overwrite for message in messages)


def _planned(messages: Sequence[TaskMessage]) -> Moment | None:
    """When the write was planned, if every task was given it."""
    moments = [message.planned for message in messages if message.planned is not None]
    if not moments or len(moments) < len(messages):
        return None
    return Moment(min(moment.wall_ms for moment in moments), min(moment.steady_ms for moment in moments))


def _all_reported(messages: Sequence[TaskMessage | None], table: str) -> list[TaskMessage]:
    reported = [message for message in messages if message is not None]
    missing = len(messages) - len(reported)
    if missing:
        raise MessageError(
            f"Cannot commit to {table}: {missing} of {len(messages)} tasks did not report. Nothing was committed."
        )
    return reported


def _query_of(messages: Sequence[TaskMessage]) -> str | None:
    queries = {message.query_id for message in messages}
    if len(queries) > 1:
        raise MessageError(f"The commit messages come from {len(queries)} different queries. Nothing was committed.")
    return queries.pop() if queries else None


def _identity_of(messages: Sequence[TaskMessage], table: str) -> str | None:
    identities = {message.table_identity for message in messages}
    if len(identities) > 1:
        raise TableChangedError(
            f"Cannot commit to {table}: the table was dropped and created again while the tasks were writing. "
            "Nothing was committed. Restart the query, or run the job again, to write into the new table."
        )
    return identities.pop() if identities else None
