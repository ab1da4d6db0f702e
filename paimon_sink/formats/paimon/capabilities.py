"""What Paimon tables can do with this package. Importable where the format's library is not installed."""

from __future__ import annotations

from paimon_sink.core.capabilities import NOT_APPLICABLE, YES, Capabilities, no, yes
from paimon_sink.formats.registration import RegisteredFormat

__all__ = ["CAPABILITIES", "FORMAT"]

CAPABILITIES = Capabilities(
    title="Paimon",
    streams=YES,
    overwrites=YES,
    repeatable_jobs=YES,
    sql=YES,
    filtered_reads=yes("by partition and by statistics"),
    followed=yes("yes; its consumer holds back every engine's expiry"),
    spark_pushdown=no("no (2)"),
    statistics=YES,
    partition_transforms=no("no: Paimon partitions by columns"),
    branches=no("no (3)"),
    lasting_ledger=yes("by claims, for new batches"),
    catalogs=yes("filesystem, REST"),
    tables_by_path=YES,
    stores=yes("local disk, S3 (`s3://`, `s3a://`), GCS (`gs://`), Azure (`abfss://`, `abfs://`, `az://`)"),
    alike_columns=yes("in a new table only with `spark.sql.caseSensitive=true` (6)"),
    read_schemas=yes(
        "some columns in any order, some fields of a struct, wider types; anything else is refused by name (7)"
    ),
    verify=YES,
    erased=YES,
    rollback=yes("yes; tags above go too; not where changelogs outlive snapshots"),
    expiry=yes("yes; not where changelogs outlive snapshots"),
    clean=YES,
    compaction=YES,
    deletes=YES,
    replace_where=YES,
    watermarks=yes("yes, in Paimon's own field"),
    mark_done=YES,
    done_partitions=yes("with a REST catalog"),
    tags=YES,
    table_kinds=yes("append tables without buckets"),
    keyed_tables=no("refused by name"),
    other_versions=NOT_APPLICABLE,
    data_elsewhere=NOT_APPLICABLE,
    position_deletes=NOT_APPLICABLE,
    equality_deletes=NOT_APPLICABLE,
    quarantine=YES,
    routing=YES,
    merge_schema=yes("yes; not through a REST catalog (8)"),
    highest_identifier_marks="Paimon's own mark for batch commits",
)
FORMAT = RegisteredFormat(
    capabilities=CAPABILITIES,
    implementation="paimon_sink.formats.paimon.format:PaimonFormat",
    install="paimon-sink[paimon]",
)
