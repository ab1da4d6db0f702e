"""A sink below Spark: Arrow batches in, one snapshot a batch out, exactly once. Composed from options in one place.

Each of ``write``, ``commit`` and ``abort`` may run in another process, on a sink of its own: it is a frozen value that
travels. Spark's writers wrap it; whoever has Arrow batches and no Spark uses it as it is::

    sink = Sink.of({"warehouse": "…", "table": "sales.orders", "commitUser": "loader"})
    message = sink.write(batches, schema=schema)
    sink.commit([message], batch_id=7)
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from paimon_sink.commit.coordinator import Coordinator, Outcome
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold, fold_job
from paimon_sink.core.clock import Moment, SystemClock
from paimon_sink.core.columns import alike
from paimon_sink.core.errors import MessageError, OptionError, PwcError, TableChangedError, TableNotFoundError
from paimon_sink.core.events import CommitListener
from paimon_sink.core.evolve import Change, Rules, accepted, after, needed_changes
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Options, Purpose
from paimon_sink.core.schema import align
from paimon_sink.formats.contract import Table
from paimon_sink.formats.evolving import change_columns, fixed_columns, merge_advice
from paimon_sink.formats.registry import open_table, open_to_write, parse_options
from paimon_sink.formats.values import Plan
from paimon_sink.listen.loading import check_listeners, load_listeners
from paimon_sink.maintain.after_commit import post_commit_maintenance
from paimon_sink.maintain.quarantine import Quarantine
from paimon_sink.maintain.quarantine_plan import check_quarantine, extend_quarantine, rules_of, written_columns
from paimon_sink.maintain.replace import Replacement, Replacing, check_only_overwrites, only_such_rows, replaced_rows
from paimon_sink.route.outbox import Routes
from paimon_sink.route.plan import RoutedColumns, check_routes
from paimon_sink.route.tables import Tables
from paimon_sink.route.task import write_routed
from paimon_sink.route.tidy import tidy_home
from paimon_sink.write.event_time import event_time_of
from paimon_sink.write.task import TaskSettings, write_task

__all__ = ["Sink", "TaskSettings", "listeners_of"]

log = logging.getLogger(__name__)

Messages = Sequence[TaskMessage | None]


def _now() -> Moment:
    return Moment.by(SystemClock())


@dataclass(frozen=True)
class Sink:
    """One writer of one table."""

    options: Options
    overwrite: bool = False
    is_stream: bool = True
    """Batches with numbers that only go up, rather than one job. A batch write inside a stream's ``foreachBatch`` runs
    under the stream's batch id, which is not its own."""
    planned: Moment = field(default_factory=_now)
    """Travels to the tasks and comes back in their messages: their own clocks are not asked."""
    is_checked: bool = False
    """Whether :meth:`check` was called while the write was planned, so that the table has the columns it needs."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, overwrite: bool = False, is_stream: bool = True) -> Sink:
        """The sink that these options describe. Raises ``OptionError`` with all of their problems."""
        purpose = Purpose.STREAM_WRITE if is_stream else Purpose.BATCH_WRITE
        return cls(parse_options(options, purpose=purpose), overwrite, is_stream)

    # ------------------------------------------------------------ before the first row

    def check(self, schema: pa.Schema) -> None:
        """Open or create the table, refuse what does not fit, and add what is missing if the options say so.

        Whether case matters is known only to the tasks.
        """
        check_listeners(self.options.listeners, self.options.table)
        if self.options.is_routed:
            check_routes(self.options, schema, overwrite=self.overwrite)
            return
        check_only_overwrites(
            self.options.commit.replace_where, overwrite=self.overwrite, table=self.options.table.label
        )
        if self._only_tasks_may_create(schema):
            return
        written = written_columns(self.options, schema, overwrite=self.overwrite, case_sensitive=False)
        table = self._open_to_write(written, case_sensitive=False)
        check_listeners(self.options.listeners, self.options.table, table)
        self._evolved(table, schema, written, case_sensitive=False)

    def _advice(self, table: Table, schema: pa.Schema) -> str:
        """What could be done about rows that do not fit, beside what the problems say."""
        advice = merge_advice(table, schema)
        if not advice or not self.options.write.merge_schema:
            return advice
        return (
            " The table's columns changed since the write was planned. Restart the query, or run the job again, and "
            "mergeSchema adds what is missing."
        )

    def _needed(self, table: Table, schema: pa.Schema) -> list[Change]:
        """What the table lacks for these rows, where it may be changed for them."""
        write = self.options.write
        if not write.merge_schema:
            return []
        rules = Rules(widen=write.type_widening, fixed=fixed_columns(table))
        return accepted(needed_changes(schema, table.schema, rules), table=table.label)

    def _evolved(self, table: Table, schema: pa.Schema, written: pa.Schema, *, case_sensitive: bool) -> Table:
        """The table with the columns that its rows need. Everything is refused before anything is changed."""
        columns = after(table.schema, self._needed(table, written))
        check_quarantine(self.options, schema, table, columns)
        advice = partial(self._advice, table, written)
        align(written, columns, table=table.label, case_sensitive=case_sensitive, advice=advice)
        event_time_of(self.options.write, columns, table=table.label, case_sensitive=case_sensitive)
        if self.options.commit.replace_where is not None:
            Replacement.of(table, self.options.commit.replace_where, columns)
        extend_quarantine(self.options, schema)
        return change_columns(
            table,
            reopen=lambda: self._open_to_write(written, case_sensitive=case_sensitive),
            needed=lambda found: self._needed(found, written),
        )

    def _only_tasks_may_create(self, schema: pa.Schema) -> bool:
        """Whether the table is missing and has columns alike but for case: a task creates or refuses it.

        Spark hands its settings to tasks and to nobody who plans.
        """
        if not alike(schema):
            return False
        try:
            open_table(self.options.table)
        except TableNotFoundError:
            return self.options.table.create_table
        return False

    def _open_to_write(self, schema: pa.Schema, *, case_sensitive: bool) -> Table:
        return open_to_write(
            self.options.table, schema, compression=self.options.write.compression, case_sensitive=case_sensitive
        )

    # ------------------------------------------------------------ tasks

    def write(
        self,
        batches: Iterator[pa.RecordBatch],
        *,
        schema: pa.Schema,
        task: TaskSettings | None = None,
        setting_of: Callable[[str], str | None] = lambda key: None,
    ) -> TaskMessage:
        """Write the rows of one task. The message names its files; nothing is published.

        ``setting_of`` tells the settings of its session, on which the meaning of a condition may depend.
        """
        task = task or TaskSettings()
        if self.options.is_routed:
            columns = RoutedColumns.of(
                self.options, schema, overwrite=self.overwrite, case_sensitive=task.case_sensitive
            )
            return write_routed(
                batches,
                options=self.options,
                columns=columns,
                task=task,
                batch_id=task.batch_id if self.is_stream else None,
                planned=self.planned,
            )
        written = written_columns(self.options, schema, overwrite=self.overwrite, case_sensitive=task.case_sensitive)
        where = self.options.commit.replace_where
        check_only_overwrites(where, overwrite=self.overwrite, table=self.options.table.label)
        table = self._open_to_write(written, case_sensitive=task.case_sensitive)
        if not self.is_checked and self._needed(table, written):
            # Nobody planned this write: it is done without Spark.
            table = self._evolved(table, schema, written, case_sensitive=task.case_sensitive)
        replacement = None if where is None else replaced_rows(table, where, setting_of)
        message = write_task(
            batches,
            table=table,
            incoming=schema,
            case_sensitive=task.case_sensitive,
            target_bytes=self.options.write.target_file_size_bytes,
            query_id=task.query_id,
            batch_id=task.batch_id if self.is_stream else None,
            event_time=event_time_of(
                self.options.write, table.schema, table=table.label, case_sensitive=task.case_sensitive
            ),
            planned=self.planned,
            compact=self.options.write.encoding == "compact",
            rules=rules_of(self.options, schema, table, case_sensitive=task.case_sensitive),
            admit=None if replacement is None else partial(only_such_rows, replacement=replacement, table=table.label),
            advice=partial(self._advice, table, written),
        )
        is_dynamic = task.dynamic_overwrite and self.overwrite and not self.is_stream
        return replace(message, dynamic_overwrite=True) if is_dynamic else message

    # ------------------------------------------------------------ driver

    def commit(self, messages: Messages, batch_id: int | None = None) -> Outcome | None:
        """Publish what the tasks wrote, once, however often this is called. None: there was nothing to publish.

        A stream gives the number of its batch; a job has its identifier in the options, or none.
        """
        plan = self._plan(messages, batch_id)
        if plan is None:
            return None
        self._check_kind(plan)
        coordinator = self._coordinator()
        target_bytes = self.options.write.target_file_size_bytes
        where = self.options.commit.replace_where
        if where is None:
            outcome = coordinator.commit(plan)
        else:
            check_only_overwrites(where, overwrite=self.overwrite, table=coordinator.table.label)
            outcome = Replacing(coordinator, Replacement.of(coordinator.table, where), target_bytes).commit(plan)
        if outcome.snapshot_id is not None and not outcome.already_committed:
            post_commit_maintenance(coordinator.table, self.options.upkeep, plan, target_bytes=target_bytes)
            if self.options.is_routed:
                tidy_home(coordinator.table, plan)
        return outcome

    def _plan(self, messages: Messages, batch_id: int | None) -> Plan | None:
        table, options = self.options.table.label, self.options.commit
        if not self.is_stream:
            return fold_job(
                messages, table=table, options=options, overwrite=self.overwrite, unique_id=str(uuid.uuid4())
            )
        assert batch_id is not None, "a stream numbers its batches"
        return fold(messages, table=table, options=options, batch_id=batch_id, overwrite=self.overwrite)

    def _check_kind(self, plan: Plan) -> None:
        """Tasks and driver have the same options, or rows would be lost that only the tasks knew of."""
        if self.options.is_routed and self.overwrite:
            raise OptionError("routeColumn: only appends are routed. Nothing was committed.")
        if bool(plan.routed if not self.options.is_routed else plan.files):
            raise MessageError(
                f"The commit messages of a batch of {self.options.table.label} are of tasks with other options: "
                "routeColumn is set for them or for the driver, and not for both. Nothing was committed. Run all of "
                "it with the same options."
            )

    def abort(self, messages: Messages, batch_id: int | None = None) -> None:
        """Clean up after a failure. It must not hide the failure, so its own troubles are only logged."""
        try:
            query_id = next((message.query_id for message in messages if message is not None), None)
            self._coordinator().abort(
                messages,
                commit_user=self.options.commit.commit_user or query_id,
                batch_id=batch_id if self.is_stream else self.options.commit.commit_identifier,
            )
        except (PwcError, OSError) as error:
            log.warning("Left the files of an aborted write to %s behind: %s", self.options.table.label, error)

    @property
    def _policy(self) -> Policy:
        commit = self.options.commit
        return Policy(
            on_rewind=commit.on_rewind,
            on_ledger_lost=commit.on_ledger_lost,
            takeover=commit.takeover,
            ledger_retention_ms=commit.ledger_retention_ms,
        )

    def _coordinator(self) -> Coordinator:
        options, policy, table = self.options, self._policy, self._table_that_decides()
        if options.is_routed:
            # Listeners and upkeep are those of the tables.
            routes = Routes(table, options, policy, load_listeners=listeners_of)
            return Coordinator(table, policy, options.commit.snapshot_properties, outboxes=routes)
        return Coordinator(
            table,
            policy,
            options.commit.snapshot_properties,
            target_file_bytes=options.write.target_file_size_bytes,
            watermark_idle_ms=options.commit.watermark_idle_ms,
            listeners=load_listeners(options.listeners, options.table, table),
            outboxes=Quarantine(table, options.table, options.quarantine, policy),
        )

    def _table_that_decides(self) -> Table:
        """The one whose ledger decides a batch: of a write whose rows choose their tables, the home."""
        options = self.options
        try:
            if options.is_routed:
                return Tables(options).home()
            # What is done after the commit may write, too.
            return open_table(options.table, compression=options.write.compression)
        except TableNotFoundError as error:
            raise TableChangedError.dropped(options.table.label) from error


def listeners_of(options: Options, table: Table) -> Mapping[str, CommitListener]:
    """Those of one of the tables that rows chose, by its options."""
    return load_listeners(options.listeners, options.table, table)
