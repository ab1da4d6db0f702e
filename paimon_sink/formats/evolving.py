"""The loop that changes the columns of a table once, whoever asks.

A change is decided on what the table has, and put only if it still has that. Whoever loses looks again: what others
added meanwhile is there then, and needs no change any more. So an answer that was lost is settled by the same look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import CommitConflictError, CommitUnknownError, StorageError, UnsupportedTableError
from paimon_sink.core.evolve import Change, Path, advice, in_words
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.contract import Table
from paimon_sink.formats.evolution import Evolution

__all__ = ["change_columns", "evolution_of", "fixed_columns", "merge_advice"]

log = logging.getLogger(__name__)

_ATTEMPTS = 200
_UNKNOWN_ANSWERS = 5


def evolution_of(table: Table) -> Evolution:
    """Raises ``UnsupportedTableError`` where columns cannot be changed safely."""
    evolution = table.evolution
    reason = "its format does not offer that" if evolution is None else evolution.refusal
    if evolution is None or reason is not None:
        raise UnsupportedTableError(
            f"Cannot change the columns of {table.label}: {reason}. Nothing was changed. Change them with the engine "
            "that looks after the table."
        )
    return evolution


def fixed_columns(table: Table) -> Mapping[Path, str]:
    """Columns whose type stays, with the reason."""
    return {} if table.evolution is None else table.evolution.fixed


def merge_advice(table: Table, incoming: pa.Schema) -> str:
    """What ``mergeSchema`` could do for rows that do not fit: the last sentence of an error, or nothing."""
    evolution = table.evolution
    if evolution is None or evolution.refusal is not None:
        return ""
    return advice(incoming, table.schema, evolution.fixed)


def change_columns(
    table: Table,
    *,
    reopen: Callable[[], Table],
    needed: Callable[[Table], list[Change]],
    clock: Clock | None = None,
) -> Table:
    """Change a table until nothing is needed any more, and return it as it then is.

    ``needed`` decides on a table as it stands, and raises where what is asked for is not allowed.
    """
    clock, backoff = clock or SystemClock(), Backoff()
    unknown = 0
    for attempt in range(1, _ATTEMPTS + 1):
        changes = needed(table)
        if not changes:
            return table
        is_in = False
        try:
            is_in = _put(table, changes)
        except StorageError as error:
            # It may be in all the same. The next look tells.
            log.warning("A change of the columns of %s gave no answer: %s", table.label, error)
            unknown += 1
            if unknown >= _UNKNOWN_ANSWERS:
                raise _unknown(table, error) from error
        reached(Step.BEFORE_SCHEMA_READ_BACK)
        try:
            table = reopen()
        except StorageError as error:
            raise _unknown(table, error) from error
        if not is_in:
            backoff.wait(clock, attempt)
    raise CommitConflictError(
        f"Cannot change the columns of {table.label}: others changed them first in all {_ATTEMPTS} attempts. Nothing "
        "was changed. Try again."
    )


def _put(table: Table, changes: Sequence[Change]) -> bool:
    evolution = evolution_of(table)
    evolution.check(changes)
    reached(Step.BEFORE_SCHEMA_PUT)
    is_in = evolution.put(changes)
    reached(Step.AFTER_SCHEMA_PUT)
    if is_in:
        log.info("Changed the columns of %s: %s", table.label, "; ".join(map(in_words, changes)))
    return is_in


def _unknown(table: Table, reason: Exception) -> CommitUnknownError:
    return CommitUnknownError(
        f"Whether the columns of {table.label} were changed is not known: the request failed or timed out, and the "
        f"table could not be read back ({reason}). No row was written. Run it again: what is there already is not "
        "added twice."
    )
