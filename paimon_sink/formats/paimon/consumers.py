"""Consumers of a Paimon table: small files in ``consumer/``, in the form that Paimon's own engines write and heed.

Beside the next snapshot they hold whose they are and when they were written. Java passes over what it does not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.strict_json import as_count, as_text, as_whole, read_json
from paimon_sink.formats.lineage import Consumer, Consumers
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.storage.store import Store

_DIRECTORY, _PREFIX = "consumer", "consumer-"
_NEXT, _OURS = "nextSnapshot", "pwc"


@dataclass(frozen=True)
class PaimonConsumers(Consumers):
    """The ``consumer/`` directory of a table."""

    store: Store
    location: str
    snapshots: SnapshotFiles

    def all(self) -> list[Consumer]:
        names = self.store.list(self.store.join(self.location, _DIRECTORY))
        found = (self._read(name.removeprefix(_PREFIX)) for name in names if name.startswith(_PREFIX))
        return [consumer for consumer in found if consumer is not None]

    def find(self, name: str) -> Consumer | None:
        try:
            return self._read(name)
        except CorruptTableError:
            # Whoever wrote it broke off. It holds nothing back that could be named.
            return None

    def put(self, consumer: Consumer) -> bool:
        if self.snapshots.read(consumer.snapshot_id) is None:
            return False
        ours = {"key": consumer.key, "atMs": consumer.at_ms, "keepMs": consumer.keep_ms}
        body = {_NEXT: consumer.snapshot_id, _OURS: ours}
        self.store.write(self._path(consumer.name), json.dumps(body).encode("utf-8"))
        return True

    def drop(self, name: str) -> None:
        self.store.delete(self._path(name))

    def _read(self, name: str) -> Consumer | None:
        path = self._path(name)
        try:
            body = read_json(self.store.read(path))
            snapshot_id = as_whole(body[_NEXT])
            ours = body.get(_OURS)
            if ours is None:
                return Consumer(name, snapshot_id)
            return Consumer(name, snapshot_id, as_text(ours["key"]), as_count(ours["atMs"]), as_count(ours["keepMs"]))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptTableError(
                f"Cannot read the consumer {path} ({error!r}), so nobody knows what it still needs. No snapshot was "
                "removed. Reset or delete the consumer."
            ) from error

    def _path(self, name: str) -> str:
        return self.store.join(self.location, _DIRECTORY, f"{_PREFIX}{name}")
