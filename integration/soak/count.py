"""What is in the table after the last kill: every row counted, every snapshot looked at, ``pwc verify`` asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from integration.soak.kills import PlannedKill
from integration.soak.place import BATCH_WRITER, ROWS_A_BATCH, STREAMS, Place, first_id
from paimon_sink import errors
from paimon_sink.core.errors import RefusedError
from tests.support.lake import Lake

__all__ = ["Figures", "count", "ids_of", "is_refusal", "remove", "save", "verified"]

_VERIFY_WITHIN_S = 900.0


@dataclass(frozen=True)
class Figures:
    """What a soak counted."""

    seed: int
    seconds: float
    kills: dict[str, int]
    kills_at_a_step: dict[str, int]
    """Those of them that were placed at a named step of a write or a commit."""
    driver_restarts: int
    worker_restarts: int
    query_restarts: dict[str, int]
    refusals: dict[str, int]
    batches: dict[str, int]
    snapshots: int
    batches_published_twice: int
    replays_recognised: int
    rows_sent: int
    rows_in_table: int
    missing: int
    doubled: int
    unknown: int
    files_left_behind: int
    verify_problems: list[Any] = field(default_factory=list)
    chores: dict[str, int] | None = None
    """How often each was done to some effect. None where the table was left alone."""
    chores_failed: list[str] = field(default_factory=list)
    metadata_files: int = 0
    """What lies between the snapshots and the data in the end."""

    def wrongs(self) -> list[str]:
        """Everything that must not be. Empty when all is well."""
        batches = sum(self.batches.values())
        found = [
            (self.missing, f"{self.missing:,} missing rows"),
            (self.doubled, f"{self.doubled:,} doubled rows"),
            (self.unknown, f"{self.unknown:,} rows that nobody sent"),
            (self.batches_published_twice, f"{self.batches_published_twice:,} batches published more than once"),
            (
                self.chores is None and self.snapshots != batches,
                f"{self.snapshots:,} snapshots for {batches:,} batches",
            ),
            (self.chores_failed, f"chores that failed ({'; '.join(self.chores_failed[:3])})"),
            (self.refusals, f"batches refused that should have been taken ({_in_words(self.refusals)})"),
            (self.verify_problems, f"{len(self.verify_problems):,} problems found by pwc verify"),
        ]
        return [text for wrong, text in found if wrong]


def count(
    place: Place,
    lake: Lake,
    *,
    batches_fed: Mapping[str, int],
    kills: Sequence[PlannedKill],
    driver_restarts: int,
    worker_restarts: int,
    tidy: bool,
    seed: int,
    seconds: float,
) -> Figures:
    sent = {**batches_fed, BATCH_WRITER: place.batch_jobs_done()}
    ids = ids_of(lake)
    distinct = pc.unique(ids)
    expected = pa.chunked_array(
        [range(first_id(writer), first_id(writer) + batches * ROWS_A_BATCH) for writer, batches in sent.items()],
        pa.int64(),
    )
    found = pc.sum(pc.is_in(expected, value_set=distinct)).as_py() or 0
    events = place.events()
    restarts = [event for event in events if event["event"] == "restart"]
    history = lake.history()
    published = Counter((one.commit_user, one.batch_id) for one in history if one.batch_id is not None)
    report = verified(lake)
    chores = Counter(event["chore"] for event in events if event["event"] == "chore" and event["done"])
    return Figures(
        seed=seed,
        seconds=round(seconds, 1),
        kills=dict(Counter(kill.kind for kill in kills)),
        kills_at_a_step=dict(Counter(kill.kind for kill in kills if kill.step is not None)),
        driver_restarts=driver_restarts,
        worker_restarts=worker_restarts,
        query_restarts=dict(Counter(event["writer"] for event in restarts)),
        refusals=dict(Counter(event["error"] for event in restarts if is_refusal(event["error"]))),
        batches={**{stream: place.batches_logged(stream) for stream in STREAMS}, BATCH_WRITER: sent[BATCH_WRITER]},
        snapshots=len(history),
        batches_published_twice=sum(1 for times in published.values() if times > 1),
        replays_recognised=sum(1 for event in events if event["event"] == "replay recognised"),
        rows_sent=len(expected),
        rows_in_table=len(ids),
        missing=len(expected) - found,
        doubled=len(ids) - len(distinct),
        unknown=len(distinct) - found,
        files_left_behind=len(report["orphans"]),
        verify_problems=report["problems"],
        chores=dict(chores) if tidy else None,
        chores_failed=[f"{event['chore']}: {event['text']}" for event in events if event["event"] == "chore failed"],
        metadata_files=sum(not path.endswith(".parquet") for path in lake.files()),
    )


def save(lake: Lake, place: Place) -> None:
    """Copy the table out of its store, which does not outlive the soak, to where ``pwc verify`` can read it."""
    database, name = lake.table.split(".")
    table = lake.open()
    for path in table.store.walk_files(table.location):
        relative = path.removeprefix(table.location.rstrip("/") + "/")
        target = place.saved_warehouse / f"{database}.db" / name / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(table.store.read(path))


def remove(lake: Lake) -> None:
    """The store may be one that others use."""
    table = lake.open()
    table.store.delete_many(list(table.store.walk_files(table.location)))


def ids_of(lake: Lake) -> pa.ChunkedArray:
    table = lake.open()
    columns = [
        batch.column("id") for split in table.scans.plan_splits([]) for batch in table.scans.read_split(split, ["id"])
    ]
    return pa.chunked_array(columns, pa.int64())


def verified(lake: Lake) -> dict[str, list[Any]]:
    """The problems and the orphans that ``pwc verify`` names, as people run it."""
    options = {key: value for key, value in lake.options.items() if key != "warehouse"}
    command = [sys.executable, "-m", "paimon_sink.cli.main", "verify", "--deep", "--json"]
    command += ["--warehouse", lake.options["warehouse"], "--table", lake.table]
    command += [part for key, value in options.items() for part in ("--option", f"{key}={value}")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_VERIFY_WITHIN_S, check=False)
    try:
        said = json.loads(ended.stdout)
        found: dict[str, list[Any]] = {"problems": said["problems"], "orphans": said["orphans"]}
    except (ValueError, KeyError, TypeError):
        found = {"problems": [], "orphans": []}
    if ended.returncode != 0 and not found["problems"]:
        found["problems"] = [f"pwc verify ended with status {ended.returncode}: {ended.stderr.strip()[-300:]}"]
    return found


def is_refusal(name: str | None) -> bool:
    kind = getattr(errors, name or "", None)
    return isinstance(kind, type) and issubclass(kind, RefusedError)


def _in_words(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {times}" for name, times in counted.items())
