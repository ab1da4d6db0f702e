"""When partitions are done: Paimon's rule, to the millisecond."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from paimon_sink.core.errors import PwcError
from paimon_sink.core.events import WrittenPartition
from paimon_sink.listen.done_trigger import MOST_SKIPPED, Pending, Waiting, decode, encode
from paimon_sink.listen.local_time import epoch_ms
from paimon_sink.listen.partition_time import PartitionTime

DAY, IDLE = 86_400_000, 900_000


def at(day: str) -> int:
    return epoch_ms(datetime.fromisoformat(day), UTC)


def part(day: str | None) -> WrittenPartition:
    return WrittenPartition(f"dt={day or '__DEFAULT_PARTITION__'}", {"dt": day})


def split(pending: Pending, now_ms: int | None) -> tuple[Pending, list[str], list[str]]:
    def start(partition: WrittenPartition) -> int | None:
        found = PartitionTime().of(partition.values)
        return None if found is None else epoch_ms(found, UTC)

    after, done, skipped = pending.split(now_ms, start_ms=start, interval_ms=DAY, idle_ms=IDLE)
    return after, [found.values["dt"] or "" for found in done], skipped


@pytest.mark.parametrize(
    ("written_ms", "now_ms", "is_done"),
    [
        pytest.param(at("2024-02-01"), at("2024-02-03"), False, id="its day is over, the idle time is not"),
        pytest.param(at("2024-02-01"), at("2024-02-03") + IDLE, False, id="the very end of the idle time"),
        pytest.param(at("2024-02-01"), at("2024-02-03") + IDLE + 1, True, id="one millisecond later"),
        pytest.param(at("2024-02-03") + IDLE, at("2024-02-03") + IDLE + 1, False, id="written late"),
        pytest.param(at("2024-02-04"), at("2024-02-04") + IDLE, False, id="late, the end of the idle time"),
        pytest.param(at("2024-02-04"), at("2024-02-04") + IDLE + 1, True, id="late, one millisecond later"),
        pytest.param(None, at("2024-02-03") + IDLE, False, id="no watermark at the write, its end"),
        pytest.param(None, at("2024-02-03") + IDLE + 1, True, id="no watermark at the write, one millisecond later"),
        pytest.param(at("2024-02-01"), None, False, id="no watermark now"),
        pytest.param(at("2024-02-05"), at("2024-02-04"), False, id="a clock that went back"),
    ],
)
def test_a_partition_is_done_when_its_time_is_over_and_nobody_writes(
    written_ms: int | None, now_ms: int | None, is_done: bool
) -> None:
    pending, done, skipped = split(Pending().written([part("2024-02-02")], written_ms), now_ms)
    assert done == (["2024-02-02"] if is_done else [])
    assert list(pending.waiting) == ([] if is_done else ["dt=2024-02-02"])
    assert skipped == []


def test_a_later_write_starts_the_idle_time_anew() -> None:
    pending = Pending().written([part("2024-02-02")], at("2024-02-02"))
    pending = pending.written([part("2024-02-02")], at("2024-02-03") + IDLE)
    assert split(pending, at("2024-02-03") + IDLE + 1)[1] == []
    assert split(pending, at("2024-02-03") + 2 * IDLE + 1)[1] == ["2024-02-02"]


def test_one_that_was_done_is_done_again_after_another_write() -> None:
    pending, done, _ = split(Pending().written([part("2024-02-02")], at("2024-02-02")), at("2024-02-10"))
    assert done == ["2024-02-02"]
    assert split(pending, at("2024-03-10"))[1] == []
    pending, done, _ = split(pending.written([part("2024-02-02")], at("2024-03-10")), at("2024-03-10"))
    assert done == []
    assert split(pending, at("2024-03-11"))[1] == ["2024-02-02"]


def test_one_that_names_no_time_is_left_out_at_once_and_told_once() -> None:
    pending = Pending().written([part("unknown"), part(None), part("2024-02-02")], at("2024-02-02"))
    pending, done, skipped = split(pending, at("2024-02-10"))
    assert done == ["2024-02-02"]
    assert skipped == ["dt=__DEFAULT_PARTITION__", "dt=unknown"]
    assert not pending.waiting
    pending, _, skipped = split(pending.written([part("unknown")], at("2024-02-10")), at("2024-02-11"))
    assert skipped == []
    assert pending.skipped == ("dt=__DEFAULT_PARTITION__", "dt=unknown")


def test_of_many_that_name_no_time_some_are_remembered() -> None:
    pending, _, skipped = split(Pending().written([part(f"x{n}") for n in range(100)], 0), 0)
    assert len(skipped) == len(pending.skipped) == MOST_SKIPPED
    assert split(pending.written([part("y")], 0), 0)[2] == []


# ---------------------------------------------------------------- state


def through_json(pending: Pending) -> Pending:
    return decode(json.loads(json.dumps(encode(pending))))


def test_the_state_is_read_as_it_was() -> None:
    odd = WrittenPartition("data/ts_day=2024-02-02/r=a%2Fb", {"days(ts)": "2024-02-02", "r": "a/b"})
    plain = WrittenPartition("days(ts)=2024-02-03/r=b", {"days(ts)": "2024-02-03", "r": "b"})
    null = WrittenPartition("data/ts_day=2024-02-02/r=null", {"days(ts)": "2024-02-02", "r": None})
    pending = Pending({found.path: Waiting(found, ms) for found, ms in ((odd, 7), (plain, None), (null, -1))}, ("x",))
    assert through_json(pending) == pending
    assert decode(None) == Pending()


def test_ten_thousand_partitions_can_wait() -> None:
    days = [f"{2000 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}" for n in range(10_000)]
    pending = Pending().written([part(day) for day in days], at("2024-02-02"))
    assert len(pending.waiting) == 10_000
    assert len(json.dumps(encode(pending))) < 64 << 10
    assert through_json(pending) == pending


def test_more_than_can_be_kept_is_said() -> None:
    import random

    dice = random.Random(7)
    pending = Pending().written([part(f"{dice.getrandbits(128):x}") for _ in range(5_000)], 0)
    with pytest.raises(PwcError, match="5000 partitions wait to be marked done, more than can be kept"):
        encode(pending)


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        {"pending": [["dt=x"]], "skipped": []},
        {"pending": [["dt=x", "1"]], "skipped": []},
        {"pending": [["dt=x", 1, "a", "b"]], "skipped": []},
        {"packed": "no"},
        {"packed": 7},
    ],
    ids=str,
)
def test_a_state_that_cannot_be_read_is_said(state: object) -> None:
    with pytest.raises(PwcError, match="Cannot read which partitions wait to be marked done"):
        decode(state)
