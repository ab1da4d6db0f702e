"""Options of the tasks that write."""

from __future__ import annotations

from typing import Literal

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import WRITES, OptionGroup, Section, option

__all__ = ["WriteOptions"]


class WriteOptions(OptionGroup):
    """What tasks write."""

    SECTION = Section.DATA_FILES

    target_file_size_bytes: int = option(
        "targetFileSize",
        parse=values.size_bytes(at_least="1kb", at_most="16gb"),
        default="128mb",
        doc="Start a new data file at this size, from `1kb` to `16gb`.",
        example="256mb",
        purposes=WRITES,
    )
    compression: str | None = option(
        "compression",
        parse=values.codec,
        default_note="zstd",
        doc="Parquet codec: `zstd`, `snappy`, `gzip`, `lz4`, `brotli` or `none`.",
        example="snappy",
        purposes=WRITES,
    )
    """None when the user did not choose, so that an existing table's own codec can win."""
    encoding: Literal["standard", "compact"] = option(
        "encoding",
        parse=values.choice("standard", "compact"),
        default="standard",
        doc=(
            "`compact`: columns that get no dictionary are written as differences (whole numbers, dates, times) or "
            "byte by byte (floats). Smaller files for readers that know these encodings of Parquet 2 "
            "([which do](performance.md#encodings))."
        ),
        example="compact",
        purposes=WRITES,
    )
    watermark_column: str | None = option(
        "watermarkColumn",
        parse=values.column,
        doc=(
            "Event time: a timestamp, or a long in milliseconds. The latest of each task, and of those the least, "
            "becomes the snapshot's watermark. Tasks without rows and rows without a time do not count, and it never "
            "goes back."
        ),
        example="ts",
        purposes=WRITES,
        section=Section.EVENT_TIME,
    )
    watermark_delay_ms: int = option(
        "watermarkDelay",
        parse=values.duration_ms(at_least="0s", at_most="36500d"),
        default="0s",
        doc="How far the watermark stays behind `watermarkColumn`, for rows that come late.",
        example="10m",
        purposes=WRITES,
        section=Section.EVENT_TIME,
    )
    watermark_max_ahead_ms: int = option(
        "watermarkMaxAhead",
        parse=values.duration_ms(at_least="0s", at_most="36500d"),
        default="1d",
        doc="Event times further ahead of the clock than this are written and do not count for the watermark.",
        example="5m",
        purposes=WRITES,
        section=Section.EVENT_TIME,
    )
    merge_schema: bool = option(
        "mergeSchema",
        parse=values.boolean,
        default="false",
        doc=(
            "Add the DataFrame's new columns and nested fields to the table, nullable, while the write is planned "
            "([changing a table](changing.md#add-columns))."
        ),
        example="true",
        purposes=WRITES,
    )
    type_widening: bool = option(
        "mergeSchema.typeWidening",
        parse=values.boolean,
        default="false",
        doc=(
            "With `mergeSchema`, also widen types: whole numbers, float to double, more decimal digits at the same "
            "scale, longer varchar ([changing a table](changing.md#widen-a-type))."
        ),
        example="true",
        purposes=WRITES,
    )
