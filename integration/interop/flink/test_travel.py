"""Java Paimon's time travel in Flink and ours, to every snapshot, tag and time of one table, and every range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

import paimon_sink
from integration.interop.flink.session import Flink, FlinkError
from integration.interop.travel import Seen, by_load, by_scan, by_source, ways_of_load
from paimon_sink.core.errors import OptionError, SnapshotExpiredError, SourceChangedError
from paimon_sink.maintain.expire import Retention, expire
from tests.spark.sessions import Where, session
from tests.support.compaction import compact
from tests.support.lake import Lake, rows

pytestmark = pytest.mark.timeout(1800)

TODAY = ("id", "day", "price")
RENAMED = {"amount": "price"}


@dataclass(frozen=True)
class Both:
    """One table in our hands and in Flink's."""

    lake: Lake
    flink: Flink

    def sql(self, *statements: str) -> list[list[list[Any]]]:
        """Statements of Flink's. ``{t}`` is the table."""
        return self.flink.run(*(statement.replace("{t}", self.lake.table) for statement in statements))

    def java(self, *asked: Mapping[str, str | int]) -> list[Seen]:
        """What Flink reads for each set of options. Its columns are always those of today."""
        (described,) = self.sql("DESCRIBE {t}")
        columns = tuple(str(row[0]) for row in described)
        found = self.sql(*(f"SELECT * FROM {{t}} {_hint(options)}" for options in asked))
        return [Seen(columns, Counter(map(tuple, answer))) for answer in found]

    def ours(self, **asked: str | int) -> Seen:
        """In the words of Flink: the names of today, decimals as text, columns that came later as nulls."""
        return self.as_flink(by_scan(self.options, **{key: str(value) for key, value in asked.items()}))

    @property
    def options(self) -> dict[str, str]:
        return {**self.lake.options, "table": self.lake.table}

    def as_flink(self, found: Seen) -> Seen:
        table_columns = tuple(self.lake.open().schema.names)
        named = tuple(name if name in table_columns else RENAMED[name] for name in found.columns)
        plain: Counter[tuple[Any, ...]] = Counter()
        for row, number in found.rows.items():
            plain[tuple(str(cell) if isinstance(cell, Decimal) else cell for cell in row)] += number
        return Seen(named, plain).with_nulls_for(table_columns)

    def ids(self) -> list[int]:
        return self.lake.snapshot_ids()


def _hint(options: Mapping[str, str | int]) -> str:
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"/*+ OPTIONS({given}) */" if given else ""


# ---------------------------------------------------------------- a history by both hands


def with_third(name: str, *values: tuple[int, str | None, str | None]) -> tuple[StructType, pa.RecordBatch]:
    spark = StructType(
        [StructField("id", LongType()), StructField("day", StringType()), StructField(name, DecimalType(10, 2))]
    )
    arrow = pa.schema([("id", pa.int64()), ("day", pa.string()), (name, pa.decimal128(10, 2))])
    listed = [{"id": i, "day": day, name: None if third is None else Decimal(third)} for i, day, third in values]
    return spark, pa.RecordBatch.from_pylist(listed, schema=arrow)


def append_with_third(lake: Lake, batch_id: int, name: str, *values: tuple[int, str | None, str | None]) -> None:
    schema, batch = with_third(name, *values)
    lake.stream_writer(schema).commit([lake.write(batch, schema=schema)], batch_id)


def we_append_a_batch_with_equal_rows(both: Both) -> None:
    daily = both.lake.with_options(partitionBy="day")
    daily.append(0, rows(1, 2, 2), rows(3, day="tuesday"), rows(4, day=None))


def java_appends(both: Both) -> None:
    both.sql("INSERT INTO {t} VALUES (2, 'monday'), (10, 'monday'), (10, 'tuesday')")


def we_append_again(both: Both) -> None:
    both.lake.append(1, rows(5, 5), rows(6, day="tuesday"))


def both_tag(both: Both) -> None:
    assert both.lake.open().refs.tag("ours", 2)
    both.sql("CALL sys.create_tag(`table` => '{t}', tag => 'of java', snapshot_id => 1)")


def we_compact(both: Both) -> None:
    assert compact(both.lake).snapshot_id is not None


def java_appends_once_more(both: Both) -> None:
    both.sql("INSERT INTO {t} VALUES (12, 'tuesday')")


def we_overwrite_a_partition(both: Both) -> None:
    dynamic = both.lake.with_options(partitionOverwriteMode="dynamic")
    writer = dynamic.batch_writer(overwrite=True)
    writer.commit([writer.write(iter([rows(7, 8, day="tuesday")]))])


def java_adds_a_column(both: Both) -> None:
    both.sql("ALTER TABLE {t} ADD amount DECIMAL(10, 2)")


def java_appends_with_the_column(both: Both) -> None:
    both.sql(
        "INSERT INTO {t} VALUES (13, 'monday', 1.50), (13, 'monday', 1.50), (14, CAST(NULL AS STRING), -2.00), "
        "(15, 'monday', CAST(NULL AS DECIMAL(10, 2)))"
    )


def we_append_with_the_column(both: Both) -> None:
    append_with_third(both.lake, 2, "amount", (16, "monday", "99999999.99"), (17, "friday", None))


def java_compacts(both: Both) -> None:
    before = both.ids()
    both.sql("CALL sys.compact(`table` => '{t}', options => 'compaction.min.file-num=2')")
    assert both.ids() != before


def java_rolls_back_what_it_appended(both: Both) -> None:
    kept = both.ids()[-1]
    both.sql(
        "INSERT INTO {t} VALUES (666, 'monday', 6.66)",
        f"CALL sys.rollback_to(`table` => '{{t}}', snapshot_id => {kept})",
    )


def we_append_after_the_rollback(both: Both) -> None:
    append_with_third(both.lake, 3, "amount", (18, "friday", "0.00"))


def java_overwrites_a_partition(both: Both) -> None:
    both.sql("INSERT OVERWRITE {t} PARTITION (`day` = 'friday') SELECT CAST(19 AS BIGINT), CAST(1 AS DECIMAL(10, 2))")


def java_tags_the_newest(both: Both) -> None:
    both.sql("CALL sys.create_tag(`table` => '{t}', tag => 'newest')")


def java_renames_a_column(both: Both) -> None:
    both.sql("ALTER TABLE {t} RENAME amount TO price")


def we_append_under_the_new_name(both: Both) -> None:
    append_with_third(both.lake, 4, "price", (20, "odd", "7.00"))


def we_overwrite_everything(both: Both) -> None:
    schema, batch = with_third("price", (21, "odd", "1.00"), (21, "odd", "1.00"), (22, "even", None))
    writer = both.lake.batch_writer(schema, overwrite=True)
    writer.commit([writer.write(iter([batch]))])


def java_appends_at_last(both: Both) -> None:
    both.sql("INSERT INTO {t} VALUES (23, 'odd', 2.00)")


STEPS: list[Callable[[Both], None]] = [
    we_append_a_batch_with_equal_rows,
    java_appends,
    we_append_again,
    both_tag,
    we_compact,
    java_appends_once_more,
    we_overwrite_a_partition,
    java_adds_a_column,
    java_appends_with_the_column,
    we_append_with_the_column,
    java_compacts,
    java_rolls_back_what_it_appended,
    we_append_after_the_rollback,
    java_overwrites_a_partition,
    java_tags_the_newest,
    java_renames_a_column,
    we_append_under_the_new_name,
    we_overwrite_everything,
    java_appends_at_last,
]
KINDS = [
    *("APPEND", "APPEND", "APPEND", "COMPACT", "APPEND", "OVERWRITE", "APPEND", "APPEND", "COMPACT", "APPEND"),
    *("OVERWRITE", "APPEND", "OVERWRITE", "APPEND"),
]


@pytest.fixture(scope="module")
def both(process: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """After each step both see the same newest rows."""
    lake = Lake({"warehouse": str(tmp_path_factory.mktemp("travel") / "warehouse")})
    found = Both(lake, Flink(process, lake.options["warehouse"]))
    for step in STEPS:
        step(found)
        (java,) = found.java({})
        assert found.ours() == java, step.__name__
    return found


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(Where.LOCAL, tmp_path_factory.mktemp("spark"), {}) as started:
        paimon_sink.register(started)
        yield started


def test_the_history_is_what_it_is_meant_to_be(both: Both) -> None:
    kinds = [(snapshot["id"], snapshot["commitKind"]) for snapshot in both.lake.snapshots()]

    assert kinds == list(enumerate(KINDS, start=1))
    assert both.java({})[0].columns == TODAY


# ---------------------------------------------------------------- one snapshot


def test_every_snapshot_has_the_same_rows(both: Both) -> None:
    ids = both.ids()

    java = both.java(*({"scan.snapshot-id": number} for number in ids))

    assert [both.ours(versionAsOf=number) for number in ids] == java
    assert len({frozenset(found.rows.items()) for found in java}) > len(ids) / 2


def test_every_tag_has_the_same_rows(both: Both) -> None:
    tags = both.lake.open().refs.tag_names()

    java = both.java(*({"scan.tag-name": tag} for tag in tags))

    assert [both.ours(versionAsOf=tag) for tag in tags] == java
    assert sorted(tags) == ["newest", "of java", "ours"]


def test_spark_and_load_read_the_same_rows_as_java(both: Both, spark: SparkSession) -> None:
    versions: list[str | int] = [*both.ids(), *both.lake.open().refs.tag_names()]
    java = both.java(
        *({"scan.snapshot-id" if isinstance(version, int) else "scan.tag-name": version} for version in versions)
    )

    with ways_of_load() as ways:
        loaded = [both.as_flink(by_load(spark, both.options, versionAsOf=str(version))) for version in versions]
    sourced = [both.as_flink(by_source(spark, both.options, versionAsOf=str(version))) for version in versions]

    assert loaded == java
    assert sourced == java
    assert ways["parquet"] > len(versions) / 2


def test_every_time_is_the_same_snapshot(both: Both) -> None:
    """At the moment of a commit, a millisecond before and after it."""
    times = [int(snapshot["timeMillis"]) for snapshot in both.lake.snapshots()]
    first, *later = sorted({ms + shift for ms in times for shift in (-1, 0, 1)})

    with pytest.raises(FlinkError, match="no snapshot earlier than or equal"):
        both.java({"scan.timestamp-millis": first})
    with pytest.raises(OptionError, match="it had no snapshot then"):
        both.ours(timestampAsOf=first)
    java = both.java(*({"scan.timestamp-millis": moment} for moment in later))

    assert [both.ours(timestampAsOf=moment) for moment in later] == java
    assert (len(times), len(later)) == (14, 41)


# ---------------------------------------------------------------- ranges


def test_every_range_has_the_same_rows(both: Both) -> None:
    """Java's begins after its first snapshot, and passes over all that is no append, as we do when we are told to."""
    ids = [0, *both.ids()]
    pairs = list(combinations(ids, 2))
    java = both.java(*({"incremental-between": f"{before},{last}"} for before, last in pairs))

    plain = 0
    for (before, last), found in zip(pairs, java, strict=True):
        asked: dict[str, str | int] = {"startingVersion": before + 1, "endingVersion": last}
        if "OVERWRITE" in KINDS[before:last]:
            with pytest.raises(SourceChangedError):
                both.ours(**asked)
            asked["skipChangeCommits"] = "true"
        else:
            plain += 1
        assert both.ours(**asked) == found, (before, last)

    assert (plain, len(pairs)) == (27, 105)


# ---------------------------------------------------------------- expired


@pytest.mark.parametrize("who", ["java", "we"])
def test_both_refuse_what_has_expired(lake: Lake, flink: Flink, who: str) -> None:
    both = Both(lake, flink)
    lake.append(0, rows(0))
    for number in range(1, 4):
        both.sql(f"INSERT INTO {{t}} VALUES ({100 + number}, 'monday')")
        lake.append(number, rows(number))
    both.sql("CALL sys.create_tag(`table` => '{t}', tag => 'kept', snapshot_id => 2)")

    if who == "java":
        both.sql("CALL sys.expire_snapshots(`table` => '{t}', retain_max => 3, retain_min => 3)")
    else:
        expire(lake.open(), Retention(keep_last=3))

    assert both.ids() == [5, 6, 7]
    for number in range(1, 5):
        with pytest.raises(FlinkError, match="out of available snapshotId range"):
            both.java({"scan.snapshot-id": number})
        with pytest.raises(SnapshotExpiredError):
            both.ours(startingVersion=number)
        with pytest.raises(SnapshotExpiredError):
            both.ours(versionAsOf=number)
    assert [both.ours(versionAsOf=number) for number in (5, 6, 7)] == both.java(
        *({"scan.snapshot-id": number} for number in (5, 6, 7))
    )
    assert [both.ours(versionAsOf="kept")] == both.java({"scan.tag-name": "kept"})
