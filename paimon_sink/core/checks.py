"""The options ``check.<name>``: conditions that each row has to meet, as a CHECK of SQL does.

A condition that is null for a row, because a value that it asks for is, is met: only one that is false is not. Whoever
wants no null either says so: ``amount > 0 AND amount IS NOT NULL``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.condition_rows import truths
from paimon_sink.core.conditions import ConditionError, ConditionTree, columns_of, conditions

__all__ = ["Check", "checks_of"]


@dataclass(frozen=True)
class Check:
    """One of them, against the columns of a table."""

    name: str
    conditions: tuple[ConditionTree, ...]

    @property
    def rule(self) -> str:
        return f"check.{self.name}"

    @property
    def columns(self) -> str:
        return ", ".join(columns_of(self.conditions))

    def all_pass(self, batch: pa.RecordBatch) -> bool:
        # Nulls are passed over, and where there is nothing else, all pass.
        return pc.all(truths(self.conditions, batch), min_count=0).as_py() is not False

    def failing(self, batch: pa.RecordBatch) -> pa.Array:
        """True for the rows for which it is false."""
        return pc.fill_null(pc.invert(truths(self.conditions, batch)), False)


def checks_of(texts: Mapping[str, str], schema: pa.Schema) -> tuple[tuple[Check, ...], list[str]]:
    """The checks in the order of their names, and a sentence for each that cannot be asked of such a table."""
    found, problems = [], []
    for name in sorted(texts):
        try:
            found.append(Check(name, tuple(conditions(texts[name], schema))))
        except ConditionError as error:
            problems.append(f"check.{name} {error}.")
    return tuple(found), problems
