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


class Sandbox:
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
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    if request.param == "local":
        root = str(tmp_path / "lake")
        return Sandbox("file", root, StorageSettings(), DiskFileSystem(), open_store(root, StorageSettings()))
    if request.param == "memory":
        root = f"memory://{uuid.uuid4().hex}"
        opened = RemoteStore("memory", root, StorageSettings())
        return Sandbox("memory", root, StorageSettings(), opened._fs, opened)
    s3: S3Server = request.getfixturevalue("s3")
    settings = StorageSettings.from_options(s3.options())
    root = f"s3://{s3.bucket}/{uuid.uuid4().hex}"
    opened = RemoteStore("s3", root, settings)
    return Sandbox("s3", root, settings, opened._fs, opened)


def test_without_lies_it_is_the_store_below(sandbox: Sandbox) -> None:
    store = sandbox.lying

    assert store.put_if_absent(sandbox.path("a"), b"first")
    store.write(sandbox.path("b"), b"old")
    store.write(sandbox.path("b"), b"new")
    with store.open_output(sandbox.path("c")) as output:
        output.write(b"streamed")

    assert not store.put_if_absent(sandbox.path("a"), b"second")
    assert [store.read(sandbox.path(name)) for name in "abc"] == [b"first", b"new", b"streamed"]
    assert store.size(sandbox.path("c")) == 8
    assert store.open_input(sandbox.path("c")).read() == b"streamed"
    assert store.list(store.join(store.root, "deep")) == sandbox.names() == ["a", "b", "c"]
    assert sorted(store.walk_files(store.root)) == [sandbox.path(name) for name in "abc"]
    store.delete(sandbox.path("a"))
    store.delete_many([sandbox.path("b")])
    assert sandbox.names() == ["c"]
    assert not store.exists(sandbox.path("a"))


@pytest.mark.parametrize("lies", [Lies(times_out=1), Lies(refused=1), Lies(throttled=1)], ids=str)
def test_a_request_that_is_not_sent_changes_nothing_and_fails(sandbox: Sandbox, lies: Lies) -> None:
    sandbox.honest.write(sandbox.path("kept"), b"kept")
    sandbox.files.lie(lies, seed=1)

    with pytest.raises(StorageError):
        sandbox.lying.put_if_absent(sandbox.path(), b"x")
    with pytest.raises(StorageError):
        sandbox.lying.write(sandbox.path(), b"x")
    with pytest.raises(StorageError), sandbox.lying.open_output(sandbox.path()) as output:
        output.write(b"x")
    with pytest.raises(StorageError):
        sandbox.lying.delete_many([sandbox.path("kept")])
    with pytest.raises(StorageError):
        sandbox.lying.read(sandbox.path("kept"))
    with pytest.raises(StorageError):
        sandbox.lying.list(sandbox.honest.root)

    assert sandbox.names() == ["kept"]


def test_a_request_that_is_done_may_be_reported_failed(sandbox: Sandbox) -> None:
    sandbox.honest.write(sandbox.path("old"), b"old")
    sandbox.files.lie(Lies(fails_after=1), seed=1)

    with pytest.raises(StorageError):
        sandbox.lying.put_if_absent(sandbox.path("new"), b"new")
    with pytest.raises(StorageError):
        sandbox.lying.delete(sandbox.path("old"))

    assert sandbox.names() == ["new"]
    assert sandbox.honest.read(sandbox.path("new")) == b"new"


def test_a_late_request_arrives_once_at_a_later_request(sandbox: Sandbox) -> None:
    sandbox.files.lie(Lies(late=1), seed=1)
    with pytest.raises(StorageError):
        sandbox.lying.put_if_absent(sandbox.path("late"), b"late")
    assert sandbox.names() == []
    sandbox.files.honest()

    for _ in range(10):
        sandbox.lying.exists(sandbox.path("other"))
    assert sandbox.names() == ["late"]
    sandbox.honest.delete(sandbox.path("late"))
    for _ in range(10):
        sandbox.lying.exists(sandbox.path("other"))

    assert sandbox.names() == []
    assert sandbox.files.under_way == []


def test_a_late_create_does_not_replace_what_was_put_there_meanwhile(sandbox: Sandbox) -> None:
    sandbox.files.lie(Lies(late=1), seed=1)
    with pytest.raises(StorageError):
        sandbox.lying.put_if_absent(sandbox.path(), b"late")
    sandbox.honest.put_if_absent(sandbox.path(), b"winner")

    sandbox.files.land_late()

    assert sandbox.honest.read(sandbox.path()) == b"winner"
    assert "in vain" in sandbox.files.log[-1]


def test_the_seed_decides_whether_a_late_request_arrives_before_or_after_the_one_it_meets(sandbox: Sandbox) -> None:
    met: set[bool] = set()
    for seed in range(8):
        path = sandbox.path(f"late-{seed}")
        sandbox.files.lie(Lies(late=1), seed=seed)
        with pytest.raises(StorageError):
            sandbox.lying.put_if_absent(path, b"late")
        sandbox.files.honest()
        seen = [sandbox.lying.exists(path) for _ in range(10) if sandbox.files.under_way]
        met.add(seen[-1])

    assert met == {True, False}


def test_a_create_that_a_proxy_repeats_is_not_taken_for_somebody_elses(sandbox: Sandbox) -> None:
    sandbox.files.lie(Lies(repeated=1), seed=1)

    try:
        answer: bool | None = sandbox.lying.put_if_absent(sandbox.path(), b"ours")
    except StorageError:
        # Not known: the caller reads it back.
        answer = None

    assert sandbox.honest.read(sandbox.path()) == b"ours"
    # In memory there is nothing to tell one's own first try by; the coordinator reads back after every no.
    assert answer is not False or sandbox.honest.root.startswith("memory:")


def test_a_stale_listing_hides_the_newest_names_for_a_while_and_never_invents_any(sandbox: Sandbox) -> None:
    directory = sandbox.honest.join(sandbox.honest.root, "deep")
    for number in (8, 9, 10):
        sandbox.honest.write(sandbox.path(f"snapshot-{number}"), b"")
    sandbox.files.lie(Lies(stale=1, hidden_names=2, stale_listings=2), seed=1)

    assert sandbox.lying.list(directory) == ["snapshot-8"]
    sandbox.honest.delete(sandbox.path("snapshot-8"))
    sandbox.files._schedule.lies = Lies()

    assert sandbox.lying.list(directory) == []
    assert sandbox.lying.list(directory) == ["snapshot-10", "snapshot-9"]


def test_throttling_lasts_for_several_requests(sandbox: Sandbox) -> None:
    sandbox.files.lie(Lies(throttled=1, throttled_requests=3), seed=1)
    with pytest.raises(StorageError, match="SlowDown"):
        sandbox.lying.write(sandbox.path(), b"x")
    sandbox.files._schedule.lies = Lies()

    for _ in range(2):
        with pytest.raises(StorageError, match="SlowDown"):
            sandbox.lying.exists(sandbox.path())

    assert not sandbox.lying.exists(sandbox.path())


def test_the_same_seed_tells_the_same_lies(sandbox: Sandbox) -> None:
    lies = Lies(times_out=0.1, refused=0.1, fails_after=0.1, late=0.1, repeated=0.1, throttled=0.05)

    def told(seed: int) -> list[str]:
        sandbox.files.log.clear()
        sandbox.files.lie(lies, seed=seed)
        for number in range(30):
            try:
                sandbox.lying.write(sandbox.path(str(number)), b"x")
            except StorageError:
                continue
        sandbox.files.honest()
        sandbox.files.land_late()
        return list(sandbox.files.log)

    assert told(7) == told(7)
    assert told(7) != told(8)
    assert any("reported failed" in line for line in told(7))


def test_lies_can_be_about_one_kind_of_request_only(sandbox: Sandbox) -> None:
    sandbox.files.lie(Lies(times_out=1, only="create"), seed=1)

    sandbox.lying.write(sandbox.path("written"), b"x")
    with pytest.raises(StorageError):
        sandbox.lying.put_if_absent(sandbox.path("created"), b"x")

    assert sandbox.names() == ["written"]


def test_lies_print_what_is_told() -> None:
    assert str(Lies(late=0.5, stale=0.1)) == "late=0.5, stale=0.1"


@pytest.mark.parametrize("sandbox", ["s3"], indirect=True)
@pytest.mark.s3
def test_the_read_back_of_a_conditional_put_may_fail_too(sandbox: Sandbox) -> None:
    sandbox.honest.put_if_absent(sandbox.path(), b"winner")
    sent: list[str] = []

    def fail_after_the_put(request: str) -> None:
        sent.append(request)
        if request.startswith("create"):
            sandbox.files.lie(Lies(), seed=0)
        else:
            sandbox.files.lie(Lies(times_out=1), seed=0)

    sandbox.files._gate = fail_after_the_put
    with pytest.raises(StorageError):
        sandbox.lying.put_if_absent(sandbox.path(), b"loser")

    assert [request.split(" ")[0] for request in sent] == ["create", "head_object"]
    assert sandbox.honest.read(sandbox.path()) == b"winner"
