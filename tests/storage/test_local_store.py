"""What only disks can get wrong: durability, half-written files, filesystems without hard links."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.durable import synced_together
from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store


@pytest.fixture
def events(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the disk is asked for, in order."""
    found: list[str] = []
    sync, link = os.fsync, os.link

    def recording_sync(descriptor: int) -> None:
        found.append("directory" if os.path.isdir(f"/dev/fd/{descriptor}") else "file")
        sync(descriptor)

    def recording_link(source: str, target: str) -> None:
        found.append("link")
        link(source, target)

    local_store.mkdirs(local_store.root)
    monkeypatch.setattr(os, "fsync", recording_sync)
    monkeypatch.setattr(os, "link", recording_link)
    return found


def write(store: Store, name: str) -> None:
    store.write(store.join(store.root, name), b"x")


def stream(store: Store, name: str) -> None:
    with store.open_output(store.join(store.root, name)) as output:
        output.write(b"x")


def test_a_put_is_on_disk_before_it_has_its_name(local_store: Store, events: list[str]) -> None:
    assert local_store.put_if_absent(local_store.join(local_store.root, "snapshot-1"), b"x")

    assert events == ["file", "link", "directory"]


def test_writes_and_outputs_are_synced_with_their_directories(local_store: Store, events: list[str]) -> None:
    write(local_store, "written")
    stream(local_store, "streamed")

    assert events == ["file", "directory", "file", "directory"]


def test_an_empty_file_is_synced_by_its_name(local_store: Store, events: list[str]) -> None:
    local_store.write(local_store.join(local_store.root, "empty"), b"")

    assert events == ["directory"]


def test_what_a_block_writes_is_synced_at_its_end_and_its_directory_once(local_store: Store, events: list[str]) -> None:
    with synced_together():
        write(local_store, "written")
        stream(local_store, "streamed")
        assert events == []

    assert sorted(events) == ["directory", "file", "file"]
    write(local_store, "later")
    assert events[3:] == ["file", "directory"]


def test_an_empty_file_in_a_block_is_synced_by_its_name_at_the_end(local_store: Store, events: list[str]) -> None:
    with synced_together():
        local_store.write(local_store.join(local_store.root, "empty"), b"")

    assert events == ["directory"]


def test_a_block_with_many_files_does_not_hold_them_all_open(local_store: Store, events: list[str]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    most = 0

    with synced_together():
        for number in range(200):
            write(local_store, f"written-{number}")
            most = max(most, len(os.listdir("/proc/self/fd")) - before)

    assert most < 100
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(events) == ["directory", *["file"] * 200]


def test_a_put_in_a_block_is_synced_all_the_same(local_store: Store, events: list[str]) -> None:
    with synced_together():
        assert local_store.put_if_absent(local_store.join(local_store.root, "snapshot-1"), b"x")

        assert events == ["file", "link", "directory"]


def test_a_block_in_a_block_syncs_what_is_its_own(local_store: Store, events: list[str]) -> None:
    with synced_together():
        write(local_store, "outer")
        with synced_together():
            write(local_store, "inner")
        assert sorted(events) == ["directory", "file"]

    assert sorted(events) == ["directory", "directory", "file", "file"]


def test_a_block_waits_for_all_of_its_files_at_once(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3, timeout=20)
    sync = os.fsync

    def meeting_sync(descriptor: int) -> None:
        together.wait()
        sync(descriptor)

    with synced_together():
        write(local_store, "one")
        write(local_store, "two")
        monkeypatch.setattr(os, "fsync", meeting_sync)

    assert not together.broken


def test_a_block_says_which_file_did_not_reach_the_disk_when_all_are_done(
    local_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, done = os.fsync, []

    def failing_sync(descriptor: int) -> None:
        if os.path.isdir(f"/dev/fd/{descriptor}"):
            raise OSError(errno.EIO, "Input/output error")
        time.sleep(0.05)
        sync(descriptor)
        done.append(descriptor)

    with pytest.raises(StorageError, match="Input/output error"), synced_together():  # noqa: PT012 - the block waits
        write(local_store, "one")
        write(local_store, "two")
        monkeypatch.setattr(os, "fsync", failing_sync)

    assert len(done) == 2


def test_a_process_that_was_forked_waits_with_threads_of_its_own(local_store: Store) -> None:
    with synced_together():
        write(local_store, "one")
        write(local_store, "two")
    child = os.fork()
    if not child:
        try:
            with synced_together():
                write(local_store, "three")
                write(local_store, "four")
            os._exit(0)
        finally:
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0


def test_a_block_that_fails_waits_for_nothing(local_store: Store, events: list[str]) -> None:
    with suppress(ValueError), synced_together():
        write(local_store, "written")
        raise ValueError("midway")

    assert events == []
    write(local_store, "later")
    assert events == ["file", "directory"]


def test_another_thread_waits_for_its_own_files(local_store: Store, events: list[str]) -> None:
    with synced_together():
        other = threading.Thread(target=write, args=(local_store, "of another thread"))
        other.start()
        other.join()

        assert events == ["file", "directory"]


def test_a_reader_never_sees_part_of_a_put(local_store: Store) -> None:
    data = os.urandom(2**20)
    sizes: set[int] = set()
    done = threading.Event()

    def read_all_the_time() -> None:
        while not done.is_set():
            for name in local_store.list(local_store.root):
                if name.startswith("put-"):
                    sizes.add(len(local_store.read(local_store.join(local_store.root, name))))

    reader = threading.Thread(target=read_all_the_time)
    reader.start()
    for i in range(20):
        local_store.put_if_absent(local_store.join(local_store.root, f"put-{i}"), data)
    done.set()
    reader.join()

    assert sizes <= {len(data)}


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP], ids=["EPERM", "EOPNOTSUPP"])
def test_a_disk_without_hard_links_is_refused_by_name(
    local_store: Store, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def no_links(source: str, target: str) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_links)

    with pytest.raises(StorageError, match=r"no hard links.*Move the table"):
        local_store.put_if_absent(local_store.join(local_store.root, "snapshot-1"), b"x")

    assert list(local_store.walk_files(local_store.root)) == []


def test_a_link_repeated_by_nfs_knows_its_own_first_try(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    path = local_store.join(local_store.root, "snapshot-1")

    assert local_store.put_if_absent(path, b"ours") is True
    assert list(local_store.walk_files(local_store.root)) == [path]


def test_a_failed_replacement_keeps_the_old_file(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = local_store.join(local_store.root, "LATEST")
    local_store.write(path, b"old")

    def full_disk(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        local_store.write(path, b"new")

    assert local_store.read(path) == b"old"
    assert list(local_store.walk_files(local_store.root)) == [path]


def test_trouble_is_not_absence(local_store: Store) -> None:
    file = local_store.join(local_store.root, "dir", "file")
    local_store.write(file, b"x")

    with pytest.raises(StorageError, match="IsADirectoryError"):
        local_store.read(local_store.join(local_store.root, "dir"))
    with pytest.raises(StorageError, match="NotADirectoryError"):
        local_store.read(local_store.join(file, "below"))
    with pytest.raises(StorageError, match="NotADirectoryError"):
        local_store.list(file)


@pytest.mark.parametrize("form", ["{0}", "{0}/", "file:{0}", "file://{0}", "file://localhost{0}", "FILE://{0}/"])
def test_all_forms_of_a_local_location_are_one(tmp_path: Path, form: str) -> None:
    assert open_store(form.format(tmp_path), StorageSettings()).root == str(tmp_path)


def test_a_relative_location_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert open_store("lake/t", StorageSettings()).root == str(tmp_path / "lake" / "t")


def test_only_file_uris_are_percent_decoded(tmp_path: Path) -> None:
    assert open_store(f"file://{tmp_path}/a%20b", StorageSettings()).root == f"{tmp_path}/a b"
    assert open_store(f"{tmp_path}/a%20b", StorageSettings()).root == f"{tmp_path}/a%20b"


def test_a_file_uri_of_another_host_is_refused() -> None:
    with pytest.raises(StorageError, match="names the host elsewhere"):
        open_store("file://elsewhere/lake", StorageSettings())
