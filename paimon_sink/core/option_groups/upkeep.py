"""Options of what is done for a table after a commit."""

from __future__ import annotations

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import STREAMS, WRITES, OptionGroup, Section, option

__all__ = ["UpkeepOptions"]


class UpkeepOptions(OptionGroup):
    """What is done for the table after a commit."""

    SECTION = Section.UPKEEP

    expire_older_than_ms: int | None = option(
        "expire.olderThan",
        parse=values.duration_ms_or_never(at_least="0s", at_most="36500d"),
        default_note="as the table says",
        doc=(
            "After each commit, remove snapshots older than this that are not among the newest `expire.keepLast`; "
            "`never` removes none. Without it a Paimon table's own options hold, as they do for Java: "
            "`snapshot.time-retained` (1 h), `snapshot.num-retained.min` (10) and `.max`, `snapshot.expire.limit` "
            "(50), and none with `write-only`; an Iceberg table keeps all. What tags, branches, consumers and the "
            "ledger need stays. A failure is logged and never fails the batch."
        ),
        example="1d",
        purposes=WRITES,
    )
    """None: as the table says. ``NEVER_MS``: none."""
    expire_keep_last: int = option(
        "expire.keepLast",
        parse=values.count(at_least=1, at_most=1_000_000),
        default="10",
        doc="The newest so many snapshots stay, however old they are.",
        example="100",
        purposes=WRITES,
        switch="expire.olderThan",
    )
    expire_limit: int = option(
        "expire.limit",
        parse=values.count(at_least=1, at_most=10_000),
        default="20",
        doc="At most so many snapshots are removed after one commit.",
        example="50",
        purposes=WRITES,
        switch="expire.olderThan",
    )
    compact_min_files: int | None = option(
        "compact.minFiles",
        parse=values.count(at_least=2, at_most=100_000),
        default_note="off",
        doc=(
            "Leave a partition with fewer small files than this alone. On a stream it also turns compaction on: now "
            "and then, after a commit, the small files of the partitions just written are rewritten once so many "
            "gathered. `paimon_sink.compact` takes 2 where it is not set."
        ),
        example="20",
        purposes=STREAMS,
    )
    compact_max_bytes: int = option(
        "compact.maxBytes",
        parse=values.size_bytes(at_least="1kb", at_most="16gb"),
        default="64mb",
        doc="On a stream: at most this much is rewritten after one commit, in the process that commits.",
        example="256mb",
        purposes=STREAMS,
        switch="compact.minFiles",
    )
