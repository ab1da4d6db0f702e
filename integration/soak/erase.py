"""``python -m integration.soak.erase``: deletes under fire. Two writers, a compaction, an expiry and an eraser.

Each is a process of its own on one table that is killed at random and started again; a writer then writes its last
batch again, as Spark would. The eraser deletes one customer after the other, each under an identifier of its own, and
looks that what was there before is gone. In the end every other row is there once, and the table is whole.
Exit status: 0 so it is, 1 something is wrong.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
import pyarrow as pa

from paimon_sink.core.errors import (
    CommitConflictError,
    CorruptTableError,
    FilesReplacedError,
    SnapshotExpiredError,
    TableNotFoundError,
)
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import BUILT_IN, open_table, parse_options
from paimon_sink.formats.values import NEWEST
from paimon_sink.maintain.choosing import Answer, in_threads
from paimon_sink.maintain.compact import compact_groups, plan
from paimon_sink.maintain.delete import DELETE, DeleteJob, conditions_of, delete_rows
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.groups import Group
from paimon_sink.maintain.verify import verify
from paimon_sink.sink import Sink
from paimon_sink.write.task import TaskSettings

USERS = 40
ERASED = 20
"""Of them, so many are deleted, again and again; the rows of the others stay."""
ROWS = 200
SCHEMA = pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("day", pa.string())])
_ROLES = ("writer-0", "writer-1", "compaction", "expiry", "eraser")
_PAUSE_S = 0.3


def options(directory: Path, table_format: str) -> dict[str, str]:
    return {
        "warehouse": str(directory / "lake"),
        "table": "soak.rows",
        "tableFormat": table_format,
        "partitionBy": "day",
    }


def opened(given: dict[str, str]) -> Table:
    return open_table(parse_options(given, purpose=Purpose.READ).table)


# ---------------------------------------------------------------- roles


def write(given: dict[str, str], directory: Path, number: int) -> None:
    """Batches one after the other. A batch is noted before it is begun, so that it is written again after a kill."""
    noted = directory / f"writer-{number}"
    batch = _noted(noted)
    sink = Sink.of({**given, "commitUser": f"writer-{number}"})
    while not (directory / "stop").exists():
        first = (2 * batch + number) * ROWS
        ids = list(range(first, first + ROWS))
        rows = pa.RecordBatch.from_pydict(
            {"id": ids, "customer": [each % USERS for each in ids], "day": [f"d{each % 3}" for each in ids]}, SCHEMA
        )
        message = sink.write(iter([rows]), schema=SCHEMA, task=TaskSettings(f"query-{number}", batch_id=batch))
        sink.commit([message], batch)
        batch += 1
        _note(noted, str(batch))
        time.sleep(_PAUSE_S)


def tend(chore: Callable[[Table], object], given: dict[str, str], directory: Path) -> None:
    while not (directory / "stop").exists():
        try:
            chore(opened(given))
        except (TableNotFoundError, CommitConflictError, FilesReplacedError):
            time.sleep(_PAUSE_S)
        time.sleep(_PAUSE_S)


def compact_all(table: Table) -> None:
    compact_groups(table, plan(table, target_bytes=1 << 20).groups)


def erase(given: dict[str, str], directory: Path) -> None:
    noted = directory / "erased"
    while not (directory / "stop").exists():
        done = _noted(noted)
        try:
            table = opened(given)
            erase_one(table, done % ERASED, done, before=_begun(directory, table, done))
        except TableNotFoundError:
            time.sleep(_PAUSE_S)
            continue
        _note(noted, str(done + 1))


def _begun(directory: Path, table: Table, number: int) -> set[int]:
    """The rows to be gone after the delete of that number, noted before its first try: one that comes after that try,
    and before its rerun, may stay."""
    noted = directory / "erasing"
    if noted.exists():
        begun = json.loads(noted.read_text())
        if begun["number"] == number:
            return set(begun["ids"])
    ids = _ids_of(table, number % ERASED)
    _note(noted, json.dumps({"number": number, "ids": sorted(ids)}))
    return ids


def erase_one(table: Table, customer: int, identifier: int, *, before: set[int]) -> None:
    """Delete a customer, and look that what was there before is gone."""
    where = f"customer = {customer}"
    done = delete_rows(table, where, DeleteJob("eraser", identifier), work=partial(_work, table, where))
    left = before & _ids_of(table, customer)
    assert not left, f"{len(left)} rows where {where} are left of {len(before)}: {done}"


def _ids_of(table: Table, customer: int) -> set[int]:
    for _ in range(20):
        try:
            rows = _rows(table, ["id", "customer"])
            return {row["id"] for row in rows if row["customer"] == customer}
        except (SnapshotExpiredError, CorruptTableError):
            # Its snapshot expired while it was read.
            time.sleep(_PAUSE_S)
    raise AssertionError("no snapshot stays long enough to be read")


def _work(table: Table, where: str, groups: Sequence[Group], write_anew: bool) -> list[Answer]:  # noqa: FBT001 - a Work
    return in_threads(table, groups, conditions_of(table, where), write=write_anew, to=DELETE)


def _rows(table: Table, columns: Sequence[str]) -> Iterator[dict[str, int]]:
    for split in table.scans.at(NEWEST).splits([]):
        for batch in table.scans.read_split(split, columns):
            yield from batch.to_pylist()


def _note(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def _noted(path: Path) -> int:
    return int(path.read_text()) if path.exists() else 0


def play(role: str, given: dict[str, str], directory: Path) -> None:
    if role.startswith("writer"):
        write(given, directory, int(role[-1]))
    elif role == "eraser":
        erase(given, directory)
    else:
        chore = compact_all if role == "compaction" else partial(expire, retention=Retention(keep_last=30))
        tend(chore, given, directory)


# ---------------------------------------------------------------- the soak


def start(role: str, table_format: str, directory: Path) -> subprocess.Popen[bytes]:
    log = (directory / f"{role}.log").open("ab")
    command = [sys.executable, "-m", "integration.soak.erase", "--role", role, "--format", table_format]
    return subprocess.Popen([*command, "--directory", str(directory)], stdout=log, stderr=log)


def fire(table_format: str, directory: Path, *, seconds: int, kill_every_s: float, rng: random.Random) -> int:
    """Let them run, kill some, and stop them all. How many were killed."""
    running = {role: start(role, table_format, directory) for role in _ROLES}
    kills, until = 0, time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            time.sleep(rng.uniform(0.5, 1.5) * kill_every_s)
            for role, process in running.items():
                if process.poll() not in (None, -signal.SIGKILL):
                    raise AssertionError(f"{role} ended: {(directory / f'{role}.log').read_text()[-3000:]}")
            victim = rng.choice(_ROLES)
            running[victim].kill()
            running[victim].wait()
            kills += 1
            running[victim] = start(victim, table_format, directory)
    finally:
        (directory / "stop").touch()
        for process in running.values():
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
    ended = {role: process.returncode for role, process in running.items() if process.returncode}
    if ended:
        role = next(iter(ended))
        raise AssertionError(f"{ended}: {(directory / f'{role}.log').read_text()[-3000:]}")
    return kills


def settle(given: dict[str, str], directory: Path) -> dict[str, int]:
    """Erase once more what was erased, now that nobody writes, and count."""
    table = opened(given)
    done = _noted(directory / "erased")
    # The last one that was begun may have landed.
    begun = json.loads((directory / "erasing").read_text())["number"] + 1 if (directory / "erasing").exists() else 0
    erased = {number % ERASED for number in range(max(done, begun))}
    for customer in erased:
        erase_one(table, customer, 1_000_000 + customer, before=_ids_of(table, customer))
    found = Counter(row["id"] for row in _rows(table, ["id"]))
    batches = [_noted(directory / f"writer-{number}") for number in (0, 1)]
    expected = {
        each
        for number, count in enumerate(batches)
        for batch in range(count)
        for each in range((2 * batch + number) * ROWS, (2 * batch + number + 1) * ROWS)
        if each % USERS not in erased
    }
    return {
        "batches": sum(batches),
        "deletes": done,
        "rows": len(found),
        "lost": len(expected - found.keys()),
        "twice": sum(count > 1 for count in found.values()),
        # A batch that landed and was not noted yet is no row too many.
        "of_erased": sum(each % USERS in erased for each in found),
        "problems": len(verify(table, deep=True).problems),
        "snapshots": len(table.upkeep.history()),
    }


@click.command("erase", help=__doc__)
@click.option("--seconds", type=click.IntRange(min=1), default=300, show_default=True)
@click.option("--kill-every", type=float, default=4.0, show_default=True, help="Seconds between two kills, about.")
@click.option("--seed", type=int, default=0)
@click.option("--format", "table_format", type=click.Choice(list(BUILT_IN)), default="paimon", show_default=True)
@click.option("--role", type=click.Choice(_ROLES), hidden=True)
@click.option("--directory", type=click.Path(path_type=Path))
def main(
    *, seconds: int, kill_every: float, seed: int, table_format: str, role: str | None, directory: Path | None
) -> None:
    if role is not None:
        assert directory is not None
        play(role, options(directory, table_format), directory)
        return
    place = Path(tempfile.mkdtemp(prefix="pwc-erase-", dir=directory))
    rng = random.Random(seed)
    kills = fire(table_format, place, seconds=seconds, kill_every_s=kill_every, rng=rng)
    figures = {"format": table_format, "kills": kills, **settle(options(place, table_format), place)}
    click.echo(json.dumps(figures))
    wrong = any(figures[name] for name in ("lost", "twice", "of_erased", "problems"))
    if not wrong:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
