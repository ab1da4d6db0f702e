"""Makes the pictures of docs/watch.md from a real stream: two commit users that race, a watermark, a failing listener.

Needs a chromium (scripts/check-browser) and takes about a minute: a watermark that lags is one that was waited for.
"""

from __future__ import annotations

import io
import math
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from playwright.sync_api import Browser
from pyspark.sql.types import LongType, StructField, StructType
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from paimon_sink.cli.main import cli  # noqa: E402
from paimon_sink.cli.watch.live import Picture  # noqa: E402
from paimon_sink.cli.watch.state import Watcher  # noqa: E402
from paimon_sink.listeners import CommitEvent, ListenerContext  # noqa: E402
from tests.support.browser import browser  # noqa: E402
from tests.support.lake import Lake  # noqa: E402

IMAGES = ROOT / "docs" / "images"
ORDERS = StructType([StructField("id", LongType()), StructField("at", LongType())])
BATCHES = 72
EVERY_S = 0.5
RIVAL_EVERY = 4
"""Each so many batches of the stream, another user commits at the same moment."""


@dataclass(frozen=True)
class Pager:
    """A listener that wakes somebody up. After a while its server is gone."""

    context: ListenerContext

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        if event.batch_id >= int(self.context.settings["until"]):
            raise ConnectionRefusedError("pager.example:443 does not answer")
        return event.batch_id


@dataclass(frozen=True)
class Counter:
    """A listener that counts batches."""

    context: ListenerContext

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        return (state or 0) + 1


def commit(lake: Lake, batch: int, rows: int, *, files: int, late_s: float) -> None:
    now_ms = int(time.time() * 1000)
    messages = []
    for _ in range(files):
        times = [int(now_ms - late_s * 1000) - row % 100 for row in range(rows // files)]
        batch_rows = pa.RecordBatch.from_pydict({"id": list(range(len(times))), "at": times})
        messages.append(lake.write(batch_rows, schema=ORDERS))
    lake.stream_writer(ORDERS).commit(messages, batch)


def stream(lake: Lake) -> None:
    """The batches of two users. Where both come at once, one of them loses a round."""
    listeners = "scripts.screenshots:Counter, scripts.screenshots:Pager"
    orders = Lake(
        lake.options,
        lake.table,
        {
            "commitUser": "orders-stream",
            "watermarkColumn": "at",
            "listeners": listeners,
            "listener.scripts.screenshots:Pager.until": str(BATCHES * 2 // 3),
        },
    )
    returns = Lake(lake.options, lake.table, {"commitUser": "returns-stream", "watermarkColumn": "at"})
    for batch in range(BATCHES):
        wave = 1 + math.sin(batch / 7)
        rival = threading.Thread(
            target=commit, args=(returns, batch // RIVAL_EVERY, 2_000 + 100 * batch), kwargs={"files": 1, "late_s": 3.0}
        )
        if batch % RIVAL_EVERY == 0 and batch:
            rival.start()
        commit(orders, batch, 4_000 + int(9_000 * wave), files=2 + batch % 3, late_s=1.5 + 4 * (batch % 24 > 17))
        if rival.ident is not None:
            rival.join()
        # Somebody deployed a new version in the middle.
        time.sleep(6 if batch == BATCHES // 2 else EVERY_S)


def picture_of_watch(lake: Lake, running: Browser, *, columns: int, lines: int, name: str) -> None:
    watcher = Watcher(lake.open, None, 200)
    view, _ = watcher.first()
    console = Console(record=True, width=columns, height=lines, force_terminal=True, file=io.StringIO())
    console.print(Picture(view, watcher.clock.now_ms(), 20, None, ", every 2.0 s", fits_screen=True))
    page = running.new_page(device_scale_factor=1)
    page.set_content(f"<body style='margin:0'>{console.export_svg(title='pwc watch')}")
    page.locator("svg").first.screenshot(path=IMAGES / name)
    page.close()


def pictures_of_report(lake: Lake, running: Browser, directory: Path) -> None:
    out = directory / "report.html"
    arguments = ["report", "--warehouse", lake.options["warehouse"], "--table", lake.table, "-o", str(out)]
    cli(arguments, standalone_mode=False)
    wide = running.new_page(viewport={"width": 1280, "height": 1800}, color_scheme="light")
    phone = running.new_page(viewport={"width": 360, "height": 1500}, color_scheme="dark")
    for page, name in ((wide, "report.png"), (phone, "report-phone.png")):
        page.goto(out.as_uri())
        page.screenshot(path=IMAGES / name)
        page.close()


def main() -> None:
    directory = Path(tempfile.gettempdir()) / "pwc-screenshots"
    shutil.rmtree(directory, ignore_errors=True)
    lake = Lake({"warehouse": str(directory / "lake")}, "shop.orders")
    IMAGES.mkdir(exist_ok=True)
    print(f"Streaming {BATCHES} batches …")
    stream(lake)
    with browser() as running:
        picture_of_watch(lake, running, columns=100, lines=38, name="watch.png")
        pictures_of_report(lake, running, directory)
    print(f"Pictures are in {IMAGES.relative_to(ROOT)}; the table stays in {directory}.")


if __name__ == "__main__":
    main()
