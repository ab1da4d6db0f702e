"""A reading or deleting task in a process of its own, and how much memory that process took at its peak.

The task is what Spark runs, without Spark: it plans the table, and takes batch after batch, or writes what holds rows
to delete anew. Nothing is imported here that a task would not need.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.peak import peak_bytes
from paimon_sink import PwcDataSource
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.choosing import in_threads
from paimon_sink.maintain.delete import DELETE, DeleteJob, conditions_of, delete_rows, open_to_delete

__all__ = ["ReadTask", "run"]

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class ReadTask:
    """What one task took."""

    before_bytes: int
    """With all imports done, after a table of one row."""
    peak_bytes: int
    rows: int


def run(first: Mapping[str, str], options: Mapping[str, str], *, rows: int, where: str | None = None) -> ReadTask:
    """One task on a table of so many rows, which it reads, or deletes where. The process has done the same with
    another table, the first, before."""
    work = {"first": dict(first), "options": dict(options), "where": where}
    command = [sys.executable, __file__, json.dumps(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode:
        raise RuntimeError(f"The task failed:\n{done.stderr}")
    task = ReadTask(**json.loads(done.stdout))
    if task.rows != rows:
        raise RuntimeError(f"The table has {rows:,} rows, and the task met {task.rows:,}.")
    return task


def _work(first: Mapping[str, str], options: Mapping[str, str], where: str | None) -> ReadTask:
    """In the process that is measured. A first table brings all imports: libraries are loaded where they are used."""
    work = _read if where is None else partial(_delete, where)
    work(first)
    before = peak_bytes()
    rows = work(options)
    return ReadTask(before, peak_bytes(), rows)


def _read(options: Mapping[str, str]) -> int:
    source = PwcDataSource(dict(options))
    reader = source.reader(source.schema())
    return sum(batch.num_rows for partition in reader.partitions() for batch in reader.read(partition))


def _delete(where: str, options: Mapping[str, str]) -> int:
    """In this process: on Spark a task does the same with each file."""
    given = parse_options(options, purpose=Purpose.BATCH_WRITE)
    table = open_to_delete(given, where)
    work = partial(in_threads, conditions=conditions_of(table, where), to=DELETE)
    job = DeleteJob()
    return delete_rows(table, where, job, work=lambda groups, write: work(table, groups, write=write)).rows


if __name__ == "__main__":
    print(json.dumps(vars(_work(**json.loads(sys.argv[1])))))
