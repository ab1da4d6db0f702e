"""What tables in memory can do."""

from __future__ import annotations

from paimon_sink.core.capabilities import YES, Capabilities, no, yes
from paimon_sink.formats.registration import RegisteredFormat

CAPABILITIES = Capabilities(
    title="Memory",
    streams=YES,
    overwrites=YES,
    repeatable_jobs=YES,
    sql=no("no: Spark runs SQL in processes of its own"),
    filtered_reads=yes("by partition"),
    followed=YES,
    partition_transforms=no("no: tables in memory are partitioned by columns"),
    lasting_ledger=yes("by claims, for new batches"),
    catalogs=no("none"),
    tables_by_path=YES,
    stores=yes("the process that opened the lake"),
    alike_columns=yes("in a new table only with `spark.sql.caseSensitive=true` (6)"),
    verify=YES,
    erased=YES,
    rollback=yes("yes; tags above go too"),
    expiry=YES,
    clean=YES,
    deletes=yes("in process"),
    replace_where=YES,
    compaction=yes("in process and after commits"),
    watermarks=YES,
    mark_done=YES,
    tags=YES,
    table_kinds=yes("append tables"),
    quarantine=YES,
    routing=YES,
    merge_schema=YES,
)
FORMAT = RegisteredFormat(
    capabilities=CAPABILITIES,
    implementation="paimon_sink.formats.memory.format:MemoryFormat",
    install="paimon-sink",
)
