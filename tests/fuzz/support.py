"""What hostile input is thrown at: a copy of a real warehouse, and a store that notes every path it is given."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, settings

from paimon_sink.core.errors import PwcError
from paimon_sink.formats.paimon import catalogs
from paimon_sink.spark.writers import PwcCommitMessage
from paimon_sink.storage.local import LocalStore
from paimon_sink.storage.location import parse_location
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import DEFAULT_BLOCK_BYTES, Output
from tests.support.lake import Lake

__all__ = ["SCRATCH", "Sample", "Scene", "Watch", "fuzz", "refusal", "watched"]

_MORE = int(os.environ.get("PWC_FUZZ_EXAMPLES", "0"))
_LONGEST_SENTENCE = 3000
# Thousands of small files are made and removed: in memory, where there is a place for that.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fuzz(examples: int) -> settings:
    """The same examples in every run; ``PWC_FUZZ_EXAMPLES=2000`` asks for that many new ones."""
    return settings(
        max_examples=_MORE or examples,
        derandomize=not _MORE,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def refusal(call: Callable[[], object]) -> PwcError | None:
    """The error of this package that the call raised, or None. Any other exception goes up and fails the test."""
    try:
        call()
    except PwcError as error:
        assert_sentence(error)
        return error
    return None


def assert_sentence(error: PwcError) -> None:
    text = str(error)
    assert len(text.split()) >= 4, f"no sentence: {text!r}"
    assert text[-1] in ".?)'\"" or ": " in text, f"it breaks off: {text!r}"
    assert len(text) < _LONGEST_SENTENCE, f"{len(text)} characters: {text[:200]!r}"
    text.encode("utf-8")  # Spark sends it on.
    assert str(pickle.loads(pickle.dumps(error))) == text


# ---------------------------------------------------------------- every path a store is given


class WatchedStore(LocalStore):
    """A local disk that notes what it is asked for, and what it is asked to delete."""

    def __init__(self, root: str, settings: StorageSettings, paths: list[str], deleted: list[str]) -> None:
        super().__init__(root, settings)
        self._paths = paths
        self._deleted = deleted

    def _note(self, path: str) -> str:
        self._paths.append(path)
        return path

    def arrow_path(self, path: str) -> str:
        return super().arrow_path(self._note(path))

    def read(self, path: str) -> bytes:
        return super().read(self._note(path))

    def write(self, path: str, data: bytes) -> None:
        super().write(self._note(path), data)

    def write_cache(self, path: str, data: bytes) -> None:
        super().write_cache(self._note(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return super().put_if_absent(self._note(path), data)

    def exists(self, path: str) -> bool:
        return super().exists(self._note(path))

    def size(self, path: str) -> int:
        return super().size(self._note(path))

    def list(self, path: str) -> list[str]:
        return super().list(self._note(path))

    def walk_files(self, path: str) -> Iterator[str]:
        return super().walk_files(self._note(path))

    def delete(self, path: str) -> None:
        self._deleted.append(path)
        super().delete(self._note(path))

    def delete_many(self, paths: Iterable[str]) -> None:
        super().delete_many([self._note(path) for path in paths])

    def mkdirs(self, path: str) -> None:
        super().mkdirs(self._note(path))

    def open_output(self, path: str, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> Output:
        return super().open_output(self._note(path), block_bytes=block_bytes)

    def open_input(self, path: str) -> BinaryIO:
        return super().open_input(self._note(path))


@dataclass
class Watch:
    """What was asked of all stores that were opened meanwhile."""

    paths: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def outside(self, directory: Path | str) -> list[str]:
        """The paths that are not below a directory, once the system has resolved them."""
        root = os.path.realpath(directory)
        return [path for path in self.paths if not _is_below(path, root)]


def _is_below(path: str, root: str) -> bool:
    try:
        found = os.path.realpath(path)
    except ValueError:  # a NUL: no system call takes it, so it reaches no file
        found = os.path.normpath(path)
    return found == root or found.startswith(root + os.sep)


@contextmanager
def watched() -> Iterator[Watch]:
    """Every store that a table is opened on, inside the block, notes what it is asked for."""
    watch = Watch()

    def open_watched(location: str, settings: StorageSettings) -> WatchedStore:
        return WatchedStore(parse_location(location).root, settings, watch.paths, watch.deleted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogs, "open_store", open_watched)
        yield watch


# ---------------------------------------------------------------- a real warehouse, copied for each example


@dataclass(frozen=True, repr=False)
class Sample:
    """Two tables on a disk. ``committed`` are the messages of batches 0 and 1; the others are written and not in."""

    root: Path
    lake: Lake
    committed: tuple[bytes, ...]
    replay: bytes
    """Batch 1, written a second time."""
    fresh: bytes
    """Batch 2, not committed yet."""
    neighbour: bytes
    """A message of the table beside it."""

    def __repr__(self) -> str:
        return "Sample(…)"

    @contextmanager
    def scene(self) -> Iterator[Scene]:
        with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
            root = Path(directory) / "warehouse"
            shutil.copytree(self.root, root)
            with watched() as watch:
                yield Scene(root, Lake({"warehouse": str(root)}, self.lake.table, self.lake.extra), watch)


@dataclass(frozen=True)
class Scene:
    """One copy of the sample."""

    root: Path
    lake: Lake
    watch: Watch

    @property
    def table(self) -> Path:
        return self.root / "sales.db" / "orders"

    def commit(self, batch_id: int, *payloads: Any, overwrite: bool = False) -> PwcError | None:
        """The refusal, or None when it went in."""
        messages = [PwcCommitMessage(payload) for payload in payloads]
        return refusal(lambda: self.lake.commit(batch_id, *messages, overwrite=overwrite))

    def abort(self, batch_id: int, *payloads: Any) -> None:
        """As Spark does when a task never reported."""
        self.lake.stream_writer().abort([*(PwcCommitMessage(payload) for payload in payloads), None], batch_id)

    def files(self) -> dict[str, bytes]:
        """All files of the warehouse with their bytes; our own notes beside the table come and go."""
        found = {str(path.relative_to(self.root)): path for path in self.root.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if "/pwc/" not in name}

    def edit(self, name: str, data: bytes) -> None:
        (self.table / name).write_bytes(data)

    def bytes_of(self, name: str) -> bytes:
        return (self.table / name).read_bytes()

    def assert_unharmed(self, before: dict[str, bytes], *, may_go: frozenset[str] = frozenset()) -> None:
        """No file that was there is gone or changed, save those that may go, and no path led outside."""
        after = self.files()
        gone = {name for name, data in before.items() if after.get(name) != data}
        allowed = {f"sales.db/orders/{name}" for name in may_go} | {"sales.db/orders/snapshot/LATEST"}
        assert gone <= allowed, f"lost or changed: {sorted(gone - allowed)}"
        assert self.watch.outside(self.table) == []
