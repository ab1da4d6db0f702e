"""A stream that meets a full disk, as a process of its own: ``python -m tests.support.small_disk DIRECTORY real|fake``.

On a real small filesystem a file of ballast fills it. The last line of the output is what was heard, as JSON.
"""

from __future__ import annotations

import json
import random
import string
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from paimon_sink.core.errors import PwcError
from tests.support.full_disk import filling_disk
from tests.support.lake import Lake, rows

__all__: list[str] = []


class Ballast:
    """A file that takes what is left of a real disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def fill(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            try:
                while file.write(b"." * 4096):
                    pass
            except OSError:
                return

    def make_room(self) -> None:
        self._path.unlink()


def incompressible(row: int, *, size: int) -> pa.RecordBatch:
    letters = random.Random(row).choices(string.ascii_letters + string.digits, k=size)
    return rows(row, day="".join(letters))


def heard(action: Callable[[], object]) -> list[str]:
    """The kind of the error and its words."""
    try:
        action()
    except PwcError as error:
        return [type(error).__name__, str(error)]
    return []


def main(directory: str, kind: str) -> None:
    lake = Lake({"warehouse": f"{directory}/warehouse"})
    with ExitStack() as stack:
        disk = stack.enter_context(filling_disk()) if kind == "fake" else Ballast(Path(directory) / "ballast")
        lake.append(0, rows(0))
        if kind == "fake":
            disk.fill()
        task = heard(lambda: lake.write(incompressible(1, size=3 << 20)))
        if kind == "fake":
            disk.make_room()
        message = lake.write(rows(1))
        disk.fill()
        driver = heard(lambda: lake.commit(1, message))
        disk.make_room()
        between = lake.ids()
        lake.append(1, rows(1))
    found = {"task": task, "driver": driver, "between": between, "ids": lake.ids(), "files": lake.data_files()}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
