"""What Iceberg tables can do with this package. Importable where the format's library is not installed."""

from __future__ import annotations

from paimon_sink.core.capabilities import NOT_APPLICABLE, YES, Capabilities, no, yes
from paimon_sink.formats.registration import RegisteredFormat

__all__ = ["CAPABILITIES", "FORMAT"]

CAPABILITIES = Capabilities(
    title="Iceberg",
    streams=YES,
    overwrites=yes("yes; dynamic overwrite not while files of an earlier partitioning are there (1)"),
    repeatable_jobs=YES,
    sql=YES,
    filtered_reads=yes("by partition, also below `bucket`, `truncate`, `years` … `hours`, and by statistics"),
    followed=yes("yes; its consumer holds back ours, other engines keep the snapshot it has come to"),
    spark_pushdown=no("no (2)"),
    statistics=YES,
    partition_transforms=yes("identity, `bucket`, `truncate`, `years`, `months`, `days`, `hours`"),
    branches=yes("yes, each with its own line of the ledger; created, compared and published"),
    lasting_ledger=YES,
    catalogs=yes("SQL (SQLite embedded, PostgreSQL), REST, and what pyiceberg's `load_catalog` knows"),
    tables_by_path=no("no: an Iceberg table lives in a catalog"),
    stores=yes("local disk, S3 (`s3://`, `s3a://`), GCS (`gs://`), Azure (`abfss://`, `abfs://`, `az://`)"),
    alike_columns=yes("in a new table only with `spark.sql.caseSensitive=true` (6)"),
    read_schemas=yes(
        "some columns in any order, some fields of a struct, wider types; anything else is refused by name (7)"
    ),
    verify=YES,
    erased=YES,
    rollback=yes("yes; tags and branches above stay"),
    expiry=yes("yes; not with `gc.enabled=false`"),
    clean=yes("yes; not with `gc.enabled=false`"),
    deletes=yes("yes; files of an earlier partitioning that may hold such rows, and delete files, are refused"),
    replace_where=yes("yes; the same is refused"),
    compaction=yes("yes; files of an earlier partitioning are left alone; tables with delete files are refused"),
    watermarks=yes("yes, as the property `pwc.watermark`"),
    mark_done=YES,
    done_partitions=no("no: its catalogs keep no list of partitions"),
    tags=YES,
    table_kinds=yes("format version 2"),
    keyed_tables=NOT_APPLICABLE,
    other_versions=no("refused by name (4)"),
    data_elsewhere=no("refused by name (5)"),
    position_deletes=YES,
    equality_deletes=no("refused by name: pyiceberg has no reader for them"),
    quarantine=YES,
    routing=YES,
    merge_schema=YES,
    reserved_snapshot_properties=dict.fromkeys(("operation", "self"), "Iceberg and pyiceberg keep for themselves"),
)
FORMAT = RegisteredFormat(
    capabilities=CAPABILITIES,
    implementation="paimon_sink.formats.iceberg.format:IcebergFormat",
    install="paimon-sink[iceberg]",
)
