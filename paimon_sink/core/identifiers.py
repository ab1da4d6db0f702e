"""Which identifiers of a batch job are in the table: ranges of numbers, small enough to travel in every snapshot.

Jobs come in any order: a backfill after the newest day, two days at once, the same day again. So the last identifier
says nothing of the others, and each of them is remembered for a while. What is forgotten leaves a floor behind: at or
below it, nobody can tell any more whether an identifier that is not remembered was ever in.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from paimon_sink.core.strict_json import is_whole

__all__ = ["FEW_RANGES", "MOST_RANGES", "Identifiers"]

MOST_RANGES = 1_000
"""Days, hours and counters need a few. Numbers with gaps, such as epoch seconds, need one each."""
FEW_RANGES = 100
"""So many are kept however old they are."""
_HOUR_MS = 3600 * 1000
_NOTHING_FORGOTTEN = -1


class _Range(NamedTuple):
    first: int
    last: int
    at_hour: int
    """When its latest identifier came in, rounded up: an hour is exact enough to forget by, and short."""


@dataclass(frozen=True)
class Identifiers:
    """Identifiers that are in. ``ranges`` ascend and never touch."""

    ranges: tuple[_Range, ...] = ()
    floor: int = _NOTHING_FORGOTTEN
    """The highest identifier of which nobody knows whether it is in, unless it is remembered."""

    def __contains__(self, identifier: int) -> bool:
        return any(known.first <= identifier <= known.last for known in self.ranges)

    def is_new(self, identifier: int) -> bool:
        """Whether it is certain that the identifier is not in."""
        return identifier > self.floor and identifier not in self

    @property
    def highest(self) -> int:
        return max([self.floor, *(known.last for known in self.ranges)])

    def adding(self, identifier: int, *, at_ms: int) -> Identifiers:
        added = _Range(identifier, identifier, -(-at_ms // _HOUR_MS))
        return replace(self, ranges=tuple(_joined(sorted([*self.ranges, added]))))

    def forgetting(self, *, before_ms: int) -> Identifiers:
        """Without the lowest ranges where there are too many: first those that came in before that time.

        Only size is a reason to forget. The highest stay as long as they can: a number that was given by mistake must
        not become a floor above all those to come.
        """
        old = {known for known in self.ranges if known.at_hour * _HOUR_MS < before_ms}
        old = set(sorted(old)[: max(0, len(self.ranges) - FEW_RANGES)])
        young = [known for known in self.ranges if known not in old]
        forgotten = [known.last for known in (*old, *young[:-MOST_RANGES])]
        return Identifiers(tuple(young[-MOST_RANGES:]), max([self.floor, *forgotten]))

    def to_fields(self) -> list[int]:
        """The floor, then three numbers a range: how far it begins above the one before, how long it is, its hour."""
        fields, before = [self.floor], 0
        for known in self.ranges:
            fields += [known.first - before, known.last - known.first, known.at_hour]
            before = known.last
        return fields

    @classmethod
    def from_fields(cls, fields: Any) -> Identifiers:
        """Read them, or raise ``ValueError``: guessing here would double a job or leave it out."""
        is_right = isinstance(fields, list) and len(fields) % 3 == 1 and all(map(is_whole, fields))
        if not is_right or fields[0] < _NOTHING_FORGOTTEN:
            raise ValueError(f"the identifiers of a job read {reprlib.repr(fields)}")
        ranges: list[_Range] = []
        for gap, span, at_hour in zip(*[iter(fields[1:])] * 3, strict=True):
            if gap < (2 if ranges else 0) or span < 0:
                raise ValueError(f"the identifiers of a job read {reprlib.repr(fields)}")
            first = gap + (ranges[-1].last if ranges else 0)
            ranges.append(_Range(first, first + span, at_hour))
        return cls(tuple(ranges), fields[0])


def _joined(ranges: Iterable[_Range]) -> Iterator[_Range]:
    """Ranges that touch or overlap become one, as young as the youngest of them."""
    current: _Range | None = None
    for known in ranges:
        if current is None:
            current = known
        elif known.first <= current.last + 1:
            current = _Range(current.first, max(current.last, known.last), max(current.at_hour, known.at_hour))
        else:
            yield current
            current = known
    if current is not None:
        yield current
