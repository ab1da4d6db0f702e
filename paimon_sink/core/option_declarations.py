"""Every option, declared once. Parsing, the options page and ``pwc options`` all come from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Literal, TypeVar

from paimon_sink.core import option_values as values
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.properties import PREFIX

__all__ = [
    "AVAILABLE_FORMATS",
    "FORMATS_WITH_BRANCHES",
    "FORMATS_WITH_TRANSFORMS",
    "GROUPS",
    "KNOWN_FORMATS",
    "MAIN_BRANCH",
    "OPTIONS",
    "SPARK_KEYS",
    "SPARK_PREFIXES",
    "Group",
    "Option",
    "Purpose",
]

T = TypeVar("T")

OnRewind = Literal["fail", "skip"]
OnLedgerLost = Literal["fail", "commit", "skip"]
OverwriteMode = Literal["static", "dynamic"]

KNOWN_FORMATS = ("paimon", "iceberg")
AVAILABLE_FORMATS = ("paimon", "iceberg")
FORMATS_WITH_TRANSFORMS = ("iceberg",)
FORMATS_WITH_BRANCHES = ("iceberg",)
MAIN_BRANCH = "main"

SPARK_KEYS = ("checkpointLocation", "queryName", "outputMode")
"""Spark's own options. They reach us together with ours and are none of our business."""
SPARK_PREFIXES = ("spark.",)


class Purpose(Enum):
    """What the options are parsed for. The value is what the options page says."""

    STREAM_WRITE = "stream"
    BATCH_WRITE = "batch"
    READ = "read"

    @property
    def in_words(self) -> str:
        return {"stream": "streams", "batch": "batch writes", "read": "reads"}[self.value]


_EVERYWHERE = frozenset(Purpose)
_WRITES = frozenset({Purpose.STREAM_WRITE, Purpose.BATCH_WRITE})
_STREAMS = frozenset({Purpose.STREAM_WRITE})
_BATCHES = frozenset({Purpose.BATCH_WRITE})

_CHOOSES_WHAT_IS_READ = (
    "it does not choose what an overwrite replaces. Leave it out, and write through a view that was made without it; "
    "partitionOverwriteMode=dynamic replaces only the partitions written."
)


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option. ``default`` is written as a user would; ``default_note`` describes one that is no fixed value."""

    key: str
    parse: Callable[[str], T]
    doc: str
    example: str
    purposes: frozenset[Purpose]
    default: str | None = None
    default_note: str | None = None
    secret: bool = False
    instead: str | None = None
    """What to do where it cannot be heeded. None: leave it out."""

    @property
    def default_value(self) -> T:
        assert self.default is not None, f"{self.key} has no default"
        return self.parse(self.default)


@dataclass(frozen=True)
class Group:
    """A family of options under one prefix, handed on without the prefix."""

    prefix: str
    doc: str
    example: str
    purposes: frozenset[Purpose]
    reserved: str | None = None
    """Names under the prefix that begin like this are ours."""
    instead: str | None = None
    """As for an option."""

    @property
    def key(self) -> str:
        return f"{self.prefix}*"


# ---------------------------------------------------------------- where the table is

WAREHOUSE = Option(
    "warehouse",
    values.location,
    "Where tables live. Goes together with `table`. `~` is the home directory of whoever runs the driver; a relative "
    "path is taken in local mode alone.",
    "s3://lake/warehouse",
    _EVERYWHERE,
)
TABLE = Option(
    "table",
    parse_table_name,
    "The table, as `database.table`. Back-quote a name that contains a dot.",
    "sales.orders",
    _EVERYWHERE,
)
PATH = Option(
    "path",
    values.location,
    "Instead of `warehouse` and `table`: the table's own location, as in `.start(path)` and `.save(path)`.",
    "s3://lake/warehouse/sales.db/orders",
    _EVERYWHERE,
)
TABLE_FORMAT = Option(
    "tableFormat",
    values.table_format(known=KNOWN_FORMATS, available=AVAILABLE_FORMATS),
    "The table format: `paimon`, or `iceberg` with `pip install 'paimon-sink[iceberg]'`.",
    "paimon",
    _EVERYWHERE,
    default="paimon",
)
CATALOG = Group(
    "catalog.",
    "Handed to the format's own catalog, under its own names; one it does not know is refused. None: a filesystem "
    "catalog for Paimon, a SQLite file in a local warehouse for Iceberg.",
    "catalog.type=rest",
    _EVERYWHERE,
)
BRANCH = Option(
    "branch",
    values.branch,
    "The branch to write to or read from. Only for Iceberg; a branch that is missing grows out of `main`.",
    "audit",
    _EVERYWHERE,
    default=MAIN_BRANCH,
)

# ---------------------------------------------------------------- storage access

_AWS = "AWS environment"
S3_ENDPOINT = Option(
    "s3.endpoint",
    values.location,
    "Address of the S3 service.",
    "http://127.0.0.1:8333",
    _EVERYWHERE,
    default_note=_AWS,
)
S3_ACCESS_KEY_ID = Option(
    "s3.access-key-id",
    values.plain_text,
    "Access key.",
    "AKIA...",
    _EVERYWHERE,
    default_note=_AWS,
    secret=True,
)
S3_SECRET_ACCESS_KEY = Option(
    "s3.secret-access-key",
    values.plain_text,
    "Secret of the access key.",
    "...",
    _EVERYWHERE,
    default_note=_AWS,
    secret=True,
)
S3_SESSION_TOKEN = Option(
    "s3.session-token",
    values.plain_text,
    "Token of a temporary login.",
    "...",
    _EVERYWHERE,
    default_note=_AWS,
    secret=True,
)
S3_REGION = Option(
    "s3.region",
    values.plain_text,
    "Region of the bucket.",
    "eu-central-1",
    _EVERYWHERE,
    default_note=_AWS,
)
STORAGE = (S3_ENDPOINT, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN, S3_REGION)

# ---------------------------------------------------------------- creating the table

CREATE_TABLE = Option(
    "createTable",
    values.boolean,
    "Create the table and its database when they are missing.",
    "false",
    _WRITES,
    default="true",
)
PARTITION_BY = Option(
    "partitionBy",
    values.columns,
    "Columns to partition a new table by, separated by commas, or for Iceberg transforms of them: `years(c)`, "
    "`months(c)`, `days(c)`, `hours(c)`, `bucket(16, c)`, `truncate(4, c)`. Back-quote a name that contains a comma or "
    "parentheses.",
    "dt, region",
    _WRITES,
)
TABLE_PROPERTIES = Group(
    "table.",
    "Properties of a table we create.",
    "table.file.format=parquet",
    _WRITES,
)

# ---------------------------------------------------------------- committing

COMMIT_USER = Option(
    "commitUser",
    values.commit_user,
    "The name this writer is known by.",
    "nightly-orders",
    _WRITES,
    default_note="query id",
)
COMMIT_IDENTIFIER = Option(
    "commitIdentifier",
    values.batch_identifier,
    "Together with `commitUser`: makes a rerun of the same batch job a no-op. Identifiers may come in any order and at "
    "the same time; each is remembered for `ledger.retention`. A stream has Spark's batch id instead.",
    "20260131",
    _BATCHES,
    instead="a stream is identified by Spark's batch id, so leave it out.",
)
ON_REWIND: Option[OnRewind] = Option(
    "onRewind",
    values.choice("fail", "skip"),
    "A batch older than the last one written: `fail`, or `skip` it as already written.",
    "skip",
    _STREAMS,
    default="fail",
    instead="a job's identifiers may come in any order, so leave it out.",
)
ON_LEDGER_LOST: Option[OnLedgerLost] = Option(
    "onLedgerLost",
    values.choice("fail", "commit", "skip"),
    "The history that tells whether a batch is already in has expired: `fail`, `commit` it (it may be in twice), or "
    "`skip` it (it may be missing).",
    "commit",
    _WRITES,
    default="fail",
)
TAKEOVER = Option(
    "takeover",
    values.boolean,
    "Accept a commit user last used by another query.",
    "true",
    _WRITES,
    default="false",
)
LEDGER_RETENTION = Option(
    "ledger.retention",
    values.duration_ms(at_least="1h", at_most="36500d"),
    "How long the identifiers of a batch job are remembered, and how long a commit user may be silent before it leaves "
    "the ledger. At least `1h`.",
    "90d",
    _WRITES,
    default="30d",
)
PARTITION_OVERWRITE_MODE: Option[OverwriteMode] = Option(
    "partitionOverwriteMode",
    values.choice("static", "dynamic"),
    "What an overwrite replaces: `static`, the whole table; `dynamic`, only the partitions written. Without it a batch "
    "write does as Spark's `spark.sql.sources.partitionOverwriteMode` says, and a stream in complete mode is static.",
    "dynamic",
    _WRITES,
    default_note="as Spark's setting",
)
SNAPSHOT_PROPERTIES = Group(
    "snapshotProperty.",
    "Extra properties for each snapshot. Names that begin with `pwc.` are ours.",
    "snapshotProperty.team=sales",
    _WRITES,
    reserved=PREFIX,
)

READ_PARTITION = Group(
    "partition.",
    "Read only the partition with this value of a partition column; the files of the others are not opened. "
    "`__DEFAULT_PARTITION__` stands for null.",
    "partition.day=2026-11-16",
    frozenset({Purpose.READ}),
    instead=_CHOOSES_WHAT_IS_READ,
)

WHERE = Option(
    "where",
    values.condition,
    "Read only the rows that meet these conditions: comparisons (`=`, `<`, `<=`, `>`, `>=`, `IN (…)`, `IS NULL`, "
    "`IS NOT NULL`) of columns with values, joined by `AND`. The rows are those of Spark's own WHERE, or the condition "
    "is refused by name. Files that cannot hold such rows are not opened: in Paimon by "
    "partition, in Iceberg by partition and by statistics.",
    "day >= '2026-11-01' AND amount > 10",
    frozenset({Purpose.READ}),
    instead=_CHOOSES_WHAT_IS_READ,
)

# ---------------------------------------------------------------- data files

TARGET_FILE_SIZE = Option(
    "targetFileSize",
    values.size_bytes(at_least="1kb", at_most="16gb"),
    "Start a new data file at this size, from `1kb` to `16gb`.",
    "256mb",
    _WRITES,
    default="128mb",
)
COMPRESSION = Option(
    "compression",
    values.codec,
    "Parquet codec: `zstd`, `snappy`, `gzip`, `lz4`, `brotli` or `none`.",
    "snappy",
    _WRITES,
    default="zstd",
)

# ---------------------------------------------------------------- looking after the table

EXPIRE_OLDER_THAN = Option(
    "expire.olderThan",
    values.duration_ms(at_least="0s", at_most="36500d"),
    "After each commit, remove snapshots older than this that are not among the newest `expire.keepLast`. What tags, "
    "branches, consumers and the ledger need stays. A failure is logged and never fails the batch.",
    "1d",
    _WRITES,
    default_note="never",
)
EXPIRE_KEEP_LAST = Option(
    "expire.keepLast",
    values.count(at_least=1, at_most=1_000_000),
    "The newest so many snapshots stay, however old they are.",
    "100",
    _WRITES,
    default="10",
)
EXPIRE_LIMIT = Option(
    "expire.limit",
    values.count(at_least=1, at_most=10_000),
    "At most so many snapshots are removed after one commit.",
    "50",
    _WRITES,
    default="20",
)
COMPACT_MIN_FILES = Option(
    "compact.minFiles",
    values.count(at_least=2, at_most=100_000),
    "Leave a partition with fewer small files than this alone. On a stream it also turns compaction on: now and then, "
    "after a commit, the small files of the partitions just written are rewritten once so many gathered. "
    "`paimon_sink.compact` takes 2 where it is not set.",
    "20",
    _STREAMS,
    default_note="off",
)
COMPACT_MAX_BYTES = Option(
    "compact.maxBytes",
    values.size_bytes(at_least="1kb", at_most="16gb"),
    "On a stream: at most this much is rewritten after one commit, in the process that commits.",
    "256mb",
    _STREAMS,
    default="64mb",
)

# ---------------------------------------------------------------- event time

WATERMARK_COLUMN = Option(
    "watermarkColumn",
    values.column,
    "Event time: a timestamp, or a long in milliseconds. The latest of each task, and of those the least, becomes the "
    "snapshot's watermark. Tasks without rows and rows without a time do not count, and it never goes back.",
    "ts",
    _WRITES,
)
WATERMARK_DELAY = Option(
    "watermarkDelay",
    values.duration_ms(at_least="0s", at_most="36500d"),
    "How far the watermark stays behind `watermarkColumn`, for rows that come late.",
    "10m",
    _WRITES,
    default="0s",
)
WATERMARK_MAX_AHEAD = Option(
    "watermarkMaxAhead",
    values.duration_ms(at_least="0s", at_most="36500d"),
    "Event times further ahead of the clock than this are written and do not count for the watermark.",
    "5m",
    _WRITES,
    default="1d",
)
WATERMARK_IDLE = Option(
    "watermarkIdle",
    values.duration_ms(at_least="0s", at_most="36500d"),
    "A batch without any row moves the watermark to this far behind the clock. It then makes a snapshot of its own.",
    "15m",
    _STREAMS,
    default_note="an empty batch does nothing",
)

# ---------------------------------------------------------------- listeners

LISTENERS = Option(
    "listeners",
    values.listeners,
    "Who is told of each batch once it is in, separated by commas: names of entry points in the group "
    "`paimon_sink.listeners`, or `package.module:Class`. A batch write needs `commitUser` and `commitIdentifier` then.",
    "mark-done, metrics",
    _WRITES,
)
LISTENER_SETTINGS = Group(
    "listener.",
    "Settings of a listener, after its name.",
    "listener.metrics.file=/var/log/pwc.jsonl",
    _WRITES,
)

# ---------------------------------------------------------------- promised, not there yet

MERGE_SCHEMA = Option(
    "mergeSchema",
    values.never_true_yet(
        "Add the column to the table first, with ALTER TABLE in another engine or with pypaimon, then write again."
    ),
    "Add new columns and widen types. Not available yet: only `false`.",
    "false",
    _WRITES,
    default="false",
)

DECLARED: tuple[Option[Any] | Group, ...] = (
    WAREHOUSE,
    TABLE,
    PATH,
    TABLE_FORMAT,
    CATALOG,
    BRANCH,
    *STORAGE,
    CREATE_TABLE,
    PARTITION_BY,
    TABLE_PROPERTIES,
    COMMIT_USER,
    COMMIT_IDENTIFIER,
    ON_REWIND,
    ON_LEDGER_LOST,
    TAKEOVER,
    LEDGER_RETENTION,
    PARTITION_OVERWRITE_MODE,
    SNAPSHOT_PROPERTIES,
    READ_PARTITION,
    WHERE,
    TARGET_FILE_SIZE,
    COMPRESSION,
    EXPIRE_OLDER_THAN,
    EXPIRE_KEEP_LAST,
    EXPIRE_LIMIT,
    COMPACT_MIN_FILES,
    COMPACT_MAX_BYTES,
    WATERMARK_COLUMN,
    WATERMARK_DELAY,
    WATERMARK_MAX_AHEAD,
    WATERMARK_IDLE,
    LISTENERS,
    LISTENER_SETTINGS,
    MERGE_SCHEMA,
)
"""In the order people read them."""

OPTIONS: dict[str, Option[Any]] = {entry.key.lower(): entry for entry in DECLARED if isinstance(entry, Option)}
GROUPS: dict[str, Group] = {entry.prefix.lower(): entry for entry in DECLARED if isinstance(entry, Group)}
