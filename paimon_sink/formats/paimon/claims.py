"""Claims: one small file for each try at a batch, written before its put, read only when the ledger is lost.

Another engine may commit and then expire every snapshot of ours, and with them the ledger. A claim outlives that. It
cannot tell whether a try landed, but where there is none, the batch was never tried, and that is enough to go on.

They live in ``pwc/`` beside the table's own directories, where no engine cleans up. What was tried is in the name:
``<batch>.<query>.<commit id>``. Inside may stand the newest snapshot of that moment. If all snapshots since are there
and none of them is the try's, it is not in, and jobs that run at the same time do not stand in each other's way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import StorageError
from paimon_sink.core.properties import COMMIT_ID
from paimon_sink.formats.ledger import Claim, Register
from paimon_sink.formats.paimon.numbered import number
from paimon_sink.storage.store import Store

_MOST_SNAPSHOTS = 100
"""How many are read to see that a try is not in."""


@dataclass(frozen=True)
class ClaimFiles:
    """The claims on one table, as one identity of it: a table made anew does not inherit them."""

    store: Store
    location: str
    table_identity: str

    def add(self, claim: Claim) -> None:
        try:
            self.store.write(self._path(claim), b"" if claim.base is None else str(claim.base).encode("ascii"))
        except StorageError as error:
            # The sentence has the reason, and is not to be looked for below two tracebacks.
            raise StorageError(f"{error} (the record of a try at a batch). Nothing was committed.") from None

    def remove(self, claim: Claim) -> None:
        self.store.delete(self._path(claim))

    def that_may_be_in(
        self, commit_user: str, newest: Snapshot | None, read: Callable[[int], Snapshot | None]
    ) -> list[Claim]:
        """The tries of a user, without those that are known not to be in as of the newest snapshot."""
        return [claim for claim in self._of(commit_user) if not _is_out(claim, newest, read)]

    def _of(self, commit_user: str) -> Iterator[Claim]:
        directory = self._directory(commit_user)
        for name in self.store.list(directory):
            parts = name.split(".")
            batch_id = number(parts[0]) if len(parts) == 3 else None
            if batch_id is None:
                continue
            try:
                base = number(self.store.read(self.store.join(directory, name)).decode("ascii", "replace"))
            except FileNotFoundError:
                # Released since the listing: the try failed, or a commit that came after our look speaks for it.
                continue
            yield Claim(commit_user, batch_id, unquote(parts[1]) or None, parts[2], base)

    def register(self) -> Register:
        """What it means to have none: each user of ours that ever tried a batch keeps the claim of its highest."""
        return Register.WHOLE if next(self.paths(), None) is not None else Register.EMPTY

    def paths(self) -> Iterator[str]:
        """Every claim on the table as it is."""
        root = self.store.join(self.location, "pwc", "claims", self.table_identity)
        for user in self.store.list(root):
            yield from (self.store.join(root, user, name) for name in self.store.list(self.store.join(root, user)))

    def spent(self, settled: Iterable[str]) -> set[str]:
        """Of claims whose tries are over, those that a later one of the same user and query speaks for.

        A try that is under way speaks for nobody: its claim is taken back should it fail.
        """
        by_query: dict[str, list[tuple[int, str]]] = {}
        for path in settled:
            directory, _, name = path.rpartition("/")
            parts = name.split(".")
            batch_id = number(parts[0]) if len(parts) == 3 else None
            if batch_id is not None:
                by_query.setdefault(f"{directory}/{parts[1]}", []).append((batch_id, path))
        return {path for claims in by_query.values() for batch_id, path in claims if batch_id < max(claims)[0]}

    def _path(self, claim: Claim) -> str:
        query = quote(claim.query_id or "", safe="").replace(".", "%2E")
        name = f"{claim.batch_id}.{query}.{claim.commit_id}"
        return self.store.join(self._directory(claim.commit_user), name)

    def _directory(self, commit_user: str) -> str:
        user = hashlib.sha256(commit_user.encode("utf-8")).hexdigest()[:32]
        return self.store.join(self.location, "pwc", "claims", self.table_identity, user)


def _is_out(claim: Claim, newest: Snapshot | None, read: Callable[[int], Snapshot | None]) -> bool:
    """Whether all snapshots since the try began are there, and none of them is its."""
    if claim.base is None or newest is None or newest.id - claim.base > _MOST_SNAPSHOTS:
        return False
    since = (newest if number == newest.id else read(number) for number in range(claim.base + 1, newest.id + 1))
    return all(snapshot is not None and _commit_id(snapshot) != claim.commit_id for snapshot in since)


def _commit_id(snapshot: Snapshot) -> str | None:
    return (snapshot.properties or {}).get(COMMIT_ID)
