"""Options of streams that follow a table."""

from __future__ import annotations

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import STREAM_READS, OptionGroup, Section, option

__all__ = ["NO_CONSUMER", "FollowOptions"]

_LARGEST_COUNT = 2**31
NO_CONSUMER = "none"
"""Instead of a name: nothing is kept for the stream."""


class FollowOptions(OptionGroup):
    """How much of what a table gains a micro-batch takes, and what is done where the table changes underneath."""

    SECTION = Section.FOLLOW

    max_files: int | None = option(
        "maxFilesPerTrigger",
        parse=values.count(at_least=1, at_most=_LARGEST_COUNT),
        default_note="1000",
        doc=(
            "At most so many files in a micro-batch of `spark.readStream`. The three limits are soft: one piece is "
            "always taken. Spark 4.1 tells a source too little to limit it; there they are refused."
        ),
        example="200",
        purposes=STREAM_READS,
    )
    max_bytes: int | None = option(
        "maxBytesPerTrigger",
        parse=values.size_bytes(at_least="1b", at_most="1024tb"),
        doc="At most so many bytes of files in a micro-batch. A file that is larger is read by its row groups.",
        example="2gb",
        purposes=STREAM_READS,
    )
    max_rows: int | None = option(
        "maxRowsPerTrigger",
        parse=values.count(at_least=1, at_most=2**62),
        doc="At most so many rows of files in a micro-batch. A file that has more is read by its row groups.",
        example="1000000",
        purposes=STREAM_READS,
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        parse=values.boolean,
        default="true",
        doc=(
            "`false`: go on at the oldest snapshot when the next one has expired, with a warning in the log. The rows "
            "between are not read."
        ),
        example="false",
        purposes=STREAM_READS,
    )
    consumer_id: str | None = option(
        "consumerId",
        parse=values.consumer_name,
        default_note="made once, kept in the offset",
        doc=(
            "The name under which `pwc expire` keeps the snapshots that the stream still needs. No two queries can "
            "have the same. `none`: nothing is kept, and nothing is written to the table."
        ),
        example="orders-etl",
        purposes=STREAM_READS,
    )
    consumer_keep_ms: int = option(
        "consumerExpiration",
        parse=values.duration_ms(at_least="1m", at_most="3650d"),
        default="7d",
        doc="How long after the last sign of life of the query its consumer still holds expiry back.",
        example="1d",
        purposes=STREAM_READS,
    )
    poll_ms: int = option(
        "pollInterval",
        parse=values.duration_ms(at_least="0s", at_most="1d"),
        default="1s",
        doc="How often the table is asked for something new, at most. Spark asks the source many times a second.",
        example="10s",
        purposes=STREAM_READS,
    )
    on_schema_change: str = option(
        "onSchemaChange",
        parse=values.choice("stop"),
        default="stop",
        doc=(
            "`stop`: a snapshot with columns that the DataFrame does not know ends a batch and then the query, with "
            "SourceSchemaChangedError. A restart, which loads the table again, goes on exactly there."
        ),
        example="stop",
        purposes=STREAM_READS,
    )
