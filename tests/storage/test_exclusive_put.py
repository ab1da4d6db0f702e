"""Put-if-absent under fire: many writers at once, requests repeated below us, answers that settle nothing."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.asyn import sync

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.exclusive import exclusive_put
from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store
from tests.support.processes import CONTEXT

WRITERS = 8


def keys_of(store: Store) -> range:
    # SeaweedFS lets the losers of a contested conditional PUT wait for whole seconds.
    return range(6 if store.root.startswith("s3://") else 25)


def content(writer: int, key: int) -> bytes:
    return f"writer {writer} key {key} ".encode() * 500


def race(store: Store, writer: int, wait: Callable[[], object]) -> list[int]:
    """The keys this writer won. All wait before each key: left alone, one writer runs ahead and nobody contests it."""
    won = []
    for key in keys_of(store):
        wait()
        if store.put_if_absent(store.join(store.root, f"snapshot-{key}"), content(writer, key)):
            won.append(key)
    return won


def race_in_a_process(root: str, settings: StorageSettings, writer: int, barrier: Any, wins: Any) -> None:
    wins.put((writer, race(open_store(root, settings), writer, lambda: barrier.wait(timeout=120))))


def assert_one_winner_each(store: Store, wins: dict[int, list[int]]) -> None:
    winners = Counter(key for keys in wins.values() for key in keys)
    assert winners == Counter(keys_of(store))
    for writer, keys in wins.items():
        for key in keys:
            assert store.read(store.join(store.root, f"snapshot-{key}")) == content(writer, key)
    assert store.list(store.root) == sorted(f"snapshot-{key}" for key in keys_of(store))


@pytest.mark.parametrize("place", ["local", pytest.param("s3", marks=pytest.mark.s3)])
def test_of_many_processes_exactly_one_wins_each_key(request: pytest.FixtureRequest, place: str) -> None:
    store: Store = request.getfixturevalue(f"{place}_store")
    barrier, wins = CONTEXT.Barrier(WRITERS), CONTEXT.Queue()
    writers = [
        CONTEXT.Process(target=race_in_a_process, args=(store.root, store._settings, writer, barrier, wins))
        for writer in range(WRITERS)
    ]
    for process in writers:
        process.start()
    results = dict(wins.get(timeout=120) for _ in writers)
    for process in writers:
        process.join()
        process.close()
    wins.close()
    wins.join_thread()

    assert_one_winner_each(store, results)


@pytest.mark.parametrize(
    "store", ["local", "memory", pytest.param("s3", marks=(pytest.mark.s3, pytest.mark.long))], indirect=True
)
def test_of_many_threads_exactly_one_wins_each_key(store: Store) -> None:
    barrier = threading.Barrier(WRITERS)
    results: dict[int, list[int]] = {}

    def run(writer: int) -> None:
        results[writer] = race(store, writer, barrier.wait)

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert_one_winner_each(store, results)


# ---------------------------------------------------------------- S3


@pytest.fixture
def call_s3(s3_store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    """Put a function between s3fs and the server; it gets the real call as its first argument."""
    fs: Any = s3_store._fs  # type: ignore[attr-defined]
    real = fs._call_s3

    def install(between: Callable[..., Any]) -> None:
        async def call(method: str, *args: Any, **kwargs: Any) -> Any:
            return await between(real, method, *args, **kwargs)

        monkeypatch.setattr(fs, "_call_s3", call)
        monkeypatch.setattr(fs, "call_s3", lambda *args, **kwargs: sync(fs.loop, call, *args, **kwargs))

    return install


@pytest.mark.s3
def test_a_put_repeated_after_a_lost_answer_knows_its_own_first_try(
    s3_store: Store, call_s3: Callable[[Callable[..., Any]], None]
) -> None:
    async def put_twice(real: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "put_object":
            await real(method, *args, **kwargs)
        return await real(method, *args, **kwargs)

    call_s3(put_twice)
    path = s3_store.join(s3_store.root, "snapshot-1")

    assert s3_store.put_if_absent(path, b"ours") is True
    assert s3_store.read(path) == b"ours"


@pytest.mark.s3
@pytest.mark.parametrize(
    ("code", "status"),
    [("ConditionalRequestConflict", 409), ("InternalError", 500), ("AccessDenied", 403)],
    ids=["conflict", "server error", "denied"],
)
def test_an_answer_that_settles_nothing_is_an_exception(
    s3_store: Store, call_s3: Callable[[Callable[..., Any]], None], code: str, status: int
) -> None:
    from botocore.exceptions import ClientError
    from s3fs.errors import translate_boto_error

    async def refuse(real: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise translate_boto_error(ClientError(answer, "PutObject"))

    call_s3(refuse)

    with pytest.raises(StorageError, match="Cannot create s3://"):
        s3_store.put_if_absent(s3_store.join(s3_store.root, "snapshot-1"), b"x")


@pytest.mark.s3
def test_a_file_that_others_delete_while_we_look_is_an_unknown_outcome(
    s3_store: Store, call_s3: Callable[[Callable[..., Any]], None]
) -> None:
    path = s3_store.join(s3_store.root, "snapshot-1")
    s3_store.put_if_absent(path, b"theirs")

    async def gone_at_head(real: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "head_object":
            raise FileNotFoundError(path)
        return await real(method, *args, **kwargs)

    call_s3(gone_at_head)

    with pytest.raises(StorageError):
        s3_store.put_if_absent(path, b"ours")


@pytest.mark.s3
def test_files_that_s3_refuses_to_delete_are_reported(
    s3_store: Store, call_s3: Callable[[Callable[..., Any]], None]
) -> None:
    async def refuse(real: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return {"Errors": [{"Key": "k", "Code": "AccessDenied", "Message": "no"}]}

    call_s3(refuse)

    with pytest.raises(StorageError, match=r"Cannot delete 1 files.*AccessDenied"):
        s3_store.delete_many([s3_store.join(s3_store.root, "k")])


# ---------------------------------------------------------------- GCS and Azure, by what their classes declare


class Blobs:
    """A filesystem that stores bytes in a dictionary, for the classes below to spell exclusive create their way."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def _create(self, path: str, data: bytes) -> None:
        if path in self.blobs:
            raise FileExistsError(path)
        self.blobs[path] = data

    def cat_file(self, path: str) -> bytes:
        return self.blobs[path]


class LikeGcsfs(Blobs):
    def _pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        assert mode == "create"
        self._create(path, data)

    pipe_file = _pipe_file


class LikeAdlfs(Blobs):
    """Swallows ``mode``, as adlfs did for years: only ``overwrite`` counts."""

    def _pipe_file(self, path: str, value: bytes, overwrite: bool = True, **kwargs: Any) -> None:
        assert not overwrite
        self._create(path, value)

    pipe_file = _pipe_file


class WithoutCondition(Blobs):
    def _pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        self.blobs[path] = value


class WithMetadata(Blobs):
    """As gcsfs of today: what a writer says of its file is kept with it. It may repeat a request that went well."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, dict[str, str]] = {}
        self.repeats = False

    def _pipe_file(self, path: str, data: bytes, metadata: dict[str, str], mode: str = "overwrite") -> None:
        assert mode == "create"
        self._create(path, data)
        self.said[path] = metadata
        if self.repeats:
            self._create(path, data)

    pipe_file = _pipe_file

    def invalidate_cache(self) -> None:
        return

    def info(self, path: str) -> dict[str, Any]:
        return {"metadata": self.said[path]}


def test_where_a_file_keeps_what_its_writer_says_equal_bytes_make_no_two_winners() -> None:
    fs = WithMetadata()
    put = exclusive_put("gs", fs)

    assert [put("lake/snapshot-1", b"same") for _ in range(3)] == [True, False, False]


def test_a_request_that_is_repeated_below_is_known_for_its_own() -> None:
    fs = WithMetadata()
    fs.repeats = True

    assert exclusive_put("gs", fs)("lake/snapshot-1", b"ours") is True


@pytest.mark.parametrize(("protocol", "fs"), [("gs", LikeGcsfs()), ("abfs", LikeAdlfs())], ids=["gcs", "azure"])
def test_each_cloud_is_asked_in_its_own_words(protocol: str, fs: Blobs) -> None:
    put = exclusive_put(protocol, fs)

    assert put("lake/snapshot-1", b"first") is True
    assert put("lake/snapshot-1", b"second") is False
    assert fs.blobs == {"lake/snapshot-1": b"first"}


def test_a_put_that_meets_its_own_bytes_is_an_unknown_outcome() -> None:
    fs = LikeAdlfs()
    put = exclusive_put("abfs", fs)
    put("lake/snapshot-1", b"ours")

    with pytest.raises(StorageError, match="may be our own"):
        put("lake/snapshot-1", b"ours")


def test_a_class_that_would_swallow_the_condition_is_refused() -> None:
    with pytest.raises(StorageError, match="no exclusive create"):
        exclusive_put("abfs", WithoutCondition())


def test_a_class_that_only_inherits_the_argument_is_refused() -> None:
    from fsspec.asyn import AsyncFileSystem

    class Inheriting(AsyncFileSystem):
        protocol = "inheriting"

    with pytest.raises(StorageError, match="no exclusive create"):
        exclusive_put("gs", Inheriting(skip_instance_cache=True, token=uuid.uuid4().hex))
