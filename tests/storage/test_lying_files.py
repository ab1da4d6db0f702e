"""The filesystem that lies: each lie does what it says, under the real storage code, on a disk and on S3."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.open import open_store
from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store
from tests.support.lying_files import DiskFileSystem, Lies, LyingFileSystem
from tests.support.s3 import S3Server


class Place:
    """The same directory, honest and through the liar."""

    def __init__(self, protocol: str, root: str, settings: StorageSettings, inner: Any, honest: Store) -> None:
        self.files = LyingFileSystem(inner)
        self.lying = RemoteStore(protocol, root, settings, filesystem=self.files)
        self.honest = honest

    def path(self, name: str = "a") -> str:
        return self.honest.join(self.honest.root, "deep", name)

    def names(self) -> list[str]:
        return self.honest.list(self.honest.join(self.honest.root, "deep"))


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        root = str(tmp_path / "lake")
        return Place("file", root, StorageSettings(), DiskFileSystem(), open_store(root, StorageSettings()))
    if request.param == "memory":
        root = f"memory://{uuid.uuid4().hex}"
        opened = RemoteStore("memory", root, StorageSettings())
        return Place("memory", root, StorageSettings(), opened._fs, opened)
    s3: S3Server = request.getfixturevalue("s3")
    settings = StorageSettings.from_options(s3.options())
    root = f"s3://{s3.bucket}/{uuid.uuid4().hex}"
    opened = RemoteStore("s3", root, settings)
    return Place("s3", root, settings, opened._fs, opened)


def test_without_lies_it_is_the_store_below(place: Place) -> None:
    store = place.lying

    assert store.put_if_absent(place.path("a"), b"first")
    store.write(place.path("b"), b"old")
    store.write(place.path("b"), b"new")
    with store.open_output(place.path("c")) as output:
        output.write(b"streamed")

    assert not store.put_if_absent(place.path("a"), b"second")
    assert [store.read(place.path(name)) for name in "abc"] == [b"first", b"new", b"streamed"]
    assert store.size(place.path("c")) == 8
    assert store.open_input(place.path("c")).read() == b"streamed"
    assert store.list(store.join(store.root, "deep")) == place.names() == ["a", "b", "c"]
    assert sorted(store.walk_files(store.root)) == [place.path(name) for name in "abc"]
    store.delete(place.path("a"))
    store.delete_many([place.path("b")])
    assert place.names() == ["c"]
    assert not store.exists(place.path("a"))


@pytest.mark.parametrize("lies", [Lies(times_out=1), Lies(refused=1), Lies(throttled=1)], ids=str)
def test_a_request_that_is_not_sent_changes_nothing_and_fails(place: Place, lies: Lies) -> None:
    place.honest.write(place.path("kept"), b"kept")
    place.files.lie(lies, seed=1)

    with pytest.raises(StorageError):
        place.lying.put_if_absent(place.path(), b"x")
    with pytest.raises(StorageError):
        place.lying.write(place.path(), b"x")
    with pytest.raises(StorageError), place.lying.open_output(place.path()) as output:
        output.write(b"x")
    with pytest.raises(StorageError):
        place.lying.delete_many([place.path("kept")])
    with pytest.raises(StorageError):
        place.lying.read(place.path("kept"))
    with pytest.raises(StorageError):
        place.lying.list(place.honest.root)

    assert place.names() == ["kept"]


def test_a_request_that_is_done_may_be_reported_failed(place: Place) -> None:
    place.honest.write(place.path("old"), b"old")
    place.files.lie(Lies(fails_after=1), seed=1)

    with pytest.raises(StorageError):
        place.lying.put_if_absent(place.path("new"), b"new")
    with pytest.raises(StorageError):
        place.lying.delete(place.path("old"))

    assert place.names() == ["new"]
    assert place.honest.read(place.path("new")) == b"new"


def test_a_late_request_arrives_once_at_a_later_request(place: Place) -> None:
    place.files.lie(Lies(late=1), seed=1)
    with pytest.raises(StorageError):
        place.lying.put_if_absent(place.path("late"), b"late")
    assert place.names() == []
    place.files.honest()

    for _ in range(10):
        place.lying.exists(place.path("other"))
    assert place.names() == ["late"]
    place.honest.delete(place.path("late"))
    for _ in range(10):
        place.lying.exists(place.path("other"))

    assert place.names() == []
    assert place.files.under_way == []


def test_a_late_create_does_not_replace_what_was_put_there_meanwhile(place: Place) -> None:
    place.files.lie(Lies(late=1), seed=1)
    with pytest.raises(StorageError):
        place.lying.put_if_absent(place.path(), b"late")
    place.honest.put_if_absent(place.path(), b"winner")

    place.files.land_late()

    assert place.honest.read(place.path()) == b"winner"
    assert "in vain" in place.files.log[-1]


def test_the_seed_decides_whether_a_late_request_arrives_before_or_after_the_one_it_meets(place: Place) -> None:
    met: set[bool] = set()
    for seed in range(8):
        path = place.path(f"late-{seed}")
        place.files.lie(Lies(late=1), seed=seed)
        with pytest.raises(StorageError):
            place.lying.put_if_absent(path, b"late")
        place.files.honest()
        seen = [place.lying.exists(path) for _ in range(10) if place.files.under_way]
        met.add(seen[-1])

    assert met == {True, False}


def test_a_create_that_a_proxy_repeats_is_not_taken_for_somebody_elses(place: Place) -> None:
    place.files.lie(Lies(repeated=1), seed=1)

    try:
        answer: bool | None = place.lying.put_if_absent(place.path(), b"ours")
    except StorageError:
        # Not known: the caller reads it back.
        answer = None

    assert place.honest.read(place.path()) == b"ours"
    # In memory there is nothing to tell one's own first try by; the coordinator reads back after every no.
    assert answer is not False or place.honest.root.startswith("memory:")


def test_a_stale_listing_hides_the_newest_names_for_a_while_and_never_invents_any(place: Place) -> None:
    directory = place.honest.join(place.honest.root, "deep")
    for number in (8, 9, 10):
        place.honest.write(place.path(f"snapshot-{number}"), b"")
    place.files.lie(Lies(stale=1, hidden_names=2, stale_listings=2), seed=1)

    assert place.lying.list(directory) == ["snapshot-8"]
    place.honest.delete(place.path("snapshot-8"))
    place.files._schedule.lies = Lies()

    assert place.lying.list(directory) == []
    assert place.lying.list(directory) == ["snapshot-10", "snapshot-9"]


def test_throttling_lasts_for_several_requests(place: Place) -> None:
    place.files.lie(Lies(throttled=1, throttled_requests=3), seed=1)
    with pytest.raises(StorageError, match="SlowDown"):
        place.lying.write(place.path(), b"x")
    place.files._schedule.lies = Lies()

    for _ in range(2):
        with pytest.raises(StorageError, match="SlowDown"):
            place.lying.exists(place.path())

    assert not place.lying.exists(place.path())


def test_the_same_seed_tells_the_same_lies(place: Place) -> None:
    lies = Lies(times_out=0.1, refused=0.1, fails_after=0.1, late=0.1, repeated=0.1, throttled=0.05)

    def told(seed: int) -> list[str]:
        place.files.log.clear()
        place.files.lie(lies, seed=seed)
        for number in range(30):
            try:
                place.lying.write(place.path(str(number)), b"x")
            except StorageError:
                continue
        place.files.honest()
        place.files.land_late()
        return list(place.files.log)

    assert told(7) == told(7)
    assert told(7) != told(8)
    assert any("reported failed" in line for line in told(7))


def test_lies_can_be_about_one_kind_of_request_only(place: Place) -> None:
    place.files.lie(Lies(times_out=1, only="create"), seed=1)

    place.lying.write(place.path("written"), b"x")
    with pytest.raises(StorageError):
        place.lying.put_if_absent(place.path("created"), b"x")

    assert place.names() == ["written"]


def test_lies_print_what_is_told() -> None:
    assert str(Lies(late=0.5, stale=0.1)) == "late=0.5, stale=0.1"


@pytest.mark.parametrize("place", ["s3"], indirect=True)
@pytest.mark.s3
def test_the_read_back_of_a_conditional_put_may_fail_too(place: Place) -> None:
    place.honest.put_if_absent(place.path(), b"winner")
    sent: list[str] = []

    def fail_after_the_put(request: str) -> None:
        sent.append(request)
        if request.startswith("create"):
            place.files.lie(Lies(), seed=0)
        else:
            place.files.lie(Lies(times_out=1), seed=0)

    place.files._gate = fail_after_the_put
    with pytest.raises(StorageError):
        place.lying.put_if_absent(place.path(), b"loser")

    assert [request.split(" ")[0] for request in sent] == ["create", "head_object"]
    assert place.honest.read(place.path()) == b"winner"
