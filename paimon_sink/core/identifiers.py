"""Which identifiers of a batch job are in the table: ranges of numbers, small enough to travel in every snapshot.

Jobs run in any order: a backfill after the newest day, two days at once, the same day again. So the last identifier
says nothing about the others, and each is remembered for a while. The highest forgotten identifier becomes the floor:
at or below it, an identifier that is not remembered may or may not be in.
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
"""This many are kept however old they are."""
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
    """The highest forgotten identifier. At or below it, one that is not remembered may be in."""

    def __contains__(self, identifier: int) -> bool:
        return any(span.first <= identifier <= span.last for span in self.ranges)

    def is_new(self, identifier: int) -> bool:
        """Whether it is certain that the identifier is not in."""
        return identifier > self.floor and identifier not in self

    @property
    def highest(self) -> int:
        return max([self.floor, *(span.last for span in self.ranges)])

    def adding(self, identifier: int, *, at_ms: int) -> Identifiers:
        added = _Range(identifier, identifier, -(-at_ms // _HOUR_MS))
        return replace(self, ranges=tuple(_joined(sorted([*self.ranges, added]))))

    def forgetting(self, *, before_ms: int) -> Identifiers:
        """Drops the lowest ranges where there are too many: first those that came in before that time.

        Size is the only reason to forget. The highest are dropped last: a number that was given by mistake must not
        become a floor above all later ones.
        """
        old = {span for span in self.ranges if span.at_hour * _HOUR_MS < before_ms}
        old = set(sorted(old)[: max(0, len(self.ranges) - FEW_RANGES)])
        young = [span for span in self.ranges if span not in old]
        forgotten = [span.last for span in (*old, *young[:-MOST_RANGES])]
        return Identifiers(tuple(young[-MOST_RANGES:]), max([self.floor, *forgotten]))

    def to_fields(self) -> list[int]:
        """The floor, then three numbers a range: its distance from the one before, its length, its hour."""
        fields, before = [self.floor], 0
        for span in self.ranges:
            fields += [span.first - before, span.last - span.first, span.at_hour]
            before = span.last
        return fields

    @classmethod
    def from_fields(cls, fields: Any) -> Identifiers:
        """Read them, or raise ``ValueError``: a guess could duplicate a job or skip it."""
        is_right = isinstance(fields, list) and len(fields) % 3 == 1 and all(map(is_whole, fields))
        if not is_right or fields[0] < _NOTHING_FORGOTTEN:
            raise ValueError(f"the identifiers of a job read {reprlib.repr(fields)}")
        ranges: list[_Range] = []
        for gap, length, at_hour in zip(*[iter(fields[1:])] * 3, strict=True):
            if gap < (2 if ranges else 0) or length < 0:
                raise ValueError(f"the identifiers of a job read {reprlib.repr(fields)}")
            first = gap + (ranges[-1].last if ranges else 0)
            ranges.append(_Range(first, first + length, at_hour))
        return cls(tuple(ranges), fields[0])


def _joined(ranges: Iterable[_Range]) -> Iterator[_Range]:
    """Ranges that touch or overlap become one, as young as the youngest of them."""
    current: _Range | None = None
    for span in ranges:
        if current is None:
            current = span
        elif span.first <= current.last + 1:
            current = _Range(current.first, max(current.last, span.last), max(current.at_hour, span.at_hour))
        else:
            yield current
            current = span
    if current is not None:
        yield current
