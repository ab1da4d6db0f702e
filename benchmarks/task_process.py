"""A task in a process of its own: how long it takes, and how much memory that process took at its peak."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.peak import peak_bytes
from benchmarks.rows import SCHEMA, batches
from tests.support.lake import Lake
from tests.support.tasks import write

__all__ = ["Task", "run"]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Task:
    """What one task took."""

    before_bytes: int
    """With all imports done and nothing written."""
    peak_bytes: int
    seconds: float
    files: int


def run(options: Mapping[str, str], rows: int, *, quantities: int = 100) -> Task:
    """One task, on a table of its own."""
    with tempfile.TemporaryDirectory(prefix="pwc-task-") as directory:
        work = {"options": {"warehouse": directory, **options}, "rows": rows, "quantities": quantities}
        command = [sys.executable, __file__, json.dumps(work)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"The task failed:\n{done.stderr}")
    return Task(**json.loads(done.stdout))


def _work(options: Mapping[str, str], rows: int, quantities: int) -> Task:
    """In the process that is measured. A first row brings all imports: libraries are loaded where they are used."""
    write(Lake(options, "bench.first"), batches(1), SCHEMA)
    before, started = peak_bytes(), time.perf_counter()
    message = write(Lake(options, "bench.task"), batches(rows, quantities=quantities), SCHEMA)
    seconds = time.perf_counter() - started
    assert sum(file.rows for file in message.files) == rows
    return Task(before, peak_bytes(), seconds, len(message.files))


if __name__ == "__main__":
    print(json.dumps(vars(_work(**json.loads(sys.argv[1])))))
