"""Options of rows that do not fit."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import WRITES, OptionGroup, Section, option, option_family

__all__ = ["QuarantineOptions"]

_LARGEST_COUNT = 10**15


class QuarantineOptions(OptionGroup):
    """Which rows are bad, and what becomes of them."""

    SECTION = Section.QUARANTINE

    table: str | None = option(
        "quarantine",
        parse=values.quarantine,
        doc=(
            "The table for rows that do not fit: a null in a not-null column, a value that its column cannot hold, one "
            "that no partition can be named by, a failed `check.*`, a set `errorColumn`. As `database.table` in the "
            "same warehouse; beside `path`, a location. It is created when it is missing. Without it such rows fail "
            "the batch."
        ),
        example="sales.orders_bad",
        purposes=WRITES,
    )
    max_share: float = option(
        "quarantine.maxShare",
        parse=values.share,
        default="0.1",
        doc="A larger share of bad rows than this fails the batch: a broken source must not drain away.",
        example="0.01",
        purposes=WRITES,
        switch="quarantine",
    )
    max_rows: int = option(
        "quarantine.maxRows",
        parse=values.count(at_least=0, at_most=_LARGEST_COUNT),
        default="10000",
        doc="More bad rows than this fail the batch.",
        example="100",
        purposes=WRITES,
        switch="quarantine",
    )
    checks: Mapping[str, str] = option_family(
        "check.",
        doc=(
            "A condition that every row has to meet, in the grammar of `where`. As with a CHECK of SQL, one that is "
            "null for a row is met."
        ),
        example="check.positive=amount > 0",
        purposes=WRITES,
    )
    error_column: str | None = option(
        "errorColumn",
        parse=values.column,
        doc=(
            "A column of the DataFrame that says what is wrong with a row, such as Spark's `_corrupt_record`. Rows "
            "where it is not null are bad. It is not written to the table."
        ),
        example="_corrupt_record",
        purposes=WRITES,
    )

    @property
    def judges(self) -> bool:
        """Whether rows are judged at all beyond what every write does."""
        return self.table is not None or bool(self.checks) or self.error_column is not None
