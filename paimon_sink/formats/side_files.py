"""Small files of ours beside a table's own: what cleaning is about to delete, and caches that nobody needs.

A format says where they may lie: some stores take only a format's own names. Everything else is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from paimon_sink.core.deletion_intents import (
    decode_deletion_intent,
    encode_deletion_intent,
    is_deletion_intent,
    new_temp_name,
)
from paimon_sink.core.errors import CommitConflictError, PwcError
from paimon_sink.storage.store import Store

_READERS = 8


def temp_file_path(name: str) -> str:
    """Where a passing file of ours lies unless the format says otherwise, relative to the table."""
    return f"pwc/clean/.{name}.tmp"


def cache_file_path(name: str) -> str:
    """Where a lasting file of ours lies that nobody needs: whoever misses it does some work again."""
    return f"pwc/{name}.json"


@dataclass(frozen=True)
class SideFiles:
    """The files of ours beside one table, and whether data files are there."""

    label: str
    store: Store
    location: str
    temp_file_path: Callable[[str], str] = temp_file_path
    cache_file_path: Callable[[str], str] = cache_file_path

    # ------------------------------------------------------------ presence of data files

    @property
    def presence_is_cheap(self) -> bool:
        """Whether to look for a data file costs no request."""
        return self.store.looks_are_cheap

    @property
    def is_far(self) -> bool:
        """Whether requests to the store are worth doing at once. See ``core/together.py``."""
        return self.store.is_far

    def absent(self, paths: Sequence[str]) -> list[str]:
        """Those of the files that are not there. Paths are relative to the table."""

        def among(share: Sequence[str]) -> list[str]:
            return [path for path in share if not self.store.exists(self._full(path))]

        shares = [paths[start::_READERS] for start in range(min(_READERS, len(paths)))]
        if len(shares) < 2:
            return among(paths)
        with ThreadPoolExecutor(len(shares)) as readers:
            return [path for share in readers.map(among, shares) for path in share]

    # ------------------------------------------------------------ rows on their way to another table

    def new_kept_file(self, subject: str) -> str:
        """A path for rows that are kept for a while, relative to the table. Where nothing names it, it is an orphan."""
        return self.temp_file_path(new_temp_name(subject))

    def is_kept_file(self, path: str, subject: str) -> bool:
        """Whether a path is one that :meth:`new_kept_file` gives: a message may say anything."""
        found = re.search(rf"{subject}\.[0-9a-f]{{32}}", path)
        return found is not None and self.temp_file_path(found.group()) == path

    # ------------------------------------------------------------ deletions

    def intended_deletions(self) -> set[str]:
        """What cleaning says it is about to delete. Raises ``CommitConflictError`` where that cannot be read."""
        directory = self._full(self.temp_file_path("").rpartition("/")[0])
        doomed: set[str] = set()
        for name in self.store.list(directory):
            if is_deletion_intent(name):
                path = self.store.join(directory, name)
                try:
                    doomed |= decode_deletion_intent(self.store.read(path))
                except FileNotFoundError:
                    continue
                except ValueError as error:
                    raise CommitConflictError(
                        f"Cannot commit to {self.label}: somebody cleans it up, and the notice {path} cannot be read "
                        f"({error}). Nothing was committed. Remove it, and restart the query."
                    ) from error
        return doomed

    @contextmanager
    def announced_deletion(self, paths: Iterable[str]) -> Iterator[None]:
        """Say what is about to be deleted, for as long as the block runs."""
        intent = self._full(self.temp_file_path(new_temp_name()))
        self.store.write(intent, encode_deletion_intent(paths))
        try:
            yield
        finally:
            with suppress(PwcError, OSError):
                self.store.delete(intent)

    def store_clock_ms(self) -> int | None:
        """What time it is by the store's own clock. None where it does not tell how old files are."""
        path = self._full(self.temp_file_path(new_temp_name("clock")))
        self.store.write(path, b"")
        try:
            ages = [file.modified_ms for file in self.store.walk(path.rpartition("/")[0]) if file.path == path]
        finally:
            with suppress(PwcError, OSError):
                self.store.delete(path)
        return ages[0] if ages else None

    # ------------------------------------------------------------ caches

    def cache_path(self, name: str) -> str:
        """The full path of a cache, for sentences."""
        return self._full(self.cache_file_path(name))

    def read_cache(self, name: str) -> bytes:
        """Raises ``FileNotFoundError`` where there is none."""
        return self.store.read(self.cache_path(name))

    def write_cache(self, name: str, data: bytes) -> None:
        """It need not survive a power cut."""
        self.store.write_cache(self.cache_path(name), data)

    def _full(self, path: str) -> str:
        return self.store.join(self.location, path)
