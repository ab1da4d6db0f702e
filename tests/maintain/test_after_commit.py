"""After a commit: a little expiry, in the same process, that never costs the batch."""

from __future__ import annotations

import logging
import time
from typing import BinaryIO

import pytest

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.local import LocalStore
from tests.support.clock import FakeClock
from tests.support.lake import Lake, rows


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever expires looks at a clock that is a day ahead, so that every snapshot is old."""

    def ahead() -> FakeClock:
        return FakeClock(time.time_ns() // 1_000_000 + 24 * 3600 * 1000)

    monkeypatch.setattr("paimon_sink.maintain.expire.SystemClock", ahead)


def a_stream(lake: Lake, batches: int, **options: str) -> None:
    writer = lake.with_options(**options)
    for batch in range(batches):
        writer.append(batch, rows(batch))


def test_a_stream_keeps_its_table_short(lake: Lake, tomorrow: None) -> None:
    a_stream(lake, 8, expire__olderThan="1m", expire__keepLast="3")

    assert len(lake.snapshot_ids()) == 3
    assert lake.ids() == list(range(8))


def test_nothing_goes_unless_it_is_asked_for(lake: Lake, tomorrow: None) -> None:
    a_stream(lake, 5)

    assert len(lake.snapshot_ids()) == 5


def test_at_most_the_limit_goes_after_one_commit(lake: Lake, tomorrow: None) -> None:
    a_stream(lake, 8)

    lake.with_options(expire__olderThan="1m", expire__keepLast="1", expire__limit="2").append(8, rows(8))

    assert len(lake.snapshot_ids()) == 7


def test_a_failure_is_a_warning_and_the_batch_is_in(
    local_lake: Lake, tomorrow: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a_stream(local_lake, 3)
    delete = LocalStore.delete

    def refuse(self: LocalStore, path: str) -> None:
        if "/snapshot/" in path or "/manifest/" in path:
            raise StorageError(f"Cannot delete {path}: 403")
        delete(self, path)

    monkeypatch.setattr(LocalStore, "delete", refuse)
    with caplog.at_level(logging.WARNING):
        local_lake.with_options(expire__olderThan="1m", expire__keepLast="1").append(3, rows(3))

    assert local_lake.ids() == [0, 1, 2, 3]
    assert "403" in caplog.text


@pytest.mark.parametrize(("fixture", "most"), [("local_lake", 2), ("iceberg_sqlite_lake", 0)])
def test_a_look_at_a_young_table_is_a_few_reads_and_no_listing(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fixture: str, most: int
) -> None:
    local_lake: Lake = request.getfixturevalue(fixture)
    a_stream(local_lake, 3)
    reads: list[str] = []
    listed: list[str] = []
    read, open_input, names = LocalStore.read, LocalStore.open_input, LocalStore.list

    def noted_open(self: LocalStore, path: str) -> BinaryIO:
        reads.append(path)
        return open_input(self, path)

    def noted_read(self: LocalStore, path: str) -> bytes:
        reads.append(path)
        return read(self, path)

    def noted_list(self: LocalStore, path: str) -> list[str]:
        listed.append(path)
        return names(self, path)

    monkeypatch.setattr(LocalStore, "read", noted_read)
    monkeypatch.setattr(LocalStore, "list", noted_list)
    monkeypatch.setattr(LocalStore, "open_input", noted_open)
    local_lake.append(3, rows(3))
    plain, reads[:] = list(reads), []
    plain_listed, listed[:] = list(listed), []

    local_lake.with_options(expire__olderThan="1d").append(4, rows(4))

    assert len(reads) - len(plain) <= most
    assert len(listed) == len(plain_listed)
