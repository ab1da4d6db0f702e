"""What is asked of a quarantine, of checks and of an error column before the first row: all problems in one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from paimon_sink.core.checks import checks_of
from paimon_sink.core.errors import (
    OptionError,
    PwcError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTableError,
)
from paimon_sink.core.evolve import Change, Refused, needed_changes
from paimon_sink.core.evolve import Rules as ColumnRules
from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_reading import all_together
from paimon_sink.core.options import Options
from paimon_sink.core.outbox import number_of, receiving_user
from paimon_sink.core.quarantine import OURS, quarantine_schema, shape_problems
from paimon_sink.core.schema import align
from paimon_sink.formats.contract import Table
from paimon_sink.formats.evolving import change_columns, fixed_columns
from paimon_sink.formats.registry import open_table, open_to_write
from paimon_sink.maintain.quarantine import quarantine_options
from paimon_sink.write.sieve import Rules

__all__ = [
    "check_quarantine",
    "error_column",
    "extend_quarantine",
    "rolled_back",
    "rules_of",
    "written_columns",
]


def written_columns(options: Options, schema: pa.Schema, *, overwrite: bool, case_sensitive: bool) -> pa.Schema:
    """The columns that go into the table: those that came, without the error column. Refuses what cannot be judged."""
    if not options.quarantine.judges:
        return schema
    problems = list(_problems_of_columns(options, schema, overwrite=overwrite, case_sensitive=case_sensitive))
    if problems:
        raise _refusal(options, [*problems, *checks_of(options.quarantine.checks, schema)[1]])
    name = error_column(options, schema, case_sensitive=case_sensitive)
    return pa.schema([field for field in schema if field.name != name])


def rules_of(options: Options, schema: pa.Schema, table: Table, *, case_sensitive: bool) -> Rules | None:
    """What a task judges its rows by. None: as every write does, and nothing else."""
    quarantine = options.quarantine
    if not quarantine.judges:
        return None
    checks, problems = checks_of(quarantine.checks, table.schema)
    if problems:
        raise _refusal(options, problems)
    return Rules(
        checks,
        error_column(options, schema, case_sensitive=case_sensitive),
        most_kept=None if quarantine.table is None else quarantine.max_rows,
    )


def check_quarantine(
    options: Options, schema: pa.Schema, table: Table, columns: pa.Schema, *, written: pa.Schema | None = None
) -> None:
    """Open or create the quarantine, and refuse all that is wrong with it and with the checks, together.

    ``columns`` are those that the table will have when the first row comes.
    """
    if not options.quarantine.judges:
        return
    problems = checks_of(options.quarantine.checks, columns)[1]
    if options.quarantine.table is not None:
        problems += _problems_of_table(options, options.quarantine.table, schema, table)
    if not problems:
        return
    if written is None:
        written = written_columns(options, schema, overwrite=False, case_sensitive=False)
    try:
        align(written, columns, table=table.label, case_sensitive=False)
    except PwcError as error:
        problems.append(str(error))
    raise _refusal(options, problems)


def extend_quarantine(options: Options, schema: pa.Schema) -> None:
    """Add the columns of rows like these to the quarantine, by ``mergeSchema``, so that they can be requeued.

    What it cannot have is kept as text, as without the option.
    """
    name, write = options.quarantine.table, options.write
    if name is None or not write.merge_schema:
        return
    place = quarantine_options(options.table, name)
    table = open_table(place)
    if table.evolution is None or table.evolution.refusal is not None:
        return

    def needed(found: Table) -> list[Change]:
        rules = ColumnRules(widen=write.type_widening, fixed=fixed_columns(found))
        changes = needed_changes(quarantine_schema(schema), found.schema, rules)
        return [each for each in changes if not isinstance(each, Refused)]

    with suppress(SchemaMismatchError, UnsupportedTableError):
        change_columns(table, reopen=lambda: open_table(place), needed=needed)


def _refusal(options: Options, problems: list[str]) -> OptionError:
    return all_together(problems, whose=f"The options of this write to {options.table.label}")


# ---------------------------------------------------------------- columns


def error_column(options: Options, schema: pa.Schema, *, case_sensitive: bool) -> str | None:
    """As the rows spell it."""
    asked = options.quarantine.error_column
    if asked is None or asked in schema.names:
        return asked
    alike = [name for name in schema.names if name.lower() == asked.lower() and not case_sensitive]
    return alike[0] if len(alike) == 1 else None


def _problems_of_columns(
    options: Options, schema: pa.Schema, *, overwrite: bool, case_sensitive: bool
) -> Iterator[str]:
    quarantine = options.quarantine
    if overwrite:
        given = [
            *(["quarantine"] if quarantine.table is not None else []),
            *(f"check.{name}" for name in sorted(quarantine.checks)),
            *(["errorColumn"] if quarantine.error_column is not None else []),
        ]
        yield (
            f"{', '.join(given)}: only appends are judged. An overwrite would take good rows out of the table and put "
            "fewer back. Write with outputMode or mode append, or leave these options out."
        )
    asked = quarantine.error_column
    if asked is not None and error_column(options, schema, case_sensitive=case_sensitive) is None:
        nearest = nearest_name(asked, schema.names)
        hint = f"; did you mean {nearest}?" if nearest else f"; they have {', '.join(schema.names[:20])}."
        yield f"errorColumn is {asked!r}, and the rows have no such column{hint}"
    taken = [name for name in schema.names if name.lower().startswith(OURS)]
    if taken and quarantine.table is not None:
        yield (
            f"the rows have {', '.join(taken)}: names that begin with {OURS} are those that a quarantine gives to its "
            "own columns. Rename them."
        )


# ---------------------------------------------------------------- the table of bad rows


def _problems_of_table(options: Options, name: str, schema: pa.Schema, home: Table) -> Iterator[str]:
    place = quarantine_options(options.table, name)
    try:
        table = open_table(place)
    except TableNotFoundError:
        if not options.table.create_table:
            yield f"quarantine {name} is not there, and createTable=false forbids to create it; create it first."
            return
        table = open_to_write(place, quarantine_schema(schema), compression=None, case_sensitive=True)
    if table.identity == home.identity or table.location == home.location:
        yield "quarantine is the table itself; give bad rows a table of their own."
        return
    problems = list(shape_problems(table.schema))
    if table.partition_spec:
        problems.append(f"is partitioned by {', '.join(table.partition_spec)}")
    if problems:
        yield (
            f"quarantine {name} is a table of another shape: it {'; it '.join(problems)}. Name a table that is not "
            "there yet: it is created."
        )
        return
    try:
        # What it cannot be written with at all.
        open_to_write(place, table.schema, compression=None)
    except PwcError as error:
        yield str(error)
        return
    if not options.commit.takeover:
        yield from rolled_back(table, home, options.commit.commit_user)


def rolled_back(table: Table, home: Table, own: str | None) -> Iterator[str]:
    """Bad rows of batches that are not in the table any more: written again, they would be in both.

    ``own`` is the commit user who asks, who may be in no ledger any more.
    """
    taken = table.commits.load_head(commit_user="").ledger.entries
    users = {*home.commits.load_head(commit_user=own or "").ledger.entries, *([own] if own else [])}
    for user in sorted(users):
        there = taken.get(receiving_user(home.identity, user))
        if there is None:
            continue
        ledger = home.commits.load_head(commit_user=user).ledger
        entry = ledger.entries.get(user)
        if entry is None and not ledger.complete:
            continue
        if there.batch_id > number_of(None if entry is None else entry.outbox):
            yield (
                f"quarantine {table.label} has bad rows of batches of {user!r} that are not in {home.label} any more: "
                "that was rolled back, and this was not. Roll the quarantine back too, or take those rows out of it, "
                "and then set takeover=true once to go on."
            )
