"""Decides when a partition is done: its time is over, and it was not written to for a while. Pure.

The rule is Paimon's: with ``last`` the later of the last write and the end of the partition's time, it is done once
``now - last > idle``. By watermark, ``now`` and the last write are watermarks; by process time, they are clock times.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paimon_sink.core.errors import PwcError
from paimon_sink.core.events import WrittenPartition
from paimon_sink.core.strict_json import as_text, as_whole, read_json

__all__ = ["Pending", "Waiting", "decode", "encode"]

MOST_SKIPPED = 20
"""This many partitions without a time are remembered by name, and logged once."""
_LONGEST_PLAIN = 32 << 10
_MOST = 64 << 10
_MOST_UNPACKED = 16 << 20


@dataclass(frozen=True)
class Waiting:
    """A partition that was written to and is not done."""

    partition: WrittenPartition
    last_ms: int | None
    """Of the last write. None where there was no watermark yet: then its time alone counts."""


@dataclass(frozen=True)
class Pending:
    """Partitions that are not done yet, by path, and those that never will be: their values name no time."""

    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    skipped: Sequence[str] = ()

    def written(self, partitions: Iterable[WrittenPartition], now_ms: int | None) -> Pending:
        """Adds these partitions, or restarts their wait. One that was done before waits again."""
        new = {partition.path: Waiting(partition, now_ms) for partition in partitions}
        return Pending({**self.waiting, **new}, self.skipped)

    def split(
        self, now_ms: int | None, *, start_ms: Callable[[WrittenPartition], int | None], interval_ms: int, idle_ms: int
    ) -> tuple[Pending, list[WrittenPartition], list[str]]:
        """What still waits, what is done now, and the paths that are skipped for the first time."""
        waiting: dict[str, Waiting] = {}
        done: list[WrittenPartition] = []
        skipped: list[str] = []
        for path, each in sorted(self.waiting.items()):
            begins_ms = start_ms(each.partition)
            if begins_ms is None:
                skipped.append(path)
                continue
            end_ms = begins_ms + interval_ms
            last_ms = end_ms if each.last_ms is None else max(each.last_ms, end_ms)
            if now_ms is not None and now_ms - last_ms > idle_ms:
                done.append(each.partition)
            else:
                waiting[path] = each
        room = MOST_SKIPPED - len(self.skipped)
        new = [path for path in skipped if path not in self.skipped][: max(room, 0)]
        return Pending(waiting, (*self.skipped, *new)), done, new


# ---------------------------------------------------------------- as a listener's state


def encode(pending: Pending) -> Any:
    """For the ledger. Most partitions are stored by their path alone; a long list is compressed."""
    state = {
        "pending": [
            [path, each.last_ms, *(() if _is_its_path(each.partition) else (dict(each.partition.values),))]
            for path, each in pending.waiting.items()
        ],
        "skipped": list(pending.skipped),
    }
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8")) <= _LONGEST_PLAIN:
        return state
    packed = base64.b85encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
    if len(packed) > _MOST - 100:
        raise PwcError(
            f"{len(pending.waiting)} partitions wait to be marked done, more than can be kept in the table. Shorten "
            "idle-time or time-interval, or find out why none of them is done."
        )
    return {"packed": packed}


def decode(state: Any) -> Pending:
    """Read it back, or refuse it: a guess could leave a partition unmarked."""
    if state is None:
        return Pending()
    try:
        if "packed" in state:
            state = read_json(zlib.decompressobj().decompress(base64.b85decode(state["packed"]), _MOST_UNPACKED))
        waiting = (_waiting(fields) for fields in state["pending"])
        return Pending(
            {each.partition.path: each for each in waiting}, tuple(as_text(path) for path in state["skipped"])
        )
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        raise PwcError(
            f"Cannot read which partitions wait to be marked done ({error}). Leave mark-done out of the option "
            "listeners for one batch, and it starts anew."
        ) from error


def _waiting(fields: Any) -> Waiting:
    path, last_ms, *values = fields
    by_key: dict[str, str | None]
    if values:
        (stored,) = values
        by_key = {key: None if value is None else as_text(value) for key, value in stored.items()}
    else:
        parts = (part.partition("=") for part in as_text(path).split("/"))
        by_key = {key: value for key, _, value in parts}
    return Waiting(WrittenPartition(as_text(path), by_key), None if last_ms is None else as_whole(last_ms))


def _is_its_path(partition: WrittenPartition) -> bool:
    return partition.path == "/".join(f"{key}={value}" for key, value in partition.values.items()) and not any(
        "/" in str(value) or value is None or "/" in key or "=" in key for key, value in partition.values.items()
    )
