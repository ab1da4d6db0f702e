"""What every store promises. A new store joins by a parameter of the ``store`` fixture."""

from __future__ import annotations

import io
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.store import Store

ODD_NAMES = ["day=2026-01-01", "a b", "a%20b", "[x]*?", "ü#1", "a+b&c=d", "{k}"]


def test_what_was_written_is_read_back(store: Store) -> None:
    path = store.join(store.root, "a", "b", "file")

    store.write(path, b"first")
    store.write(path, b"second")

    assert store.read(path) == b"second"
    assert store.size(path) == 6
    assert store.list(store.join(store.root, "a", "b")) == ["file"]


def test_an_empty_file_is_a_file(store: Store) -> None:
    path = store.join(store.root, "empty")

    store.write(path, b"")

    assert store.read(path) == b""
    assert store.size(path) == 0
    assert store.exists(path)


def test_an_absent_file_is_one_exception_everywhere(store: Store) -> None:
    path = store.join(store.root, "nothing")

    assert not store.exists(path)
    for ask in (store.read, store.size, store.open_input):
        with pytest.raises(FileNotFoundError):
            ask(path)


def test_the_first_put_wins_and_the_second_changes_nothing(store: Store) -> None:
    path = store.join(store.root, "snapshot", "snapshot-1")

    assert store.put_if_absent(path, b"first") is True
    assert store.put_if_absent(path, b"second") is False

    assert store.read(path) == b"first"
    assert list(store.walk_files(store.root)) == [path]


def test_equal_bytes_do_not_make_two_winners(store: Store) -> None:
    path = store.join(store.root, "same")

    assert [store.put_if_absent(path, b"same") for _ in range(3)] == [True, False, False]


def test_a_put_loses_against_a_plain_write(store: Store) -> None:
    path = store.join(store.root, "file")
    store.write(path, b"written")

    assert store.put_if_absent(path, b"put") is False
    assert store.read(path) == b"written"


def test_a_cache_is_written_anew_and_leaves_nothing_else(store: Store) -> None:
    path = store.join(store.root, "below", "cache.json")

    for data in (b"a longer one", b"short"):
        store.write_cache(path, data)

        assert store.read(path) == data
    assert list(store.walk_files(store.root)) == [path]


def test_a_put_after_a_delete_wins(store: Store) -> None:
    path = store.join(store.root, "file")
    store.put_if_absent(path, b"old")
    store.delete(path)

    assert store.put_if_absent(path, b"new") is True
    assert store.read(path) == b"new"


def test_listing_names_direct_children_only_and_is_fresh(store: Store) -> None:
    assert store.list(store.join(store.root, "t")) == []

    for name in ("t/b", "t/a", "t/sub/c", "t/sub/deeper/d", "tail"):
        store.write(store.join(store.root, name), b"x")
    assert store.list(store.join(store.root, "t")) == ["a", "b", "sub"]

    store.put_if_absent(store.join(store.root, "t", "late"), b"x")
    store.delete(store.join(store.root, "t", "a"))
    assert store.list(store.join(store.root, "t")) == ["b", "late", "sub"]


def test_walking_finds_every_file_below_and_no_neighbour(store: Store) -> None:
    inside = [store.join(store.root, "t", name) for name in ("a", "p=1/b", "p=1/q=2/c")]
    for path in [*inside, store.join(store.root, "t2", "x")]:
        store.write(path, b"x")

    assert sorted(store.walk_files(store.join(store.root, "t"))) == sorted(inside)
    assert list(store.walk_files(store.join(store.root, "missing"))) == []


def test_walking_tells_sizes_and_ages_by_the_clock_of_the_store(store: Store) -> None:
    before = store.join(store.root, "a", "before")
    after = store.join(store.root, "after")
    store.write(before, b"123")
    store.write(after, b"")

    found = {listed.path: listed for listed in store.walk(store.root)}

    assert {path: listed.size_bytes for path, listed in found.items()} == {before: 3, after: 0}
    assert list(store.walk(store.join(store.root, "nothing"))) == []
    first, second = found[before].modified_ms, found[after].modified_ms
    if store.root.startswith("memory:"):
        # It keeps no ages in its listings, and says so.
        assert (first, second) == (None, None)
        return
    assert first is not None
    assert second is not None
    # The servers of the tests run on this machine.
    assert first <= second < time.time() * 1000 + 3_600_000


def test_a_directory_exists_but_has_no_size(store: Store) -> None:
    store.write(store.join(store.root, "dir", "file"), b"x")

    assert store.exists(store.join(store.root, "dir"))
    with pytest.raises(StorageError):
        store.size(store.join(store.root, "dir"))


def test_deleting_what_is_absent_is_fine(store: Store) -> None:
    path = store.join(store.root, "file")
    store.write(path, b"x")

    store.delete(path)
    store.delete(path)
    store.delete_many([path, store.join(store.root, "never")])

    assert not store.exists(path)


def test_many_files_are_deleted_and_the_others_stay(store: Store) -> None:
    doomed = [store.join(store.root, "t", f"f{i}") for i in range(12)]
    kept = store.join(store.root, "t", "kept")
    for path in [*doomed, kept]:
        store.write(path, b"x")

    store.delete_many(iter(doomed))

    assert list(store.walk_files(store.root)) == [kept]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_taken_literally(store: Store, name: str) -> None:
    path = store.join(store.root, name, name)
    bystander = store.join(store.root, "x", "x")
    store.write(bystander, b"stays")

    assert store.put_if_absent(path, b"odd")

    assert store.read(path) == b"odd"
    assert store.list(store.join(store.root, name)) == [name]
    assert sorted(store.walk_files(store.root)) == sorted([path, bystander])
    store.delete_many([path])
    assert list(store.walk_files(store.root)) == [bystander]


def test_a_closed_output_is_whole(store: Store) -> None:
    path = store.join(store.root, "data", "file")

    output = store.open_output(path, block_bytes=5 * 2**20)
    for _ in range(12):
        output.write(b"x" * 2**20)
    assert output.tell() == 12 * 2**20
    output.close()
    output.close()

    assert output.closed
    assert store.size(path) == 12 * 2**20


@pytest.mark.parametrize("mib", [0, 1, 12], ids=["untouched", "small", "several parts"])
def test_a_discarded_output_leaves_nothing(store: Store, mib: int) -> None:
    path = store.join(store.root, "data", "file")
    output = store.open_output(path, block_bytes=5 * 2**20)
    for _ in range(mib):
        output.write(b"x" * 2**20)

    output.discard()
    output.discard()
    output.close()
    del output

    assert list(store.walk_files(store.root)) == []
    assert not store.exists(path)
    assert _pending_uploads(store) == []


def test_an_output_left_by_an_exception_is_discarded(store: Store) -> None:
    path = store.join(store.root, "data", "file")

    def write_and_fail() -> None:
        with store.open_output(path) as output:
            output.write(b"half a file")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()

    assert list(store.walk_files(store.root)) == []


def test_a_closed_output_takes_no_more_bytes_and_is_not_discarded(store: Store) -> None:
    path = store.join(store.root, "file")
    with store.open_output(path) as output:
        output.write(b"x")

    with pytest.raises(ValueError, match="closed"):
        output.write(b"y")
    output.discard()

    assert store.read(path) == b"x"


def test_parquet_is_written_and_read_through_the_store(store: Store) -> None:
    path = store.join(store.root, "p=1", "data.parquet")
    rows = pa.table({"id": list(range(1000)), "name": [f"n{i}" for i in range(1000)]})

    with store.open_output(path) as output:
        with pq.ParquetWriter(output.handle, rows.schema) as writer:
            writer.write_table(rows.slice(0, 500))
            before_footer = output.tell()
            writer.write_table(rows.slice(500))
        assert 0 < before_footer < output.tell()

    with store.open_input(path) as source:
        assert pq.read_table(source).equals(rows)
    arrow_path: Any = store.arrow_path(path)
    assert pq.read_table(arrow_path, filesystem=store.arrow_filesystem, partitioning=None).equals(rows)


def test_an_input_can_seek(store: Store) -> None:
    path = store.join(store.root, "file")
    store.write(path, b"0123456789")

    with store.open_input(path) as source:
        source.seek(-3, io.SEEK_END)
        assert source.read() == b"789"
        source.seek(2)
        assert source.read(3) == b"234"


def test_directories_can_be_asked_for_twice(store: Store) -> None:
    store.mkdirs(store.join(store.root, "a", "b"))
    store.mkdirs(store.join(store.root, "a", "b"))

    assert list(store.walk_files(store.root)) == []


def test_paths_are_joined_with_single_slashes(store: Store) -> None:
    assert store.join(store.root, "a/", "/b", "", "c") == f"{store.root}/a/b/c"


def _pending_uploads(store: Store) -> list[str]:
    if not store.root.startswith("s3://"):
        return []
    fs: Any = store._fs  # type: ignore[attr-defined]
    bucket, prefix, _ = fs.split_path(store.root)
    answer = fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix)
    return [upload["Key"] for upload in answer.get("Uploads", [])]
