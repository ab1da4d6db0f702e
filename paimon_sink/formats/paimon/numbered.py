"""Paimon numbers its schema and snapshot files by name."""

from __future__ import annotations

from paimon_sink.storage.store import Store


def number(text: str) -> int | None:
    """The id a text spells, or None. Not everything that Python takes for digits is one, nor is 02 a name for 2."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 19
    return int(text) if is_number and str(int(text)) == text else None


def numbers(store: Store, directory: str, prefix: str) -> list[int]:
    """The ids of the files ``<prefix><id>`` in a directory, in order. Temporary and foreign files are passed over."""
    ids = (number(name.removeprefix(prefix)) for name in store.list(directory) if name.startswith(prefix))
    return sorted(value for value in ids if value is not None)
