"""Actions that mark a partition done: a file in it, an entry in its catalog, a class of the user's.

Each may run twice for the same partition: they are idempotent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import unquote

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.events import WrittenPartition
from paimon_sink.core.strict_json import as_whole, read_json
from paimon_sink.listen.loading import ListenerContext, load_by_path
from paimon_sink.listen.table import ListenerTable

__all__ = ["SUCCESS_FILE", "Action", "DonePartition", "SuccessFile", "UnavailableError", "custom_action"]

SUCCESS_FILE = "_SUCCESS"
_DONE = ".done"


class Action(Protocol):
    """Marks partitions done. ``mark_done`` must be idempotent."""

    def mark_done(self, partition: WrittenPartition) -> None: ...


class UnavailableError(PwcError):
    """The action fails for every partition at the moment: trying the others would only take time."""


class SuccessFile:
    """A file ``_SUCCESS`` in the partition's directory, as Paimon's engines write and read it."""

    def __init__(self, table: ListenerTable, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or SystemClock()

    def mark_done(self, partition: WrittenPartition) -> None:
        path = f"{partition.path}/{SUCCESS_FILE}"
        now_ms = self._clock.now_ms()
        created_ms = self._created_ms(path)
        body = {"creationTime": now_ms if created_ms is None else created_ms, "modificationTime": now_ms}
        self._table.write_file(path, json.dumps(body, indent=2).encode("utf-8"))

    def _created_ms(self, path: str) -> int | None:
        try:
            return as_whole(read_json(self._table.read_file(path))["creationTime"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            # Other engines leave empty files of this name, without a creation time.
            return None


class DonePartition:
    """A partition ``dt=2024-01-01.done`` in the catalog, beside ``dt=2024-01-01``."""

    def __init__(self, table: ListenerTable) -> None:
        if not table.keeps_partitions:
            raise OptionError(
                f"Cannot mark partitions of {table.label} done by done-partition: its catalog keeps no list of "
                "partitions. Use success-file or http-report, or a REST catalog and a table with "
                "metastore.partitioned-table=true."
            )
        self._table = table

    def mark_done(self, partition: WrittenPartition) -> None:
        # Spelled as in the directory, as Paimon's engines name partitions to a catalog: null has a name there.
        parts = (part.partition("=") for part in partition.path.split("/"))
        spec = {unquote(key): unquote(value) for key, _, value in parts}
        last = list(spec)[-1]
        self._table.add_partition({**spec, last: f"{spec[last]}{_DONE}"})


def custom_action(path: str, context: ListenerContext, settings: Mapping[str, str]) -> Action:
    """A class of the user's, made from a context as a listener is, with the settings after ``custom.``."""
    made: Any = load_by_path(path, what="action")(ListenerContext(context.name, settings, context.table))
    if not callable(getattr(made, "mark_done", None)):
        raise OptionError(f"The action {path} has no method mark_done(partition).")
    action: Action = made
    return action
