"""Claims: one empty file for each try at a batch, written before its put, read only when the ledger is lost.

Another engine may commit and then expire every snapshot of ours, and with them the ledger. A claim outlives that. It
cannot tell whether a try landed, but where there is none, the batch was never tried, and that is enough to go on.

They live in ``pwc/`` beside the table's own directories, where no engine cleans up. All is in the name, so one listing
answers: ``<batch>.<query>.<commit id>``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from paimon_sink.formats.ledger import Claim, Register
from paimon_sink.formats.paimon.numbered import number
from paimon_sink.storage.store import Store

__all__ = ["ClaimFiles"]


@dataclass(frozen=True)
class ClaimFiles:
    """The claims on one table, as one identity of it: a table made anew does not inherit them."""

    store: Store
    location: str
    table_identity: str

    def add(self, claim: Claim) -> None:
        self.store.write(self._path(claim), b"")

    def remove(self, claim: Claim) -> None:
        self.store.delete(self._path(claim))

    def of(self, commit_user: str) -> list[Claim]:
        names = [name.split(".") for name in self.store.list(self._directory(commit_user))]
        return [
            Claim(commit_user, batch_id, unquote(name[1]) or None, name[2])
            for name in names
            if len(name) == 3 and (batch_id := number(name[0])) is not None
        ]

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
