"""A listener whose name is in the samples, with events that it was never told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paimon_sink.listeners import CommitEvent, ListenerContext

__all__ = ["Notes"]


class Notes:
    """Notes each batch and remembers them all in its state. Without a file it fails."""

    def __init__(self, context: ListenerContext) -> None:
        self._file = context.settings.get("file")

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        if self._file is None:
            raise RuntimeError("nobody home")
        days = sorted(str(partition.values["day"]) for partition in event.partitions)
        with Path(self._file).open("a") as notes:
            notes.write(json.dumps([event.batch_id, event.rows, event.watermark_ms, days, state]) + "\n")
        return [*(state or []), event.batch_id]
