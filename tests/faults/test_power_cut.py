"""What a snapshot names is on the disk before the snapshot is: a power cut in between must not leave it without."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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


@dataclass
class Disk:
    """What would be there after a power cut: bytes by inode, names by directory, each as of the last wait for it."""

    inodes: set[int] = field(default_factory=set)
    names: dict[int, set[str]] = field(default_factory=dict)

    def wait_for(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            self.names[found.st_ino] = set(os.listdir(descriptor))
        else:
            self.inodes.add(found.st_ino)

    def has(self, path: Path) -> bool:
        found = path.stat()
        is_named = path.name in self.names.get(path.parent.stat().st_ino, ())
        return is_named and (found.st_ino in self.inodes or not found.st_size)


@contextmanager
def watched_disk() -> Iterator[Disk]:
    disk, sync = Disk(), os.fsync

    def noting(descriptor: int) -> None:
        sync(descriptor)
        disk.wait_for(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noting)
        yield disk


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
            unsynced.extend(str(path) for path in new if not disk.has(path))

    with watched_disk() as disk, listening(look):
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
