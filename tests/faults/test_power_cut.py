"""What a snapshot names is on the disk before the snapshot is: a power cut in between must not leave it without."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paimon_sink.core.errors import StorageError
from paimon_sink.core.steps import Step, listening
from tests.support.lake import Lake, rows

ON_A_DISK = pytest.mark.parametrize("lake", ["local_lake", "iceberg_sqlite_lake"], indirect=True)


@pytest.fixture
def lake(request: pytest.FixtureRequest) -> Lake:
    found: Lake = request.getfixturevalue(request.param)
    return found


@contextmanager
def watched_disk() -> Iterator[set[tuple[int, int]]]:
    """The files and directories that somebody waited for, by their inodes."""
    synced: set[tuple[int, int]] = set()
    sync = os.fsync

    def noting(descriptor: int) -> None:
        sync(descriptor)
        synced.add(inode(os.fstat(descriptor)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noting)
        yield synced


def inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def files(lake: Lake) -> set[Path]:
    warehouse = Path(lake.options["warehouse"])
    return {path for path in warehouse.rglob("*") if path.is_file() and not path.name.startswith("catalog.db")}


@ON_A_DISK
@pytest.mark.fault(2)
def test_all_that_a_snapshot_names_is_on_the_disk_before_it(lake: Lake) -> None:
    lake.append(0, rows(0))
    before = files(lake)
    unsynced: list[str] = []

    def look(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            new = files(lake) - before
            assert any("manifest" in path.name or path.suffix == ".avro" for path in new)
            wanted = {*(path for path in new if path.stat().st_size), *(path.parent for path in new)}
            unsynced.extend(str(path) for path in wanted if inode(path.stat()) not in synced)

    with watched_disk() as synced, listening(look):
        lake.append(1, rows(1))

    assert unsynced == []
    assert lake.ids() == [0, 1]


@ON_A_DISK
@pytest.mark.fault(30)
def test_a_disk_that_fails_when_it_is_waited_for_publishes_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(0, rows(0))
    message = lake.write(rows(1))
    before = files(lake)
    sync = os.fsync

    def broken(descriptor: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        if name.startswith(("manifest-", "snap-")):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(StorageError, match=r"Input/output error.*Nothing was commit"):
            lake.commit(1, message)

    assert {path.name for path in files(lake) - before if "pwc" not in path.parts} == set()
    assert lake.ids() == [0]
    lake.commit(1, message)
    assert lake.ids() == [0, 1]
