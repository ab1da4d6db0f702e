"""The option ``where``: conditions that every row read has to meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from paimon_sink.core.conditions import ConditionError, ConditionTree, conditions, other_setting
from paimon_sink.core.errors import OptionError
from paimon_sink.formats.contract import Table

__all__ = ["check_session", "where_conditions"]


def where_conditions(
    table: Table, text: str | None, *, what: str = "read", option: str = "where", columns: pa.Schema | None = None
) -> list[ConditionTree]:
    """The conditions, with values that fit the columns. A name in another case fits, where it fits one column.

    ``columns`` are those that the table is about to have, where they are not its own.
    """
    if text is None:
        return []
    try:
        return conditions(text, table.schema if columns is None else columns)
    except ConditionError as error:
        raise OptionError(f"Cannot {what} {table.label}: {option} {error}.") from None


def check_session(
    row_conditions: Sequence[ConditionTree],
    setting_of: Callable[[str], str | None],
    *,
    table: str,
    what: str = "read",
) -> None:
    """Refuse conditions that Spark's own WHERE would take to mean something else in this session."""
    setting = other_setting(row_conditions, setting_of)
    if setting is not None:
        raise OptionError(
            f"Cannot {what} {table}: with {setting}, Spark's own WHERE would give other rows than this condition does. "
            "Leave the setting at its default"
            + (", or use DataFrame.where instead of the option." if what == "read" else ".")
        )
