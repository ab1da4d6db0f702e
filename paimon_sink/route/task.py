"""A task whose rows choose their tables: it writes into all of them at once, in the memory of one.

Rows are gathered before they are split by route, since each table costs a pass. All tables share one budget: the
largest parts of any are written out first. The route is not written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.clock import Clock, Moment, SystemClock
from paimon_sink.core.errors import OptionError, SchemaMismatchError, TableNotFoundError
from paimon_sink.core.judging import ERROR_COLUMN, Fault
from paimon_sink.core.messages import DataFile, RoutedFiles, TaskMessage
from paimon_sink.core.option_secrets import quoted
from paimon_sink.core.options import Options
from paimon_sink.core.quarantine import kept_schema
from paimon_sink.core.rejected import REJECTED, RejectedRows
from paimon_sink.core.route_marks import marked_attempt
from paimon_sink.core.routes import ROUTE, Destination, RouteRefusedError, RouteRules
from paimon_sink.core.schema import align
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.quarantine_plan import rules_of
from paimon_sink.route.at_once import Done, at_once
from paimon_sink.route.plan import RoutedColumns
from paimon_sink.route.rules import rules_of_routes
from paimon_sink.route.tables import Tables, own_options
from paimon_sink.write.event_time import EventTimeTracker, event_time_of
from paimon_sink.write.fanout import Budget, FanOut, Limits
from paimon_sink.write.files import TaskAttempt
from paimon_sink.write.kept_rows import KeptRows
from paimon_sink.write.offsets import with_offsets
from paimon_sink.write.sieve import Keeper, Rejections, Rules, Sieve
from paimon_sink.write.task import TaskSettings

__all__ = ["write_routed"]

_SHOWN = 3
_OPENERS = 8


def write_routed(
    batches: Iterator[pa.RecordBatch],
    *,
    options: Options,
    columns: RoutedColumns,
    task: TaskSettings,
    batch_id: int | None,
    planned: Moment | None,
    limits: Limits | None = None,
    clock: Clock | None = None,
) -> TaskMessage:
    """Write one task attempt. When it fails, it removes its own files: no message names them, so nobody else can."""
    home = Tables(options).home_to_write()
    run = _Run.of(options, columns, home, task, limits or Limits(), clock or SystemClock())
    reached(Step.WRITE_STARTED)
    try:
        for batch in batches:
            if batch.num_rows:
                run.take(with_offsets(batch))
        run.split_gathered()
        message = TaskMessage(
            home.identity,
            home.schema_id,
            query_id=task.query_id,
            batch_id=batch_id,
            planned=planned,
            routed=tuple(run.closed()),
            rejected=run.rejected(),
        )
        reached(Step.MESSAGE_BUILT)
    except BaseException:
        # Files may be deleted: the message never left this attempt.
        run.discard()
        raise
    return message


@dataclass
class _Writer:
    """The rows of this task that go into one table."""

    table: Table
    attempt: TaskAttempt
    fan_out: FanOut
    tracker: EventTimeTracker
    sieve: Sieve
    files: list[DataFile] = field(default_factory=list)

    def write(self, batch: pa.RecordBatch) -> None:
        good = self.sieve.good_rows(batch)
        if good.num_rows:
            self.tracker.see(good)
            self.files.extend(self.fan_out.write(good))

    def close(self) -> None:
        self.files.extend(self.fan_out.close())

    def discard(self) -> None:
        self.fan_out.discard()
        self.attempt.remove_files()


@dataclass
class _Run:
    """One task attempt."""

    options: Options
    columns: RoutedColumns
    task: TaskSettings
    home: Table
    budget: Budget
    clock: Clock
    keeper: Keeper
    nowhere: Rejections
    """Rows that no table could be found for."""
    routes: RouteRules
    writers: dict[Destination, _Writer] = field(default_factory=dict)
    known: dict[str | None, Destination | str] = field(default_factory=dict)
    """What was found of each route: its table, or why it has none."""
    gathered: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0

    @classmethod
    def of(
        cls, options: Options, columns: RoutedColumns, home: Table, task: TaskSettings, limits: Limits, clock: Clock
    ) -> _Run:
        schema = kept_schema(columns.incoming, of_many=True)
        most = None if options.quarantine.table is None else options.quarantine.max_rows
        keeper = Keeper(lambda: KeptRows(home, schema, REJECTED), most)
        nowhere = Rejections(keeper, home.label, marked_attempt(home.label), clock)
        routes = rules_of_routes(options)
        return cls(options, columns, task, home, Budget(limits), clock, keeper, nowhere, routes)

    def take(self, batch: pa.RecordBatch) -> None:
        self.gathered.append(batch)
        self.rows += batch.num_rows
        self.size_bytes += batch.nbytes
        limits = self.budget.limits
        if self.rows >= limits.split_rows or self.size_bytes >= limits.split_bytes:
            self.split_gathered()

    def split_gathered(self) -> None:
        if not self.gathered:
            return
        together = pa.Table.from_batches(self.gathered).combine_chunks()
        self.gathered, self.rows, self.size_bytes = [], 0, 0
        for batch in together.to_batches():
            self._split(batch)

    def closed(self) -> Iterator[RoutedFiles]:
        for destination in sorted(self.writers):
            writer = self.writers[destination]
            writer.close()
            if writer.files:
                yield RoutedFiles(
                    destination.label,
                    writer.table.identity,
                    frozenset({writer.table.schema_id}),
                    tuple(writer.files),
                    writer.tracker.watermark_ms,
                )

    def rejected(self) -> RejectedRows | None:
        counts = Counter(self.nowhere.counts)
        for writer in self.writers.values():
            counts.update(writer.sieve.rejections.counts)
        return self.keeper.close(counts)

    def discard(self) -> None:
        for writer in self.writers.values():
            writer.discard()
        self.keeper.discard()

    # ------------------------------------------------------------ which table

    def _split(self, batch: pa.RecordBatch) -> None:
        faults = self._noted_errors(batch)
        route = pc.dictionary_encode(batch.column(self.columns.route), null_encoding="encode")
        codes = route.indices
        if faults:
            # Whatever the route of such a row is: it goes nowhere.
            bad = pa.array([position in faults for position in range(batch.num_rows)], pa.bool_())
            codes = pc.if_else(bad, pa.scalar(-1, codes.type), codes)
        order = pc.array_sort_indices(codes)
        pieces: list[tuple[int, pa.Array]] = []
        start = 0
        for end in pc.run_end_encode(codes.take(order), run_end_type=pa.int64()).run_ends.to_pylist():
            pieces.append((codes[order[start].as_py()].as_py(), order[start:end]))
            start = end
        chosen = self._chosen(self._texts(route.dictionary, [code for code, _ in pieces if code >= 0]))
        for code, positions in pieces:
            found = chosen.get(code)
            if isinstance(found, str):
                fault = Fault(ROUTE, self.columns.route, f"the route {found}")
                faults |= dict.fromkeys(positions.to_pylist(), fault)
            elif found is not None:
                whole = len(positions) == batch.num_rows
                # A copy, so that a slow table does not keep the whole batch alive.
                self.writers[found].write(batch if whole else batch.take(positions))
        self.nowhere.take(batch, dict(sorted(faults.items())))

    def _noted_errors(self, batch: pa.RecordBatch) -> dict[int, Fault]:
        """Rows that came with an error: a row that could not be read has no route either."""
        column = self.columns.error
        if column is None or batch.column(column).null_count == batch.num_rows:
            return {}
        positions = pc.indices_nonzero(batch.column(column).is_valid()).to_pylist()
        return dict.fromkeys(positions, Fault(ERROR_COLUMN, column, f"column {column} is not null"))

    def _texts(self, values: pa.Array, codes: Sequence[int]) -> dict[int, str | None]:
        try:
            return {code: values[code].as_py() for code in codes}
        except UnicodeDecodeError as error:
            raise SchemaMismatchError(
                f"Cannot write to {self.home.label}: a row has a route that is no text ({error.reason}). Mend the "
                f"column {self.columns.route}, or leave such rows out."
            ) from error

    def _chosen(self, routes: Mapping[int, str | None]) -> dict[int, Destination | str]:
        """The table that each route chooses, opened; or why there is none."""
        new = [route for route in routes.values() if route not in self.known]
        for route in new:
            try:
                self.known[route] = self.routes.destination(route)
            except RouteRefusedError as reason:
                self.known[route] = str(reason)
        self._open({found for found in map(self.known.__getitem__, new) if isinstance(found, Destination)})
        self._refuse_unknown(new)
        return {code: self.known[route] for code, route in routes.items()}

    def _open(self, found: set[Destination]) -> None:
        missing = sorted(found - self.writers.keys())
        if len(missing) + len(self.writers) > self.options.route.max_tables:
            shown = ", ".join(each.label for each in missing[:_SHOWN])
            raise SchemaMismatchError(
                f"Cannot write to the tables that rows choose: those of one task choose "
                f"{len(missing) + len(self.writers):,}, such as {shown}, and route.maxTables="
                f"{self.options.route.max_tables}. Nothing was committed. Look whether {self.columns.route} is the "
                "right column; if it is, raise the limit."
            )
        works = {each: partial(self._writer, each) for each in missing}
        for each, opened in at_once(works, threads=_OPENERS).items():
            if isinstance(opened, Done):
                self.writers[each] = opened.value
            elif isinstance(opened.reason, TableNotFoundError):
                self.known |= dict.fromkeys(
                    (route for route, known in self.known.items() if known == each),
                    "names a table that is not there, and createTable=false forbids to create it",
                )
            else:
                raise opened.reason

    def _refuse_unknown(self, routes: Sequence[str | None]) -> None:
        if self.options.route.on_unknown == "quarantine":
            return
        for route in routes:
            reason = self.known[route]
            if isinstance(reason, str):
                shown = "" if route is None else f" {quoted(route)}"
                raise SchemaMismatchError(
                    f"Cannot write a row: its route{shown}, of the column {self.columns.route}, {reason}. Nothing was "
                    "committed. Mend the rows, or allow the table; with quarantine and route.onUnknown=quarantine "
                    "such rows are put there."
                )

    def _writer(self, destination: Destination) -> _Writer:
        own = own_options(self.options, destination.label)
        is_exact = self.task.case_sensitive
        written = self.columns.written
        table = Tables(self.options).to_write(destination, written, case_sensitive=is_exact)
        if table.identity == self.home.identity:
            raise OptionError(f"{destination.label} is the home of the stream itself, which has no rows.")
        judged = rules_of(own, written, table, case_sensitive=is_exact)
        # Rows that came with an error were told before: their route may be no more than the rest of them.
        rules = Rules() if judged is None else replace(judged, error_column=None)
        alignment = align(written, table.schema, table=table.label, case_sensitive=is_exact)
        attempt = TaskAttempt(
            table,
            alignment.file_schema,
            attempt_id=marked_attempt(self.home.label),
            target_bytes=own.write.target_file_size_bytes,
            compact=own.write.encoding == "compact",
        )
        event_time = event_time_of(own.write, table.schema, table=table.label, case_sensitive=is_exact)
        sieve = Sieve.of(
            rules,
            attempt,
            self.columns.incoming,
            alignment,
            self.clock,
            keeper=self.keeper,
            left_out=self.columns.left_out,
        )
        tracker = EventTimeTracker(event_time, self.clock)
        return _Writer(table, attempt, FanOut(attempt, self.budget), tracker, sieve)
