"""A table as a DataFrame by the fastest way that is exact.

Spark's own Parquet reader needs no Python process, prunes columns and row groups by itself, and counts from footers. It
is given the files of one snapshot where it would read exactly their rows; else ``format("pwc")`` reads them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_sink.core.columns import alike
from paimon_sink.core.nested import is_list
from paimon_sink.core.options import Options, Purpose
from paimon_sink.core.schema import sql_type, type_name
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.formats.values import Split
from paimon_sink.read.scan import Scan
from paimon_sink.read.where import check_session
from paimon_sink.spark.schema import spark_schema
from paimon_sink.spark.session import directory_for, register
from paimon_sink.spark.source import PwcDataSource
from paimon_sink.storage.location import LOCAL, parse_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["load"]

log = logging.getLogger(__name__)

_EXACT = {
    # Spark's defaults may differ: a missing file would be fewer rows, an old date another one.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "recursiveFileLookup": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
_PATTERN_SIGNS = frozenset("{}[]*?\\")
_SAME_TYPES = frozenset(
    {
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
    }
)


def load(spark: SparkSession, **options: str) -> DataFrame:
    """The rows of a table as of now, or as the options of a read say. Call it again to see what came since.

    By Spark's own Parquet reader where that gives exactly the same rows, else by ``format("pwc")``.

    Args:
        spark: The session. It need not be registered before.
        **options: Those of a read: ``warehouse`` and ``table``, or ``path``; ``where``, ``columns``, ``versionAsOf``,
            ``startingVersion`` and more.

    Returns:
        A DataFrame of one snapshot, planned now.

    Raises:
        OptionError: An option is missing, unknown or wrong; all problems are named.
        TableNotFoundError: There is no such table.
        SnapshotExpiredError: The snapshot asked for has expired.

    Example:
        ```python
        numbers = paimon_sink.load(spark, warehouse="/tmp/lake", table="demo.numbers", where="id < 10")
        numbers.show()
        ```
    """
    register(spark, tune=False)
    parsed = parse_options(options, purpose=Purpose.READ, directory=directory_for(spark))
    try:
        frame = _by_spark(spark, parsed)
    except _NotExactError as error:
        log.info("%s is read by format('pwc'): %s.", parsed.table.label, error)
        return spark.read.format(PwcDataSource.name()).options(**options).load()
    log.info("%s is read by Spark's own Parquet reader.", parsed.table.label)
    return frame


class _NotExactError(Exception):
    """Why Spark's reader might give other rows, or none at all."""


def _by_spark(spark: SparkSession, options: Options) -> DataFrame:
    """What can be known without a plan is asked first: ``format("pwc")`` plans for itself."""
    if not hasattr(spark, "_jsparkSession"):
        raise _NotExactError("Spark Connect plans elsewhere than where this program runs")
    if options.read.partition or options.read.metadata_columns:
        raise _NotExactError("partition.* and metadataColumns are for our own reader")
    scan = Scan.open(open_table(options.table), options.read)
    _check_columns(scan.snapshot.schema)
    splits = scan.snapshot.splits([])
    if not splits:
        raise _NotExactError("it has no files")
    if not scan.snapshot.are_plain(splits):
        raise _NotExactError(
            "some files are not Parquet with exactly the columns of the snapshot, or rows of them are deleted"
        )
    paths = [_uri(scan, split) for split in splits]
    _check_reachable(spark, paths)
    check_session(scan.conditions, lambda key: spark.conf.get(key, None), table=scan.table.label)
    frame = spark.read.schema(spark_schema(scan.snapshot.schema)).options(**_EXACT).parquet(*paths)
    if options.read.where is not None:
        frame = frame.where(options.read.where)
    if scan.schema.names == frame.columns:
        # Naming them one by one takes Spark longer than planning all the rest.
        return frame
    return frame.select(*(f"`{name.replace('`', '``')}`" for name in scan.schema.names))


def _check_columns(schema: pa.Schema) -> None:
    strange = next((field for field in schema if not _means_the_same(field)), None)
    if strange is not None:
        raise _NotExactError(f"column {strange.name} is {sql_type(strange) or type_name(strange.type)}")
    if any("." in name for name in schema.names) or alike(schema):
        raise _NotExactError("a column has a dot in its name, or a name that differs from another's by case alone")


def _check_reachable(spark: SparkSession, uris: Sequence[str]) -> None:
    for uri in uris:
        name = uri.rpartition("/")[2]
        if name.startswith(("_", ".")) or not _PATTERN_SIGNS.isdisjoint(uri):
            raise _NotExactError(f"Spark would not take {uri} for the name of a file")
    for scheme in {uri.partition(":")[0] for uri in uris} - {"file"}:
        if not _hadoop_knows(spark, scheme):
            raise _NotExactError(f"Spark's Hadoop has no file system for {scheme}: (fs.{scheme}.impl)")


def _hadoop_knows(spark: SparkSession, scheme: str) -> bool:
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return bool(configuration.get(f"fs.{scheme}.impl"))


def _uri(scan: Scan, split: Split) -> str:
    assert split.path is not None, "a plain split is of one file"
    location = scan.table.full_path(split.path)
    return f"file://{location}" if parse_location(location).protocol == LOCAL else location


def _means_the_same(field: pa.Field) -> bool:
    """Whether Spark and we read the same value out of the same Parquet column."""
    if sql_type(field) is not None:
        return False
    kind = field.type
    if pa.types.is_struct(kind):
        return all(map(_means_the_same, kind))
    if is_list(kind):
        return _means_the_same(kind.value_field)
    if pa.types.is_map(kind):
        return _means_the_same(kind.key_field) and _means_the_same(kind.item_field)
    return kind in _SAME_TYPES or bool(pa.types.is_decimal(kind))
