"""The cures of docs/operations.md that no other test takes, as the page says them."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from paimon_sink.core.errors import LedgerLostError
from paimon_sink.maintain.verify import verify
from tests.support.batches import path_in
from tests.support.engines import OtherEngine
from tests.support.lake import Lake, rows

HOUR_MS = 3_600_000
TIMED = StructType([StructField("id", LongType()), StructField("at", LongType())])


def timed(lake: Lake, batch_id: int, at_ms: int) -> int | None:
    """A batch of one row with this event time; the watermark afterwards."""
    row = pa.RecordBatch.from_pydict({"id": [batch_id], "at": [at_ms]})
    lake.stream_writer(TIMED).commit([lake.write(row, schema=TIMED)], batch_id)
    return lake.history()[-1].watermark_ms


@pytest.mark.needs("a ledger that expires")
@pytest.mark.parametrize("is_in", [True, False], ids=["its rows are in", "its rows are not in"])
def test_a_lost_ledger_is_mended_by_looking_for_the_rows_and_saying_so_once(
    lake: Lake, engine: OtherEngine, is_in: bool
) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    for number in (70, 71):
        engine.append(rows(number))
    engine.expire(2)
    engine.forget_claims()
    batch = 1 if is_in else 2
    with pytest.raises(LedgerLostError, match="onLedgerLost"):
        lake.append(batch, rows(batch))

    # Look whether its rows are in, and say so for one start.
    assert (batch in lake.ids()) is is_in
    lake.with_options(onLedgerLost="skip" if is_in else "commit").append(batch, rows(batch))

    lake.append(batch + 1, rows(batch + 1))
    lake.append(batch + 1, rows(batch + 1))
    assert lake.ids() == [*range(batch + 2), 70, 71]


@pytest.mark.needs("rollback")
def test_a_watermark_that_ran_ahead_is_taken_back_with_the_batch_that_moved_it(lake: Lake, engine: OtherEngine) -> None:
    now_ms = int(time.time() * 1000)
    wrong_ms = now_ms + 12 * HOUR_MS
    told = lake.with_options(watermarkColumn="at")
    assert timed(told, 0, now_ms) == now_ms
    assert timed(told, 1, wrong_ms) == wrong_ms
    assert timed(told, 2, now_ms + 1) == wrong_ms, "it never goes back by itself"

    engine.roll_back(lake.snapshot_ids()[0])
    careful = told.with_options(watermarkMaxAhead="1h")

    # The checkpoint was set back to the same batch.
    assert timed(careful, 1, wrong_ms) == now_ms
    assert timed(careful, 2, now_ms + 1) == now_ms + 1
    assert lake.ids() == [0, 1, 2]


@pytest.mark.damages
@pytest.mark.needs("rollback")
def test_a_damaged_data_file_is_found_and_rolled_back_and_its_batches_come_again(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.append(0, rows(0))
    damaged = lake.append(1, rows(1))
    lake.append(2, rows(2))
    (path,) = lake.files_of([damaged])
    store = lake.open().store
    good = store.read(path_in(lake, path))
    store.write(path_in(lake, path), b"no Parquet")
    found = verify(lake.open()).problems
    assert {problem.kind.value for problem in found} == {"damaged file"}
    assert all(path in problem.where for problem in found)

    # Who has the file puts it back, and that is all.
    store.write(path_in(lake, path), good)
    assert verify(lake.open()).problems == ()

    # Who has not sets table and checkpoint back.
    store.write(path_in(lake, path), b"no Parquet")
    engine.roll_back(lake.snapshot_ids()[0])
    lake.append(1, rows(1))
    lake.append(2, rows(2))
    lake.append(2, rows(2))
    assert lake.ids() == engine.read_ids() == [0, 1, 2]
    assert lake.batch_ids() == [0, 1, 2]
    # Where a rolled back snapshot stands until it expires, the file is still named, and nothing else is wrong.
    assert {problem.where for problem in verify(lake.open()).problems} <= {path}
