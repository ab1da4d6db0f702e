"""The quarantine of a table: how many bad rows a batch may have, and bringing them into their own table, once.

What the tasks kept becomes one file beside the table before the batch is put; the put names it, and with that it is
decided which rows are bad. Then it is written into the quarantine under a number that the quarantine's own ledger
takes once. The file stays until the next batch is in, whose put does not name it any more.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold
from paimon_sink.commit.sentences import how_to_retry, name_of
from paimon_sink.commit.unused import drop_unpublished_files
from paimon_sink.core.clock import Clock, Moment, SystemClock
from paimon_sink.core.errors import (
    CorruptTableError,
    OptionError,
    PwcError,
    SchemaMismatchError,
    TableChangedError,
    TableNotFoundError,
)
from paimon_sink.core.messages import RoutedFiles, TaskMessage
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_groups import CommitOptions, QuarantineOptions, TableOptions
from paimon_sink.core.option_groups.table import MAIN_BRANCH
from paimon_sink.core.outbox import NONE_TAKEN, Outbox, OutboxPart, receiving_user
from paimon_sink.core.properties import OUTBOX_NUMBER, OUTBOX_OF
from paimon_sink.core.quarantine import OURS, TABLE, fitted, quarantine_schema
from paimon_sink.core.rejected import REJECTED, counted_by_rule, in_words
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.registry import open_table, open_to_write
from paimon_sink.formats.values import Plan
from paimon_sink.write.kept_rows import OUTBOX, KeptRows, read_kept
from paimon_sink.write.task import write_task

__all__ = ["OUTBOX", "Quarantine", "quarantine_options"]

log = logging.getLogger(__name__)

_REMEMBERED_MS = 365 * 24 * 3600 * 1000
_TARGET_BYTES = 128 << 20


def quarantine_options(home: TableOptions, name: str) -> TableOptions:
    """Where a quarantine is: beside the table whose bad rows it takes, by the same format, catalog and store."""
    is_location = "/" in name
    if not is_location and home.name is None:
        raise OptionError(
            f"{home.label} is named by its location, and its quarantine {name} as a table of a warehouse. Name the "
            "table by warehouse and table."
        )
    return replace(
        home,
        warehouse=None if is_location else home.warehouse,
        name=None if is_location else parse_table_name(name),
        path=name if is_location else None,
        partition_by=(),
        table_properties={},
        branch=MAIN_BRANCH,
        create_table=True,
    )


@dataclass(frozen=True)
class Quarantine:
    """That of one writer. It is there without the option too: an earlier run may have left something to deliver."""

    home: Table
    place: TableOptions
    """Of the table itself."""
    options: QuarantineOptions = field(default_factory=QuarantineOptions)
    policy: Policy = field(default_factory=Policy)
    clock: Clock = field(default_factory=SystemClock)

    # ------------------------------------------------------------ before the put

    def check(self, plan: Plan) -> None:
        rules = counted_by_rule(plan.rejected)
        bad = sum(rules.values())
        if not bad:
            return
        sent = plan.rows + plan.rows_routed + bad
        subject = f"Cannot commit {name_of(plan)} to {self.home.label}: {bad:,} of its {sent:,} rows are bad "
        subject += f"({in_words(rules)})"
        if self.options.table is None:
            raise SchemaMismatchError(
                f"{subject}. Nothing was committed. Mend them at the source, or set quarantine to a table for them."
            )
        limits = []
        if bad > self.options.max_rows:
            limits.append(f"quarantine.maxRows={self.options.max_rows}")
        if bad > self.options.max_share * sent:
            limits.append(f"quarantine.maxShare={self.options.max_share:g}")
        if limits:
            raise SchemaMismatchError(
                f"{subject}, more than {' and '.join(limits)} allows. Nothing was committed, the quarantine is as it "
                "was. Look whether the source or a rule is broken; if such batches are right, raise the limit."
            )

    def fill(self, plan: Plan) -> tuple[OutboxPart, ...]:
        files = [each.file for each in plan.rejected if each.file is not None]
        if not files:
            return ()
        assert self.options.table is not None, "rows that nobody keeps were refused"
        rows = (self._read(file, REJECTED, missing=self._gone(plan)) for file in files)
        return (self.keep(self.options.table, *(self._with_batch(some, plan) for some in rows)),)

    def keep(self, table: str, *rows: pa.Table) -> OutboxPart:
        """What a table is to get, in one file beside the one whose ledger names it."""
        kept = KeptRows(self.home, rows[0].schema, OUTBOX)
        try:
            for some in rows:
                for batch in some.cast(kept.schema).to_batches():
                    kept.add(batch)
            path = kept.close()
        except BaseException:
            kept.discard()
            raise
        assert path is not None, "a table gets some rows"
        return OutboxPart(table, path, kept.rows, self.home.store.size(self.home.full_path(path)))

    def _with_batch(self, rows: pa.Table, plan: Plan) -> pa.Table:
        """With what only the driver knows of them."""
        # A job that nobody gave an identifier has a name and a number of ours.
        known: dict[str, tuple[Any, pa.DataType]] = {
            TABLE: (self.home.label, pa.string()),
            f"{OURS}user": (plan.commit_user, pa.string()),
            f"{OURS}query": (plan.query_id, pa.string()),
            f"{OURS}batch": (plan.batch_id, pa.int64()),
        }
        for name, (value, kind) in known.items():
            if name == TABLE and name in rows.schema.names:
                # Of a batch of many tables, each row says its own.
                continue
            rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), rows.num_rows))
        return rows

    def _gone(self, plan: Plan) -> PwcError:
        return TableChangedError(
            f"Cannot commit {name_of(plan)} to {self.home.label}: the bad rows that its tasks kept are gone. Somebody "
            f"cleaned up meanwhile. Nothing was committed. {how_to_retry(plan)}: it is then written anew. Clean up "
            "with an age longer than any batch takes."
        )

    def taken(self, commit_user: str, parts: Sequence[OutboxPart]) -> int:
        return max((self._taken(self._open(part), commit_user) for part in parts), default=NONE_TAKEN)

    def ahead(self, parts: Sequence[OutboxPart]) -> str:
        return f"its quarantine {parts[0].table} has bad rows of"

    # ------------------------------------------------------------ after the put

    def may_go_on(self, plan: Plan, before: Outbox | None, carried: Sequence[OutboxPart]) -> int:
        """Nothing is ever carried."""
        return 0

    def deliver(self, commit_user: str, entry: LedgerEntry, *, again: bool = True) -> tuple[OutboxPart, ...]:
        """Whoever does this twice, at once or later, changes nothing: the quarantine's ledger has the number."""
        assert entry.outbox is not None, "only who owes something is asked to deliver"
        for part in entry.outbox.parts:
            try:
                self._deliver(commit_user, entry, part)
            except PwcError as error:
                raise type(error)(
                    f"Batch {entry.batch_id} of {commit_user!r} is in {self.home.label}, as snapshot "
                    f"{entry.snapshot_id}, and its {part.rows:,} bad rows are not known to be in {part.table} yet. "
                    f"They are kept in {part.file}. Restart the query, or run the job again with its identifier, and "
                    f"they are brought there, once. The reason: {error}"
                ) from error
        return ()

    def _deliver(self, commit_user: str, entry: LedgerEntry, part: OutboxPart) -> None:
        assert entry.outbox is not None
        number = entry.outbox.number
        table = self._open(part)
        if self._taken(table, commit_user) >= number:
            return
        try:
            rows = self._read(part.file, OUTBOX, missing=FileNotFoundError(part.file))
        except FileNotFoundError:
            if self._taken(self._open(part), commit_user) >= number:
                # Somebody else was quicker, and went on.
                return
            raise CorruptTableError(
                f"{part.file} of {self.home.label} is gone: it had bad rows that are in no table. Nothing was deleted. "
                "Restore the file; or roll the table back to before that snapshot, and write the batch again."
            ) from None
        table = table or open_to_write(
            quarantine_options(self.place, part.table), quarantine_schema(_own(rows)), compression=None
        )
        self._write(table, rows, commit_user, entry)

    def _write(self, table: Table, rows: pa.Table, commit_user: str, entry: LedgerEntry) -> None:
        assert entry.outbox is not None
        names = (f"{OURS}user", f"{OURS}query", f"{OURS}batch")
        try:
            fit = fitted(rows.drop_columns(list(names)), {name: rows[name][0].as_py() for name in names}, table.schema)
        except SchemaMismatchError as error:
            raise TableChangedError(
                f"{table.label} is no quarantine any more: it {error}. Bring its columns back, or move it away: it is "
                "then made anew"
            ) from error
        message = write_task(
            iter(fit.combine_chunks().to_batches()),
            table=table,
            incoming=fit.schema,
            case_sensitive=True,
            target_bytes=_TARGET_BYTES,
            query_id=None,
            batch_id=entry.outbox.number,
            planned=Moment.by(self.clock),
        )
        self._commit(table, message, commit_user, entry)

    def _commit(self, table: Table, message: TaskMessage, commit_user: str, entry: LedgerEntry) -> None:
        assert entry.outbox is not None
        number = entry.outbox.number
        user = receiving_user(self.home.identity, commit_user)
        plan = fold(
            [message], table=table.label, options=CommitOptions(commit_user=user), batch_id=number, overwrite=False
        )
        assert plan is not None, "a message makes a plan"
        # A number below the last is in: they are delivered one after the other.
        policy = Policy("skip", self.policy.on_ledger_lost, ledger_retention_ms=_REMEMBERED_MS)
        properties = {OUTBOX_OF: entry.commit_id or "", OUTBOX_NUMBER: str(number)}
        Coordinator(table, policy, properties, clock=self.clock).commit(plan)

    def _open(self, part: OutboxPart) -> Table | None:
        try:
            return open_table(quarantine_options(self.place, part.table))
        except TableNotFoundError:
            return None

    def _taken(self, table: Table | None, commit_user: str) -> int:
        if table is None:
            return NONE_TAKEN
        user = receiving_user(self.home.identity, commit_user)
        entry = table.commits.load_head(commit_user=user).ledger.entries.get(user)
        return NONE_TAKEN if entry is None else entry.batch_id

    # ------------------------------------------------------------ files

    def _read(self, file: str, subject: str, *, missing: Exception) -> pa.Table:
        if not self.home.side_files.is_kept_file(file, subject):
            raise CorruptTableError(f"{file[:200]!r} is no file in which {self.home.label} keeps bad rows. Refused.")
        try:
            return read_kept(self.home, file)
        except FileNotFoundError:
            raise missing from None
        except (pa.ArrowException, ValueError) as error:
            raise CorruptTableError(
                f"{file} of {self.home.label} cannot be read ({type(error).__name__}): it has bad rows that are in no "
                "table. Nothing was deleted. Restore the file; or roll the table back to before that snapshot, and "
                "write the batch again."
            ) from error

    def drop(self, plan: Plan, parts: Sequence[OutboxPart]) -> None:
        # May go: the batch is in, and its ledger names another file; or none of its rows ever will be put.
        kept = [each.file for each in plan.rejected if each.file is not None]
        known = [file for file in kept if self.home.side_files.is_kept_file(file, REJECTED)]
        spent = [part.file for part in parts if self.home.side_files.is_kept_file(part.file, OUTBOX)]
        self.home.files.drop([*known, *spent])

    def replayed(self, plan: Plan, entry: LedgerEntry | None) -> None:
        """It writes into no other table before the put."""

    def aborted(self, parts: Sequence[RoutedFiles]) -> None:
        """It writes into no other table before the put."""

    def refused(self, plan: Plan) -> None:
        self.drop(plan, ())
        drop_unpublished_files(self.home, plan)


def _own(rows: pa.Table) -> pa.Schema:
    """The columns that the rows came with."""
    return pa.schema([field for field in rows.schema if not field.name.startswith(OURS)])
