"""The store of tables in memory: all that every store promises, and ages by a clock that tests turn."""

from __future__ import annotations

import pyarrow.fs as pafs
import pytest

from paimon_sink.formats.memory.store import MemoryStore
from paimon_sink.storage.store import Store
from tests.storage.test_store_conformance import *  # noqa: F403 - the same promises, for this store
from tests.support.clock import FakeClock


@pytest.fixture
def store() -> Store:
    return MemoryStore("memory://store", FakeClock())


def test_walking_tells_sizes_and_ages_by_the_clock_of_the_store(store: Store) -> None:  # type: ignore[no-redef]
    clock = FakeClock(1000)
    turned = MemoryStore("memory://turned", clock)
    turned.write("memory://turned/a/before", b"123")
    clock.now = 2000
    turned.write("memory://turned/after", b"")

    found = {listed.path: (listed.size_bytes, listed.modified_ms) for listed in turned.walk(turned.root)}

    assert found == {"memory://turned/a/before": (3, 1000), "memory://turned/after": (0, 2000)}
    assert list(turned.walk("memory://turned/nothing")) == []


def test_pyarrow_sees_files_directories_and_what_is_not_there(store: Store) -> None:
    store.write("memory://store/a/b/c", b"abc")

    def info(path: str) -> tuple[pafs.FileType, int | None]:
        seen = store.arrow_filesystem.get_file_info(path)
        return seen.type, seen.size

    assert info("memory://store/a/b/c") == (pafs.FileType.File, 3)
    assert info("memory://store/a/b")[0] is pafs.FileType.Directory
    assert info("memory://store/a/x")[0] is pafs.FileType.NotFound
    below = store.arrow_filesystem.get_file_info(pafs.FileSelector("memory://store", recursive=True))
    assert [seen.path for seen in below] == ["memory://store/a/b/c"]


def test_pyarrow_cannot_change_files(store: Store) -> None:
    store.write("memory://store/a", b"abc")

    with pytest.raises(NotImplementedError, match="pyarrow only reads here"):
        store.arrow_filesystem.delete_file("memory://store/a")

    assert store.read("memory://store/a") == b"abc"
