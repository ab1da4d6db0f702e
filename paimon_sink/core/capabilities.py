"""What a table format can do, as a value: options are checked by it, and the page docs/capabilities.md is made of it.

No room asks which format it is. It asks for a feature, and a format that nobody here has heard of may have it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, get_type_hints

__all__ = ["NO", "NOT_APPLICABLE", "YES", "Capabilities", "Feature", "feature_table", "no", "yes"]


_LONG = 30
"""What is longer is not said twice in a row of the page."""


@dataclass(frozen=True)
class Feature:
    """Whether a format has something, and what the page says of it."""

    is_there: bool
    text: str

    def __bool__(self) -> bool:
        return self.is_there


def yes(text: str) -> Feature:
    """It is there; ``text`` says how much of it."""
    return Feature(True, text)


def no(text: str) -> Feature:
    """It is not there; ``text`` says why, or what happens instead."""
    return Feature(False, text)


YES, NO, NOT_APPLICABLE = yes("yes"), no("no"), no("")


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a format can do. What it does not name, it does not have.

    Features are rows of the page in this order, under the texts beside them.
    """

    title: str
    """The format's name in a sentence: Paimon."""
    streams: Annotated[Feature, "streams: append, complete"] = NO
    overwrites: Annotated[Feature, "batch: append, static and dynamic overwrite"] = NO
    repeatable_jobs: Annotated[Feature, "batch jobs that may be run again (`commitIdentifier`)"] = NO
    sql: Annotated[Feature, "SQL `INSERT INTO`, `INSERT OVERWRITE`, `SELECT`"] = NO
    filtered_reads: Annotated[
        Feature, "read only some rows ([`where`](where.md), `partition.<column>`), other files are not opened"
    ] = NO
    followed: Annotated[Feature, "[following](following.md) a table as a stream (`spark.readStream`)"] = NO
    spark_pushdown: Annotated[Feature, "Spark's own filter pushdown"] = NO
    statistics: Annotated[Feature, "other readers skip files by statistics"] = NO
    partition_transforms: Annotated[Feature, "partition transforms"] = NO
    branches: Annotated[Feature, "branches (`branch`, `pwc branch`)"] = NO
    lasting_ledger: Annotated[Feature, "ledger survives the expiry of all snapshots by others"] = NO
    catalogs: Annotated[Feature, "catalogs"] = NO
    tables_by_path: Annotated[Feature, "a table by its `path` alone"] = NO
    stores: Annotated[Feature, "stores"] = NO
    alike_columns: Annotated[Feature, "columns whose names differ only in case"] = NO
    read_schemas: Annotated[Feature, "`.schema(…)` on a read"] = NO
    verify: Annotated[Feature, "`pwc verify`"] = NO
    erased: Annotated[Feature, "`pwc verify --erased`"] = NO
    rollback: Annotated[Feature, "`pwc rollback`"] = NO
    expiry: Annotated[Feature, "`pwc expire`, `expire.*` after commits"] = NO
    clean: Annotated[Feature, "`pwc clean`"] = NO
    compaction: Annotated[Feature, "compaction, on Spark, in process and after commits"] = NO
    deletes: Annotated[Feature, "[deletes](changing.md#delete-rows) by a condition, and `purge`"] = NO
    replace_where: Annotated[Feature, "batch overwrite with [`replaceWhere`](changing.md#replace-a-day)"] = NO
    watermarks: Annotated[Feature, "watermark of a snapshot (`watermarkColumn`)"] = NO
    mark_done: Annotated[
        Feature, "`mark-done`: success file, HTTP, a class of one's own ([listeners](listeners.md))"
    ] = NO
    done_partitions: Annotated[Feature, "`mark-done`: `done-partition`"] = NO
    tags: Annotated[Feature, "`tags`, by watermark or clock; `pwc tag`"] = NO
    table_kinds: Annotated[Feature, "table kinds"] = NO
    keyed_tables: Annotated[Feature, "primary keys, buckets, deletion vectors, row tracking, data evolution"] = NO
    other_versions: Annotated[Feature, "format versions 1 and 3"] = NO
    data_elsewhere: Annotated[Feature, "tables that keep data elsewhere (`write.data.path`, object store layout)"] = NO
    position_deletes: Annotated[Feature, "reading tables with position deletes"] = NO
    equality_deletes: Annotated[Feature, "reading tables with equality deletes"] = NO
    quarantine: Annotated[
        Feature, "[rows that do not fit](quarantine.md) in a table of their own (`quarantine`), `pwc requeue`"
    ] = NO
    routing: Annotated[
        Feature, "[one stream into many tables](regions.md) (`routeColumn`), each batch once in each of them"
    ] = NO
    merge_schema: Annotated[Feature, "`mergeSchema`"] = NO

    highest_identifier_marks: str = "the mark of what is no batch of a job"
    """What 2**63 - 1 means where a batch's number stands. No job may use it as its identifier."""
    reserved_snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    """Names that ``snapshotProperty.*`` must not use, in small letters, each with the reason."""


def feature_table(formats: Mapping[str, Capabilities]) -> str:
    """The features as a table in Markdown, a column a format."""
    titles = [capabilities.title for capabilities in formats.values()]
    lines = [_line("", *titles), "|---" * (len(titles) + 1) + "|"]
    for name, hint in get_type_hints(Capabilities, include_extras=True).items():
        for label in getattr(hint, "__metadata__", ()):
            first, *others = (getattr(capabilities, name).text for capabilities in formats.values())
            repeats = ("the same" if text == first and len(text) > _LONG else text for text in others)
            lines.append(_line(label, first, *repeats))
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
