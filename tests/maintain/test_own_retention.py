"""What a Paimon table says of its own snapshots holds for our commits, as it does for Java's."""

from __future__ import annotations

import random

import pytest

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.formats.expiry import ExpirySource, TableRetention
from paimon_sink.formats.paimon.retention import table_retention
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind, SnapshotLineage
from paimon_sink.maintain.after_commit import Looks, own_rules
from paimon_sink.maintain.expire import choose
from tests.support.clock import FakeClock
from tests.support.lake import Lake, rows

HOUR_MS = 3_600_000


@pytest.fixture
def paimon(local_lake: Lake) -> Lake:
    return local_lake


def stream(lake: Lake, batches: int, **options: str) -> Lake:
    writer = lake.with_options(**options)
    for batch in range(batches):
        writer.append(batch, rows(batch))
    return writer


# ---------------------------------------------------------------- what the table says


def test_javas_defaults_hold_where_the_table_says_nothing() -> None:
    assert table_retention({}, table="t") == TableRetention(keep_ms=HOUR_MS, keep_least=10, keep_most=None, limit=50)


def test_what_the_table_says_holds() -> None:
    said = {
        "snapshot.time-retained": "2 d",
        "snapshot.num-retained.min": "3",
        "snapshot.num-retained.max": "7",
        "snapshot.expire.limit": "5",
    }

    found = table_retention(said, table="t")

    assert found == TableRetention(keep_ms=48 * HOUR_MS, keep_least=3, keep_most=7, limit=5)


@pytest.mark.parametrize(
    "said", [{"write-only": "true"}, {"write-only": "TRUE"}, {"changelog.num-retained.max": "5"}], ids=str
)
def test_who_only_writes_expires_nothing(said: dict[str, str]) -> None:
    assert table_retention(said, table="t") is None


@pytest.mark.parametrize(
    "said",
    [
        {"snapshot.time-retained": "soon"},
        {"snapshot.num-retained.min": "0"},
        {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"},
        {"snapshot.expire.limit": "0"},
    ],
    ids=str,
)
def test_what_makes_no_sense_removes_nothing(said: dict[str, str]) -> None:
    with pytest.raises(CorruptTableError, match="None was removed"):
        table_retention(said, table="sales.orders")


# ---------------------------------------------------------------- what goes


class Line(ExpirySource):
    """Snapshots 1, 2, … that were committed at these times."""

    goes_in_order = True

    def __init__(self, *times_ms: int, pinned: range = range(0)) -> None:
        self._infos = [info(number, at_ms) for number, at_ms in enumerate(times_ms, start=1)]
        self._pinned = pinned

    def lineages(self) -> list[SnapshotLineage]:
        return [SnapshotLineage(self._infos, lambda: len(self._infos))]

    def pins(self, *, now_ms: int) -> range:
        return self._pinned


def info(snapshot_id: int, at_ms: int) -> SnapshotInfo:
    return SnapshotInfo(
        snapshot_id=snapshot_id,
        kind="append",
        effect=SnapshotKind.APPEND,
        commit_user="u",
        batch_id=snapshot_id,
        query_id=None,
        commit_id=None,
        at_ms=at_ms,
        rows=None,
        rows_added=None,
        properties={},
    )


def javas_choice(times_ms: list[int], own: TableRetention, now_ms: int, *, consumed: int) -> list[int]:
    """As ``ExpireSnapshotsImpl`` has it, since Paimon looks at the time of the snapshot that follows."""
    latest, earliest = len(times_ms), 1
    first = max(latest - (own.keep_most or 2**31 - 1) + 1, earliest)
    end = min(latest - own.keep_least + 1, consumed, earliest + own.limit)
    for number in range(first, end):
        if now_ms - own.keep_ms <= times_ms[number]:
            end = number
            break
    return list(range(earliest, end))


@pytest.mark.parametrize("seed", range(300))
def test_the_same_snapshots_go_as_in_java(seed: int) -> None:
    chance = random.Random(seed)
    times = sorted(chance.choices(range(1000), k=chance.randrange(1, 25)))
    least = chance.randrange(1, 6)
    own = TableRetention(
        keep_ms=chance.choice([0, 10, 300, 5000]),
        keep_least=least,
        keep_most=chance.choice([None, least, least + 3]),
        limit=chance.choice([1, 4, 50]),
    )
    consumed = chance.choice([len(times) + 9, chance.randrange(1, len(times) + 1)])
    source = Line(*times, pinned=range(min(consumed, len(times)), len(times) + 1))

    found = choose(source, own_rules(own), now_ms=1000)

    assert [each.snapshot_id for each in found] == javas_choice(times, own, 1000, consumed=consumed)


# ---------------------------------------------------------------- after a commit


def test_more_than_the_table_keeps_go_after_a_commit(paimon: Lake) -> None:
    stream(paimon, 7, **{"table.snapshot.num-retained.min": "1", "table.snapshot.num-retained.max": "3"})

    assert len(paimon.snapshot_ids()) == 3
    assert paimon.ids() == list(range(7))


def test_what_is_older_than_the_table_keeps_goes_but_for_the_newest(paimon: Lake) -> None:
    stream(paimon, 8, **{"table.snapshot.time-retained": "0 ms", "table.snapshot.num-retained.min": "4"})

    assert len(paimon.snapshot_ids()) == 4


def test_a_fresh_table_keeps_all_by_default(paimon: Lake) -> None:
    stream(paimon, 14)

    assert len(paimon.snapshot_ids()) == 14


@pytest.mark.parametrize(
    "options",
    [{"table.write-only": "true"}, {"expire.olderThan": "never"}, {"expire.olderThan": "1d"}],
    ids=lambda options: next(iter(options)) + "=" + next(iter(options.values())),
)
def test_there_are_ways_to_keep_them(paimon: Lake, options: dict[str, str]) -> None:
    stream(paimon, 6, **{"table.snapshot.num-retained.max": "2", "table.snapshot.num-retained.min": "1"} | options)

    assert len(paimon.snapshot_ids()) == 6


def test_a_batch_is_in_whatever_the_table_says(paimon: Lake, caplog: pytest.LogCaptureFixture) -> None:
    stream(paimon, 2, **{"table.snapshot.time-retained": "soon"})

    assert paimon.ids() == [0, 1]
    assert "Could not expire snapshots" in caplog.text


# ---------------------------------------------------------------- how often one looks


def test_a_table_is_not_looked_at_again_before_something_can_have_grown_old() -> None:
    clock = FakeClock()
    looks, own = Looks(clock), TableRetention(keep_ms=HOUR_MS, keep_least=10, keep_most=None, limit=50)
    assert looks.are_due("t", own)

    looks.note("t", own, removed=3)

    assert not looks.are_due("t", own)
    assert looks.are_due("another", own)
    clock.sleep(HOUR_MS / 20 / 1000)
    assert looks.are_due("t", own)


def test_where_more_could_go_the_next_commit_looks_again() -> None:
    looks, own = Looks(FakeClock()), TableRetention(keep_ms=HOUR_MS, keep_least=10, keep_most=None, limit=50)

    looks.note("t", own, removed=50)

    assert looks.are_due("t", own)


def test_a_table_that_keeps_a_number_is_looked_at_by_every_commit() -> None:
    looks, own = Looks(FakeClock()), TableRetention(keep_ms=HOUR_MS, keep_least=1, keep_most=3, limit=50)

    looks.note("t", own, removed=0)

    assert looks.are_due("t", own)
