"""A reading task in a process of its own, and how much memory that process took at its peak.

The task is what Spark runs, without Spark: it plans the table, and takes batch after batch. Nothing is imported here
that a task would not need.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.peak import peak_bytes
from paimon_sink import PwcDataSource

__all__ = ["ReadTask", "run"]

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class ReadTask:
    """What one task took."""

    before_bytes: int
    """With all imports done, after a table of one row."""
    peak_bytes: int
    rows: int


def run(first: Mapping[str, str], options: Mapping[str, str], *, rows: int) -> ReadTask:
    """One task on a table of so many rows. The process has read another table, the first, before."""
    command = [sys.executable, __file__, json.dumps({"first": dict(first), "options": dict(options)})]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode:
        raise RuntimeError(f"The task failed:\n{done.stderr}")
    task = ReadTask(**json.loads(done.stdout))
    if task.rows != rows:
        raise RuntimeError(f"The table has {rows:,} rows, and the task read {task.rows:,}.")
    return task


def _work(first: Mapping[str, str], options: Mapping[str, str]) -> ReadTask:
    """In the process that is measured. A first table brings all imports: libraries are loaded where they are used."""
    _read(first)
    before = peak_bytes()
    rows = _read(options)
    return ReadTask(before, peak_bytes(), rows)


def _read(options: Mapping[str, str]) -> int:
    source = PwcDataSource(dict(options))
    reader = source.reader(source.schema())
    return sum(batch.num_rows for partition in reader.partitions() for batch in reader.read(partition))


if __name__ == "__main__":
    print(json.dumps(vars(_work(**json.loads(sys.argv[1])))))
