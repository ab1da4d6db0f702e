"""The demo's directory: what is where, and what the table and Spark's checkpoint in it say."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_sink.core.errors import OptionError, TableNotFoundError
from paimon_sink.core.options import Purpose
from paimon_sink.core.properties import FILES
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options

__all__ = ["FILES_A_BATCH", "TABLE", "KillOrder", "Place", "Published"]

TABLE = "shop.orders"
FILES_A_BATCH = 2
_MARK = ".pwc-demo"


@dataclass(frozen=True)
class KillOrder:
    """Kill the driver when ``batch_id`` reaches the step of that name."""

    step: str
    batch_id: int


@dataclass(frozen=True)
class Published:
    """A batch in the table, as its snapshot says."""

    snapshot_id: int
    batch_id: int
    files: int


@dataclass(frozen=True)
class Place:
    """One directory for all that the demo writes, and the format of the table in it."""

    root: Path
    table_format: str

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def warehouse(self) -> Path:
        return self.root / "warehouse"

    def options(self) -> dict[str, str]:
        """What names the table."""
        return {"warehouse": str(self.warehouse), "table": TABLE, "tableFormat": self.table_format}

    def open(self) -> Table:
        return open_table(parse_options(self.options(), purpose=Purpose.READ).table)

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def driver_log(self) -> Path:
        return self.root / "driver.log"

    @property
    def _control(self) -> Path:
        return self.root / "control"

    @property
    def _order(self) -> Path:
        return self._control / "kill.json"

    @property
    def _replays(self) -> Path:
        return self._control / "replays"

    @property
    def started(self) -> Path:
        """There once the driver's query runs."""
        return self._control / "started"

    # ---------------------------------------------------------------- before the run

    def empty(self) -> None:
        """Start over. A directory that no demo made is left alone: it may hold what somebody needs."""
        if self.root.exists() and not (self.root / _MARK).exists() and any(self.root.iterdir()):
            raise OptionError(
                f"Cannot run the demo in {self.root}: it is not empty and no demo made it. Name another with "
                "--directory."
            )
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / _MARK).touch()
        for path in self.root.iterdir():
            if path.name == _MARK:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        for directory in (self.source, self.temporary, self._control):
            directory.mkdir()

    def fill_source(self, *, rows: int, batches: int) -> None:
        """Write the orders 0 to ``rows`` - 1, each once, for Spark to stream ``FILES_A_BATCH`` files at a time."""
        files = batches * FILES_A_BATCH
        for number in range(files):
            ids = pa.array(range(rows * number // files, rows * (number + 1) // files), pa.int64())
            customers = pa.array([f"customer-{order % 9973}" for order in ids.to_pylist()])
            path = self.source / f"orders-{number:04}.parquet"
            pq.write_table(pa.table({"id": ids, "customer": customers}), path)
            # Spark takes the oldest first: a second apart, they come in the order of their numbers.
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    def remove_temporary(self) -> None:
        """What killed JVMs left. None is alive, and nobody looks here."""
        shutil.rmtree(self.temporary, ignore_errors=True)

    # ---------------------------------------------------------------- what the table and Spark say

    def published(self) -> list[Published]:
        """The snapshots there are, oldest first."""
        try:
            history = self.open().upkeep.history()
        except TableNotFoundError:
            return []
        return [
            Published(snapshot.snapshot_id, snapshot.batch_id, int(snapshot.properties[FILES]))
            for snapshot in history
            if snapshot.batch_id is not None
        ]

    def last_logged_batch(self) -> int | None:
        """Where the commit log in Spark's checkpoint ends."""
        batches = [int(path.name) for path in self.checkpoint.glob("commits/*") if path.name.isdigit()]
        return max(batches, default=None)

    def last_planned_batch(self) -> int | None:
        """Where the offset log in Spark's checkpoint ends: the batch that Spark was at."""
        batches = [int(path.name) for path in self.checkpoint.glob("offsets/*") if path.name.isdigit()]
        return max(batches, default=None)

    def files_left_behind(self) -> int:
        """Data files that no snapshot names. The table is only appended to, so what snapshots added is live."""
        return len(list(self.warehouse.rglob("*.parquet"))) - sum(snapshot.files for snapshot in self.published())

    # ---------------------------------------------------------------- between the processes

    def order_kill(self, order: KillOrder) -> None:
        waiting = self._order.with_suffix(".new")
        waiting.write_text(json.dumps({"step": order.step, "batch_id": order.batch_id}))
        waiting.replace(self._order)

    def claim_kill(self, step: str, batch_id: int) -> bool:
        """Whether the caller is the one to kill, here and now. Says so to one process only."""
        try:
            if KillOrder(**json.loads(self._order.read_bytes())) != KillOrder(step, batch_id):
                return False
            os.rename(self._order, self._order.with_suffix(".done"))
        except FileNotFoundError:
            return False
        return True

    def note_replay(self, batch_id: int) -> None:
        with self._replays.open("a") as replays:
            replays.write(f"{batch_id}\n")

    def replays(self) -> list[int]:
        """Batches that came again after their snapshot was in, and were recognised."""
        return [int(line) for line in self._replays.read_text().splitlines()] if self._replays.exists() else []
