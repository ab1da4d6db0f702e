"""Bad rows of a batch, as messages and plans tell of them: how many by which rule, and where they are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.strict_json import as_count, as_list, as_text

__all__ = ["REJECTED", "RejectedRows", "counted_by_rule", "in_words"]

REJECTED = "rejected"
"""What the files are called in which tasks keep bad rows."""


@dataclass(frozen=True)
class RejectedRows:
    """What one task rejected."""

    rules: Mapping[str, int]
    """Rows by the rule they broke, each under one: the first that it broke."""
    file: str | None = None
    """Where the rows are, relative to the table. None: nobody asked to keep them, or there are more than may be."""
    rows: int = 0
    """In the file."""

    @property
    def count(self) -> int:
        return sum(self.rules.values())

    def to_fields(self) -> list[Any]:
        return [dict(self.rules), self.file, self.rows]

    @classmethod
    def from_fields(cls, fields: Any) -> RejectedRows:
        """Read it again, or raise ``ValueError``."""
        rules, file, rows = as_list(fields)
        if not isinstance(rules, dict):
            raise ValueError("the rules are no object")
        counts = {as_text(rule): as_count(count) for rule, count in rules.items()}
        rejected = cls(counts, None if file is None else as_text(file), as_count(rows))
        if rejected.rows != (0 if file is None else rejected.count):
            raise ValueError(f"{rejected.count} rows are rejected, and {rejected.rows} are kept")
        return rejected


def counted_by_rule(rejected: Iterable[RejectedRows]) -> dict[str, int]:
    """Of all tasks, in the order of the rules' names."""
    total: Counter[str] = Counter()
    for each in rejected:
        total.update(each.rules)
    return {rule: total[rule] for rule in sorted(total)}


def in_words(rules: Mapping[str, int]) -> str:
    """``check.positive: 3, not null: 1``. Counts alone: a value may be what nobody should read in a log."""
    return ", ".join(f"{rule}: {count:,}" for rule, count in rules.items())
