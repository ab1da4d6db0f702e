"""One writer of a race, as a process of its own: ``python -m tests.support.racer``, one JSON line in, one out.

It says that it is ready, waits for a line on its input, so that all start at once, and then commits as fast as it can.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Errand", "Report", "race"]

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Errand:
    """What one process does: ``commits`` batches of one row each, with ids from ``first_id`` on."""

    options: dict[str, str]
    table: str
    commit_user: str
    first_id: int
    commits: int
    writer: str = "paimon-sink"
    """``paimon-sink``, ``pypaimon``, or ``create``: only create the table."""


@dataclass(frozen=True)
class Report:
    """Ids whose commit was acknowledged, and the first words of what went wrong with the others."""

    acknowledged: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def race(errands: Sequence[Errand], *, timeout_s: float = 850) -> list[Report]:
    """Run all at once and collect what each was told."""
    with ExitStack() as stack:
        running = [stack.enter_context(_start(errand)) for errand in errands]
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=timeout_s)[0] for process in running]
    return [Report(**json.loads(answer)) for answer in answers]


def _start(errand: Errand) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.racer", json.dumps(asdict(errand))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _run(errand: Errand) -> Report:
    from tests.support import foreign
    from tests.support.lake import Lake, rows

    # pypaimon tells of every lost round; a race has thousands.
    logging.getLogger("pypaimon").setLevel(logging.ERROR)
    lake = Lake(errand.options, errand.table, {"commitUser": errand.commit_user})
    report = Report()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(errand.commits):
        row = errand.first_id + number
        try:
            if errand.writer == "create":
                report.acknowledged.append(len(lake.files_of([lake.write()])))
                continue
            if errand.writer == "pypaimon":
                foreign.append(lake, rows(row), commit_user=errand.commit_user, identifier=number)
            else:
                lake.append(number, rows(row))
            report.acknowledged.append(row)
        except Exception as error:  # noqa: BLE001 - the race counts them
            report.failures.append(f"{type(error).__name__}: {error}"[:300])
    return report


if __name__ == "__main__":
    json.dump(asdict(_run(Errand(**json.loads(sys.argv[1])))), sys.stdout)
