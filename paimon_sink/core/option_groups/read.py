"""Options of reads."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import READS, OptionGroup, Section, option, option_family

__all__ = ["ReadOptions"]

_CHOOSES_WHAT_IS_READ = (
    "it does not choose what an overwrite replaces. Leave it out, and write through a view that was made without it; "
    "partitionOverwriteMode=dynamic replaces only the partitions written."
)


class ReadOptions(OptionGroup):
    """Which rows are read."""

    SECTION = Section.READ

    partition: Mapping[str, str] = option_family(
        "partition.",
        doc=(
            "Read only the partition with this value of a partition column; the files of the others are not opened. "
            "`__DEFAULT_PARTITION__` stands for null."
        ),
        example="partition.day=2026-11-16",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    where: str | None = option(
        "where",
        parse=values.condition,
        doc=(
            "Read only the rows that meet this condition: comparisons (`=`, `!=`, `<`, `<=`, `>`, `>=`, `IN (…)`, "
            "`BETWEEN`, `LIKE 'prefix%'`, `IS NULL`) of columns and of fields of structs with values, joined by `AND`, "
            "`OR` and `NOT`. The rows are those of Spark's own WHERE, or the condition is refused by name. Files that "
            "cannot hold such rows are not opened: in Paimon by partition, in Iceberg by partition and by statistics."
        ),
        example="day >= '2026-11-01' AND (amount > 10 OR note IS NOT NULL)",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
