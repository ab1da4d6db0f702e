"""Options of the commit of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import BATCHES, STREAMS, WRITES, OptionGroup, Section, option, option_family
from paimon_sink.core.properties import PREFIX

__all__ = ["CommitOptions"]

OnRewind = Literal["fail", "skip"]
OnLedgerLost = Literal["fail", "commit", "skip"]
OverwriteMode = Literal["static", "dynamic"]


class CommitOptions(OptionGroup):
    """As whom a batch is committed, and what becomes of one that may be in already."""

    SECTION = Section.COMMIT

    commit_user: str | None = option(
        "commitUser",
        parse=values.commit_user,
        default_note="query id",
        doc="The name this writer is known by.",
        example="nightly-orders",
        purposes=WRITES,
    )
    commit_identifier: int | None = option(
        "commitIdentifier",
        parse=values.batch_identifier,
        doc=(
            "Together with `commitUser`: makes a rerun of the same batch job a no-op. Identifiers may come in any "
            "order and at the same time; each is remembered for `ledger.retention`. A stream has Spark's batch id "
            "instead."
        ),
        example="20260131",
        purposes=BATCHES,
        instead="a stream is identified by Spark's batch id, so leave it out.",
    )
    on_rewind: OnRewind = option(
        "onRewind",
        parse=values.choice("fail", "skip"),
        default="fail",
        doc="A batch older than the last one written: `fail`, or `skip` it as already written.",
        example="skip",
        purposes=STREAMS,
        instead="a job's identifiers may come in any order, so leave it out.",
    )
    on_ledger_lost: OnLedgerLost = option(
        "onLedgerLost",
        parse=values.choice("fail", "commit", "skip"),
        default="fail",
        doc=(
            "The history that tells whether a batch is already in has expired: `fail`, `commit` it (it may be in "
            "twice), or `skip` it (it may be missing)."
        ),
        example="commit",
        purposes=WRITES,
    )
    takeover: bool = option(
        "takeover",
        parse=values.boolean,
        default="false",
        doc="Accept a commit user last used by another query.",
        example="true",
        purposes=WRITES,
    )
    ledger_retention_ms: int = option(
        "ledger.retention",
        parse=values.duration_ms(at_least="1h", at_most="36500d"),
        default="30d",
        doc=(
            "How long the identifiers of a batch job are remembered, and how long a commit user may be silent before "
            "it leaves the ledger. At least `1h`."
        ),
        example="90d",
        purposes=WRITES,
    )
    partition_overwrite_mode: OverwriteMode | None = option(
        "partitionOverwriteMode",
        parse=values.choice("static", "dynamic"),
        default_note="as Spark's setting",
        doc=(
            "What an overwrite replaces: `static`, the whole table; `dynamic`, only the partitions written. Without "
            "it a batch write does as Spark's `spark.sql.sources.partitionOverwriteMode` says, and a stream in "
            "complete mode is static."
        ),
        example="dynamic",
        purposes=WRITES,
    )
    """None when the user did not choose, so that Spark's own setting can."""
    replace_where: str | None = option(
        "replaceWhere",
        parse=values.condition,
        doc=(
            "In a batch `overwrite`: replace exactly the rows that meet this condition ([grammar](where.md)). Every "
            "new row must meet it. Rows for which it is null stay. "
            "[How it works](changing.md#replace-a-day)."
        ),
        example="day = '2026-11-01'",
        purposes=BATCHES,
        instead="a stream appends, or replaces the whole table in complete mode, so leave it out.",
    )
    snapshot_properties: Mapping[str, str] = option_family(
        "snapshotProperty.",
        doc="Extra properties for each snapshot. Names that begin with `pwc.` are ours.",
        example="snapshotProperty.team=sales",
        purposes=WRITES,
        reserved=PREFIX,
    )
    watermark_idle_ms: int | None = option(
        "watermarkIdle",
        parse=values.duration_ms(at_least="0s", at_most="36500d"),
        default_note="an empty batch does nothing",
        doc=(
            "A batch without any row moves the watermark to this far behind the clock. It then makes a snapshot of "
            "its own."
        ),
        example="15m",
        purposes=STREAMS,
        section=Section.EVENT_TIME,
    )
    """None: an empty batch does not move the watermark."""
