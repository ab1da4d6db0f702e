"""Options of reads."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import BATCH_READS, READS, OptionGroup, Section, option, option_family

__all__ = ["ReadOptions"]

_CHOOSES_WHAT_IS_READ = (
    "it does not choose what an overwrite replaces. Leave it out, and write through a view that was made without it; "
    "partitionOverwriteMode=dynamic replaces only the partitions written."
)


class ReadOptions(OptionGroup):
    """Which rows of which snapshot are read, and in how many pieces."""

    SECTION = Section.READ

    columns: tuple[str, ...] = option(
        "columns",
        parse=values.column_names,
        unset=(),
        default_note="all",
        doc=(
            "Read only these columns, in this order; the others are not read. Spark does not tell a Python source "
            "which columns a query needs, so this is worth setting for a few out of many."
        ),
        example="id, amount",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    version_as_of: str | None = option(
        "versionAsOf",
        parse=values.plain_text,
        default_note="newest",
        doc="Read the table as it was at this snapshot: its id, or the name of a tag. Its columns are those of then.",
        example="42",
        purposes=BATCH_READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    as_of_ms: int | None = option(
        "timestampAsOf",
        parse=values.moment_ms,
        default_note="newest",
        doc=(
            "Read the newest snapshot at this time: ISO 8601 with an offset, or milliseconds since 1970. A time "
            "without offset is another one in every time zone, and is refused."
        ),
        example="2026-11-16T05:00:00Z",
        purposes=BATCH_READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    starting_version: int | str | None = option(
        "startingVersion",
        parse=values.starting_version,
        default_note="`full` in a stream",
        doc=(
            "Read only the rows that snapshots from this id on added, each once: a compaction adds none. One that took "
            "rows out fails the read, unless `skipChangeCommits` is set. A stream can also begin at `full`: the table "
            "as it is, then what comes; `latest`: only what comes; `earliest`: the table as the oldest snapshot has "
            "it, then what came since."
        ),
        example="42",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    ending_version: int | None = option(
        "endingVersion",
        parse=values.snapshot_id,
        default_note="newest",
        doc="The last snapshot of the range that `startingVersion` or `startingTimestamp` begins.",
        example="57",
        purposes=BATCH_READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    starting_ms: int | None = option(
        "startingTimestamp",
        parse=values.moment_ms,
        doc="Instead of `startingVersion`: the first snapshot at or after this time, written as for `timestampAsOf`.",
        example="2026-11-16T00:00:00Z",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    ending_ms: int | None = option(
        "endingTimestamp",
        parse=values.moment_ms,
        default_note="newest",
        doc="Instead of `endingVersion`: the newest snapshot at this time.",
        example="2026-11-17T00:00:00Z",
        purposes=BATCH_READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    skip_change_commits: bool = option(
        "skipChangeCommits",
        parse=values.boolean,
        default="false",
        doc=(
            "In a range and in a stream, pass over snapshots that took rows out (overwrites, deletes), with the rows "
            "they added."
        ),
        example="true",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    metadata_columns: tuple[str, ...] = option(
        "metadataColumns",
        parse=values.words("_snapshot_id", "_commit_time", "_file"),
        unset=(),
        doc=(
            "Add to each row: `_snapshot_id` and `_commit_time` of the snapshot it is read from (in a range, of the "
            "one that added it), and the `_file` it is in."
        ),
        example="_snapshot_id, _file",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
    split_bytes: int = option(
        "splitSize",
        parse=values.size_bytes(at_least="1mb", at_most="16gb"),
        default="32mb",
        doc="About how much of the table's files a task reads. Larger files are cut at their row groups.",
        example="128mb",
        purposes=READS,
    )
    min_partitions: int | None = option(
        "minPartitions",
        parse=values.count(at_least=1, at_most=1_000_000),
        default_note="the session's parallelism",
        doc="At least this many tasks, where there are as many row groups.",
        example="16",
        purposes=READS,
    )
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
            "cannot hold such rows are not opened: by partition and by statistics."
        ),
        example="day >= '2026-11-01' AND (amount > 10 OR note IS NOT NULL)",
        purposes=READS,
        instead=_CHOOSES_WHAT_IS_READ,
    )
