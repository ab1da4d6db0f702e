"""What a writer with a quarantine refuses before the first row, and what it writes where."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.errors import OptionError, SchemaMismatchError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.sink import Sink, TaskSettings

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("why", pa.string())])
EVERYTHING = {
    "quarantine": "sales.bad",
    "quarantine.maxShare": "1",
    "check.positive": "id > 0",
    "errorColumn": "why",
}


@pytest.fixture
def lake() -> Iterator[MemoryLake]:
    with memory_lake() as opened:
        yield opened


def stream(lake: MemoryLake, table: str = "sales.orders", **options: str) -> Sink:
    return Sink.of(lake.options(table, commitUser="loader", **options))


def rows(*found: tuple[int | None, str | None, str | None]) -> pa.RecordBatch:
    ids, days, whys = zip(*found, strict=True)
    return pa.RecordBatch.from_pydict({"id": ids, "day": days, "why": whys}, schema=SCHEMA)


def append(sink: Sink, number: int, batch: pa.RecordBatch, task: TaskSettings | None = None) -> TaskMessage:
    sink.check(batch.schema)
    message = TaskMessage.from_bytes(sink.write(iter([batch]), schema=batch.schema, task=task).to_bytes())
    sink.commit([message], batch_id=number)
    return message


def test_bad_rows_have_all_their_columns_and_say_why_they_are_there(lake: MemoryLake) -> None:
    sink = stream(lake, **EVERYTHING)

    append(sink, 7, rows((1, "monday", None), (-2, "tuesday", None), (3, "friday", "cut off")), TaskSettings("q"))

    assert lake.read("sales.orders").to_pylist() == [{"id": 1, "day": "monday"}]
    found = lake.read("sales.bad").to_pylist()
    assert [(row["id"], row["day"], row["why"]) for row in found] == [(-2, "tuesday", None), (3, "friday", "cut off")]
    assert [(row["_pwc_rule"], row["_pwc_column"]) for row in found] == [
        ("check.positive", "id"),
        ("errorColumn", "why"),
    ]
    known = ["sales.orders", "loader", "q", 7, 1]
    assert [[row[f"_pwc_{name}"] for name in ("table", "user", "query", "batch", "attempt")] for row in found] == [
        known,
        known,
    ]
    assert [row["_pwc_row"] for row in found] == [1, 2]
    assert len({row["_pwc_task"] for row in found}) == 1
    assert all(row["_pwc_at"] is not None and row["_pwc_rest"] is None for row in found)


def test_a_snapshot_counts_bad_rows_by_rule_and_repeats_none_of_their_values(lake: MemoryLake) -> None:
    append(stream(lake, **EVERYTHING), 0, rows((1, "a", None), (-20202, "b", None), (3, "c", "a secret")))

    properties = lake.snapshots("sales.orders")[-1].properties
    said = {key: text for key, text in properties.items() if "quarantine" in key or "sent" in key}
    assert said == {
        "pwc.rows-sent": "3",
        "pwc.quarantine": "sales.bad",
        "pwc.quarantined": "2",
        "pwc.quarantined.check.positive": "1",
        "pwc.quarantined.errorColumn": "1",
    }
    everything = repr([properties, lake.snapshots("sales.bad")[-1].properties])
    assert "20202" not in everything
    assert "secret" not in everything


def test_a_batch_without_bad_rows_is_written_as_it_always_was(lake: MemoryLake) -> None:
    message = append(stream(lake, **EVERYTHING), 0, rows((1, "a", None)))

    assert message.rejected is None
    assert not any("quarantine" in key or "outbox" in key for key in lake.snapshots("sales.orders")[-1].properties)
    ledger = lake.snapshots("sales.orders")[-1].ledger
    assert ledger is not None
    assert [entry.outbox for entry in ledger.entries.values()] == [None]
    assert lake.snapshots("sales.bad") == ()


def test_a_value_that_names_no_partition_makes_its_row_bad(lake: MemoryLake) -> None:
    from paimon_sink.formats.registry import open_table

    sink = stream(lake, partitionBy="day", quarantine="sales.bad", **{"quarantine.maxShare": "1"})
    sink.check(SCHEMA)
    files = type(open_table(sink.options.table).files)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "new_path", _refusing(files.new_path))
        append(sink, 0, rows((1, "monday", None), (2, "nameless", None), (3, "monday", None)))

    assert sorted(lake.read("sales.orders")["id"].to_pylist()) == [1, 3]
    assert [(row["id"], row["_pwc_rule"]) for row in lake.read("sales.bad").to_pylist()] == [(2, "partition")]


def _refusing(new_path: Any) -> Any:
    def refusing(files: Any, partition: tuple[Any, ...], *, attempt: str, number: int) -> Any:
        if partition == ("nameless",):
            raise SchemaMismatchError("no directory can be named so")
        return new_path(files, partition, attempt=attempt, number=number)

    return refusing


def test_a_task_that_fails_leaves_no_file_of_bad_rows(lake: MemoryLake) -> None:
    sink = stream(lake, **EVERYTHING)
    sink.check(SCHEMA)

    def breaking_off() -> Iterator[pa.RecordBatch]:
        yield rows((-1, "a", None))
        raise RuntimeError("upstream")

    with pytest.raises(RuntimeError, match="upstream"):
        sink.write(breaking_off(), schema=SCHEMA)

    location = f"{lake.warehouse}/sales.db/orders"
    assert list(lake.table("sales.orders").store.walk_files(location)) == []


def test_a_task_keeps_no_more_bad_rows_than_a_batch_may_have(lake: MemoryLake) -> None:
    sink = stream(lake, **{**EVERYTHING, "quarantine.maxRows": "2"})
    sink.check(SCHEMA)

    message = sink.write(iter([rows(*[(-1, "a", None)] * 2), rows(*[(-2, "b", None)] * 3)]), schema=SCHEMA)

    assert message.rejected is not None
    assert (message.rejected.count, message.rejected.file) == (5, None)
    with pytest.raises(SchemaMismatchError, match=r"5 of its 5 rows are bad \(check\.positive: 5\)"):
        sink.commit([message], batch_id=0)


def test_nothing_of_a_bad_row_is_logged(lake: MemoryLake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        append(stream(lake, **EVERYTHING), 0, rows((-30303, "b", None), (3, "c", "a secret")))

    assert "30303" not in caplog.text
    assert "secret" not in caplog.text


# ---------------------------------------------------------------- refused before the first row


def test_all_that_is_wrong_is_told_together(lake: MemoryLake) -> None:
    append(stream(lake, "sales.plain"), 0, rows((1, "a", None)))
    sink = stream(lake, quarantine="sales.plain", **{"check.a": "idd > 0", "check.b": "day > 5"})

    with pytest.raises(OptionError) as refused:
        sink.check(SCHEMA)

    told = str(refused.value)
    assert "3 problems" in told
    assert "check.a names a column 'idd'" in told
    assert "check.b compares day" in told
    assert "sales.plain is a table of another shape" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"errorColumn": "whyy"}, r"errorColumn is 'whyy'.*did you mean why\?"),
        ({"quarantine": "sales.orders"}, "quarantine is the table itself"),
        ({"quarantine": "/elsewhere/bad"}, "named as database.table"),
        ({"quarantine.maxRows": "5"}, "does nothing without quarantine"),
        ({"quarantine": "sales.bad", "quarantine.maxShare": "1.5"}, "share from 0 to 1"),
        ({"check.a": "id >"}, "check.a cannot be parsed"),
        ({"check.": "id > 0"}, "needs a name"),
        ({"quarantine": "bad"}, "database.table"),
        ({"quarantine": "sales.bad", "createTable": "false"}, "createTable=false forbids"),
    ],
)
def test_a_mistake_is_refused_with_its_cure(lake: MemoryLake, options: dict[str, str], told: str) -> None:
    append(stream(lake), 0, rows((1, "a", None)))

    with pytest.raises(OptionError, match=told):
        stream(lake, **options).check(SCHEMA)


def test_a_branch_has_no_quarantine() -> None:
    options = {"warehouse": "/lake", "table": "sales.orders", "tableFormat": "iceberg", "branch": "audit"}

    with pytest.raises(OptionError, match="quarantine is for the branch main alone"):
        Sink.of({**options, "quarantine": "sales.bad"})


def test_a_batch_that_is_aborted_leaves_no_file_of_bad_rows(lake: MemoryLake) -> None:
    sink = stream(lake, **EVERYTHING)
    sink.check(SCHEMA)
    message = sink.write(iter([rows((1, "a", None), (-1, "a", None))]), schema=SCHEMA)

    sink.abort([message, None], batch_id=0)

    assert list(lake.table("sales.orders").store.walk_files(f"{lake.warehouse}/sales.db/orders")) == []


def test_rows_with_columns_of_a_quarantines_own_names_are_refused(lake: MemoryLake) -> None:
    schema = pa.schema([("id", pa.int64()), ("_PWC_row", pa.int64())])

    with pytest.raises(OptionError, match="_PWC_row"):
        stream(lake, quarantine="sales.bad").check(schema)


@pytest.mark.parametrize("option", ["quarantine", "check.positive", "errorColumn"])
def test_an_overwrite_is_not_judged(lake: MemoryLake, option: str) -> None:
    options = lake.options("sales.orders", **{option: EVERYTHING[option]})

    with pytest.raises(OptionError, match=rf"{option}: only appends are judged"):
        Sink.of(options, overwrite=True, is_stream=False).check(SCHEMA)


def test_options_of_bad_rows_pass_on_a_read() -> None:
    from paimon_sink.core.options import Purpose
    from paimon_sink.formats.registry import parse_options

    options = {"warehouse": "/lake", "table": "sales.orders", **EVERYTHING}

    assert parse_options(options, purpose=Purpose.READ).quarantine.table == "sales.bad"


def test_an_error_column_is_found_in_another_case_where_the_session_ignores_case(lake: MemoryLake) -> None:
    append(stream(lake, errorColumn="WHY"), 0, rows((1, "a", None)))

    assert lake.read("sales.orders").schema.names == ["id", "day"]


def test_a_quarantine_that_is_ahead_of_its_table_is_refused_while_the_write_is_planned(lake: MemoryLake) -> None:
    sink = stream(lake, **EVERYTHING)
    append(sink, 0, rows((1, "a", None)))
    append(sink, 1, rows((2, "a", None), (-2, "a", None)))
    lake.roll_back("sales.orders", 1)

    with pytest.raises(OptionError, match="rolled back"):
        sink.check(SCHEMA)

    stream(lake, takeover="true", **EVERYTHING).check(SCHEMA)
