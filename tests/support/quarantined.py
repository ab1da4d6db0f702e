"""A table with a quarantine beside it: rows with an id below one are bad, and the rows of each batch add up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.errors import TableNotFoundError
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.quarantine_sums import opener
from paimon_sink.maintain.verify import verify
from tests.support.lake import Lake, rows
from tests.support.whole import assert_whole

__all__ = ["BAD", "Died", "Quarantined", "dying_at", "quarantined"]

BAD = "sales.orders_bad"
"""Where every test has its own warehouse."""


class Died(BaseException):
    """In place of a kill, in this process."""


@contextmanager
def dying_at(step: Step) -> Iterator[None]:
    """Whoever comes to that step inside the block dies there, and nobody hears of it."""

    def die(reached: Step) -> None:
        if reached is step:
            raise Died(step.value)

    try:
        with listening(die):
            yield
    except Died:
        return
    raise AssertionError(f"nobody came to {step.value}")


@dataclass(frozen=True)
class Quarantined:
    """Both tables, and what each batch was sent."""

    lake: Lake
    check: str = "id > 0"

    def beside(self, name: str) -> str:
        """A table of the same database: tests of one server have databases of their own."""
        return f"{self.lake.table.partition('.')[0]}.{name}"

    @property
    def bad_table(self) -> str:
        return self.beside("orders_bad")

    @property
    def judging(self) -> Lake:
        return self.lake.with_options(quarantine=self.bad_table, quarantine__maxShare="1", check__positive=self.check)

    @property
    def bad(self) -> Lake:
        return Lake(self.lake.options, table=self.bad_table)

    def judging_by(self, check: str) -> Quarantined:
        """The same tables, written by a query that was changed."""
        return Quarantined(self.lake, check)

    def append(self, batch_id: int, *ids: int) -> None:
        self.judging.append(batch_id, rows(*ids))

    def good_ids(self) -> list[int]:
        return self.lake.ids()

    def bad_ids(self) -> list[int]:
        try:
            return self.bad.ids()
        except TableNotFoundError:
            return []

    def bad_rows(self) -> list[dict[str, Any]]:
        return sorted(self.bad.read(), key=lambda row: (row["_pwc_batch"], row["id"]))

    def problems(self) -> list[str]:
        """What ``pwc verify`` says of the table, its quarantine added up."""
        options = parse_options(self.lake.all_options(), purpose=Purpose.READ)
        report = verify(self.lake.open(), open_quarantine=opener(options.table))
        return [f"{problem.kind.value}: {problem.where} {problem.what}" for problem in report.problems]

    def assert_sorted(self, *, good: list[int], bad: list[int]) -> None:
        """Each row is in exactly one of the two, once."""
        assert (self.good_ids(), self.bad_ids()) == (sorted(good), sorted(bad))
        assert self.problems() == []
        assert_whole(self.bad)


def quarantined(lake: Lake) -> Quarantined:
    return Quarantined(lake)
