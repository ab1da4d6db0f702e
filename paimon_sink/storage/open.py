"""From a location to its store."""

from __future__ import annotations

from paimon_sink.storage.local import LocalStore
from paimon_sink.storage.location import LOCAL, parse_location
from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store


def open_store(location: str, settings: StorageSettings) -> Store:
    """Open the store of ``location``. Raises ``StorageError`` when it is unknown, not installed or unsafe."""
    parsed = parse_location(location)
    if parsed.protocol == LOCAL:
        return LocalStore(parsed.root, settings)
    return RemoteStore(parsed.protocol, parsed.root, settings)
