"""Quarantined rows written into their table again, each once.

A run is a batch of a commit user of its own, numbered by the table's ledger. The rows that it takes are owed, like bad
rows, to a table beside the quarantine, in which whoever comes next sees what was taken; what fails again is owed to the
quarantine. The put of the run decides all of it. Two runs at once have the same number, and one of them is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.fold import fold
from paimon_sink.core.checks import checks_of
from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.conditions import ConditionError, conditions
from paimon_sink.core.errors import CommitConflictError, OptionError, RefusedError, TableNotFoundError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_groups import CommitOptions
from paimon_sink.core.option_groups.table import MAIN_BRANCH
from paimon_sink.core.options import Options
from paimon_sink.core.outbox import OutboxPart
from paimon_sink.core.properties import QUARANTINE, ROUTE_COLUMN
from paimon_sink.core.quarantine import ATTEMPT, OURS, REST, ROW, TABLE, TASK, shape_problems
from paimon_sink.core.schema import align
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, open_to_rewrite
from paimon_sink.formats.values import Plan
from paimon_sink.maintain.quarantine import Quarantine, quarantine_options
from paimon_sink.maintain.quarantine_plan import rolled_back
from paimon_sink.write.sieve import Rules
from paimon_sink.write.task import write_task

__all__ = ["Requeued", "quarantine_named", "requeue", "taken_name"]

_TARGET_BYTES = 128 << 20
_ALL = 10**15
_RULE = f"{OURS}rule"


@dataclass(frozen=True)
class Requeued:
    """What a run found and did. In a dry run, what it would try."""

    table: str
    quarantine: str
    dry_run: bool
    tried: Mapping[str, int]
    """Rows by the rule that they broke before."""
    left: int = 0
    """Rows with values that the table has no column for: they stay where they are."""
    back: Mapping[str, int] | None = None
    """Those that failed again, by the rule they break now."""
    snapshot_id: int | None = None

    @property
    def written(self) -> int:
        return 0 if self.dry_run else sum(self.tried.values()) - sum((self.back or {}).values())


def quarantine_named(table: Table, options: Options) -> str:
    """The quarantine that the options name, or else the one that the table's batches were last written with."""
    if options.quarantine.table is not None:
        return options.quarantine.table
    for snapshot in reversed(table.upkeep.history()):
        if QUARANTINE in snapshot.properties:
            return snapshot.properties[QUARANTINE]
    raise OptionError(f"No snapshot of {table.label} names a quarantine. Name it: --option quarantine=database.table.")


def taken_name(quarantine: str) -> str:
    """The table that has the rows which were taken out of a quarantine."""
    if "/" in quarantine:
        return f"{quarantine.rstrip('/')}_requeued"
    database, table = (name.replace("`", "``") for name in parse_table_name(quarantine))
    return f"`{database}`.`{table}_requeued`"


def requeue(options: Options, *, where: str | None = None, dry_run: bool = False) -> Requeued:
    """Write rows of the quarantine again. A run that finds none that was not taken before changes nothing."""
    if options.table.branch != MAIN_BRANCH:
        # What is taken out for a branch would count as taken for the table, too.
        raise OptionError(
            f"Cannot write quarantined rows into the branch {options.table.branch!r} of {options.table.label}: a "
            f"quarantine is for the branch {MAIN_BRANCH} alone. Leave branch out."
        )
    home = open_to_rewrite(options.table, compression=options.write.compression)
    name = quarantine_named(home, options)
    quarantine = open_table(quarantine_options(options.table, name))
    problems = [*shape_problems(quarantine.schema)]
    if problems:
        raise OptionError(f"{name} is no quarantine: it {'; it '.join(problems)}.")
    run = _Run(options, home, quarantine, name)
    number = 0 if dry_run else run.settled_number()
    run.refuse_what_was_rolled_back()
    # Only now: whatever a run below that number took is known.
    found = run.open_rows(where)
    fit, left = run.that_fit(found)
    report = Requeued(home.label, name, dry_run, _by_rule(fit), left)
    return report if dry_run or not fit.num_rows else run.write(fit, number, report)


@dataclass(frozen=True)
class _Run:
    options: Options
    home: Table
    quarantine: Table
    name: str

    @property
    def user(self) -> str:
        return f"requeue:{self.quarantine.identity}"

    @property
    def policy(self) -> Policy:
        # A ledger that lost this user forgot only runs of which the taken rows are known.
        ledger = self.home.commits.load_head(commit_user=self.user).ledger
        is_lost = self.user not in ledger.entries and not ledger.complete
        return Policy(on_ledger_lost="commit", takeover=is_lost or self.options.commit.takeover)

    def settled_number(self) -> int:
        """Of this run, once what the one before it took is known to everybody."""
        entry = self.home.commits.load_head(commit_user=self.user).ledger.entries.get(self.user)
        if entry is None:
            return 0
        if entry.outbox is not None and entry.outbox.parts:
            Quarantine(self.home, self.options.table).deliver(self.user, entry)
        return entry.batch_id + 1

    def refuse_what_was_rolled_back(self) -> None:
        """Rows that count as taken by runs that are not in the table any more: nobody would write them again."""
        taken = self._taken_table()
        if taken is None or self.options.commit.takeover:
            return
        problems = list(rolled_back(taken, self.home, self.user))
        if problems:
            raise RefusedError(f"Cannot write quarantined rows into {self.home.label}: {' '.join(problems)}")

    # ------------------------------------------------------------ which rows

    def open_rows(self, where: str | None) -> pa.Table:
        """Rows of this table that no run took."""
        try:
            asked = [] if where is None else conditions(where, self.quarantine.schema)
        except ConditionError as error:
            raise OptionError(f"Cannot read {self.name}: --where {error}.") from None
        taken = self._taken()
        batches = []
        for batch in _rows(self.quarantine):
            ours = batch.filter(pc.equal(batch.column(TABLE), self.home.label))
            some = apply_filters(asked, ours)
            identities = zip(some.column(TASK).to_pylist(), some.column(ROW).to_pylist(), strict=True)
            is_open = [identity not in taken for identity in identities]
            batches.append(some.filter(pa.array(is_open, pa.bool_())))
        return pa.Table.from_batches(batches, self.quarantine.schema).combine_chunks()

    def _taken_table(self) -> Table | None:
        try:
            return open_table(quarantine_options(self.options.table, taken_name(self.name)))
        except TableNotFoundError:
            return None

    def _taken(self) -> set[tuple[str, int]]:
        table = self._taken_table()
        return (
            set()
            if table is None
            else {
                identity
                for batch in _rows(table)
                for identity in zip(batch.column(TASK).to_pylist(), batch.column(ROW).to_pylist(), strict=True)
            }
        )

    def that_fit(self, rows: pa.Table) -> tuple[pa.Table, int]:
        """The rows all of whose values the table has columns for, and how many others there are."""
        known = {name.lower() for name in self.home.schema.names} | self._route_columns()
        fits = pa.repeat(True, rows.num_rows)
        for name in rows.schema.names:
            if name == REST or not (name.startswith(OURS) or name.lower() in known):
                fits = pc.and_(fits, rows[name].combine_chunks().is_null())
        fit = rows.filter(fits)
        return fit, rows.num_rows - fit.num_rows

    def _route_columns(self) -> set[str]:
        """By which rows chose this table: they said no more than that, and are not written."""
        history = self.home.upkeep.history()
        return {info.properties[ROUTE_COLUMN].lower() for info in history if ROUTE_COLUMN in info.properties}

    # ------------------------------------------------------------ writing them

    def write(self, rows: pa.Table, number: int, report: Requeued) -> Requeued:
        checks, problems = checks_of(self.options.quarantine.checks, self.home.schema)
        if problems:
            raise OptionError(" ".join(problems))
        messages = [self._task(some, Rules(checks, most_kept=_ALL, attempt=attempt + 1), number)
                    for attempt, some in _by_attempt(rows)]  # fmt: skip
        options = CommitOptions(commit_user=self.user)
        plan = fold(messages, table=self.home.label, options=options, batch_id=number, overwrite=False)
        assert plan is not None, "there are messages"
        everything = replace(self.options.quarantine, table=self.name, max_share=1.0, max_rows=_ALL)
        outboxes = _Taking(self.home, self.options.table, everything, self.policy, requeued=rows)
        outcome = Coordinator(self.home, self.policy, outboxes=outboxes).commit(plan)
        if outcome.already_committed:
            raise CommitConflictError(
                f"Another run wrote quarantined rows into {self.home.label} at the same time, and this one wrote none. "
                "Run it again for what is left."
            )
        back: Counter[str] = Counter()
        for each in plan.rejected:
            back.update(each.rules)
        return replace(report, back=dict(sorted(back.items())), snapshot_id=outcome.snapshot_id)

    def _task(self, rows: pa.Table, rules: Rules, number: int) -> TaskMessage:
        known = {name.lower() for name in self.home.schema.names}
        own = rows.select([name for name in rows.schema.names if name.lower() in known])
        align(own.schema, self.home.schema, table=self.home.label, case_sensitive=False)
        return write_task(
            iter(own.to_batches()),
            table=self.home,
            incoming=own.schema,
            case_sensitive=False,
            target_bytes=_TARGET_BYTES,
            query_id=None,
            batch_id=number,
            rules=rules,
        )


@dataclass(frozen=True)
class _Taking(Quarantine):
    """A quarantine out of which rows are taken: the table of what was taken is owed them."""

    requeued: pa.Table | None = None

    def fill(self, plan: Plan) -> tuple[OutboxPart, ...]:
        assert self.requeued is not None
        assert self.options.table is not None
        failed = super().fill(plan)
        theirs = [name for name in self.requeued.schema.names if name in _OF_BATCH or name == REST]
        part = self.keep(taken_name(self.options.table), self._with_batch(self.requeued.drop_columns(theirs), plan))
        return (*failed, part)


_OF_BATCH = (TABLE, f"{OURS}user", f"{OURS}query", f"{OURS}batch")


def _rows(table: Table) -> Iterator[pa.RecordBatch]:
    for split in table.scans.plan_splits([]):
        yield from table.scans.read_split(split, table.schema.names)


def _by_rule(rows: pa.Table) -> dict[str, int]:
    return dict(sorted(Counter(rows[_RULE].to_pylist()).items()))


def _by_attempt(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    for attempt in sorted(set(rows[ATTEMPT].to_pylist())):
        yield attempt, rows.filter(pc.equal(rows[ATTEMPT], attempt)).combine_chunks()
