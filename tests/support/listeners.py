"""Listeners for tests. They write down what they are told in a file, which outlives the process that tells them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paimon_sink.listeners import CommitEvent, ListenerContext
from tests.support.lake import Lake

__all__ = ["RECORDER", "Recorder", "Told", "heard", "with_recorder"]

RECORDER = "tests.support.listeners:Recorder"


@dataclass(frozen=True)
class Told:
    """One telling: the batches, and the state that came with them."""

    batch_id: int
    first_batch_id: int
    snapshot_id: int
    state: Any
    event: dict[str, Any]


class Recorder:
    """Notes each telling and counts batches in its state. While a file ``broken`` stands beside its notes, it fails."""

    def __init__(self, context: ListenerContext) -> None:
        self._file = Path(context.settings["file"])

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        said = {
            "batch": event.batch_id,
            "first": event.first_batch_id,
            "snapshot": event.snapshot_id,
            "state": state,
            "event": {
                "rows": event.rows,
                "replays": event.replays,
                "watermark": event.watermark_ms,
                "partitions": [dict(partition.values) for partition in event.partitions],
                "paths": [partition.path for partition in event.partitions],
                "timings": sorted(event.timings_ms),
            },
        }
        with self._file.open("a") as notes:
            notes.write(json.dumps(said) + "\n")
        if (self._file.parent / "broken").exists():
            raise RuntimeError("nobody home")
        return {"batches": [*(state or {"batches": []})["batches"], event.batch_id]}


def with_recorder(lake: Lake, notes: Path, **extra: str) -> Lake:
    return Lake(
        lake.options,
        lake.table,
        {**lake.extra, "listeners": RECORDER, f"listener.{RECORDER}.file": str(notes), **extra},
    )


def heard(notes: Path) -> list[Told]:
    lines = notes.read_text().splitlines() if notes.exists() else []
    found = [json.loads(line) for line in lines]
    return [Told(one["batch"], one["first"], one["snapshot"], one["state"], one["event"]) for one in found]


class Twin(Recorder):
    """Another one."""


class Hoarder:
    """Wants to keep too much."""

    def __init__(self, context: ListenerContext) -> None:
        pass

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        return "x" * (1 << 16)
