"""Listeners for tests. They write down what they are told in a file, which outlives the process that tells them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paimon_sink.commit.dispatch import current_journal
from paimon_sink.commit.journal import ListenerProgress
from paimon_sink.listeners import CommitEvent, ListenerContext, WrittenPartition
from tests.support.lake import Lake

__all__ = ["MARKS", "RECORDER", "Marks", "Recorder", "Told", "heard", "seat_of", "with_listener", "with_recorder"]

RECORDER = "tests.support.listeners:Recorder"
MARKS = "tests.support.listeners:Marks"


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


def with_listener(lake: Lake, name: str, settings: Mapping[str, str], **extra: str) -> Lake:
    """The lake with one of the built-in listeners, by its name and settings."""
    own = {f"listener.{name}.{key}": value for key, value in settings.items()}
    return Lake(lake.options, lake.table, {**lake.extra, "listeners": name, **own, **extra})


def seat_of(lake: Lake, name: str) -> ListenerProgress:
    """What the table knows of a listener."""
    table = lake.open()
    return current_journal(table, "test", table.commits.load_head(commit_user="test").ledger.entries["test"]).listeners[
        name
    ]


def heard(notes: Path) -> list[Told]:
    lines = notes.read_text().splitlines() if notes.exists() else []
    found = [json.loads(line) for line in lines]
    return [Told(one["batch"], one["first"], one["snapshot"], one["state"], one["event"]) for one in found]


class Marks:
    """An action of mark-done that notes partitions. While a file ``broken`` stands beside its notes, it fails."""

    def __init__(self, context: ListenerContext) -> None:
        self._file = Path(context.settings["file"])

    def mark_done(self, partition: WrittenPartition) -> None:
        if (self._file.parent / "broken").exists():
            raise RuntimeError("nobody home")
        with self._file.open("a") as notes:
            notes.write(json.dumps([partition.path, dict(partition.values)]) + "\n")


class Twin(Recorder):
    """Another one."""


class Hoarder:
    """Wants to keep too much."""

    def __init__(self, context: ListenerContext) -> None:
        pass

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        return "x" * (1 << 16)


class NoListener:
    """Has no ears."""

    def __init__(self, context: ListenerContext) -> None:
        pass


class Exits(NoListener):
    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        raise SystemExit("enough")


class CannotSayWhy(NoListener):
    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        raise _SpeechlessError


class _SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


class DigsDeep(NoListener):
    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        nested: Any = []
        for _ in range(900):
            nested = [nested]
        return nested


class HalfACharacter(NoListener):
    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        raise OSError("cannot open /data/\udcff.csv")
