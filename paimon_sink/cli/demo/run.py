"""One run of the demo: stream, kill, look, restart, count. An audience hears what happens."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.cli.demo.place import KillOrder, Place
from paimon_sink.cli.demo.processes import Driver
from paimon_sink.core.errors import PwcError
from paimon_sink.core.steps import Step

__all__ = ["Audience", "DemoError", "Figures", "Kill", "PlannedKill", "random_kills", "run_demo", "scripted_kills"]

_LOOK_EVERY_S = 0.2
_LONGEST_SILENCE_S = 180.0


class DemoError(PwcError):
    """The demo itself did not work, so it shows nothing."""


@dataclass(frozen=True)
class Kill:
    """A kill, and the state of the table and of Spark's checkpoint right after it."""

    number: int
    moment: str
    driver_pid: int
    snapshot_id: int | None
    published_batch: int | None
    logged_batch: int | None
    planned_batch: int | None
    files_left_behind: int
    """Data files in the table's directory that no snapshot names."""

    @property
    def spark_will_repeat(self) -> int | None:
        """The batch that Spark had begun and not logged: a restart sends it again."""
        return self.planned_batch if self.planned_batch != self.logged_batch else None

    @property
    def repeats_what_is_in(self) -> bool:
        """That batch is in the table already."""
        return self.spark_will_repeat is not None and self.spark_will_repeat == self.published_batch


@dataclass(frozen=True)
class Figures:
    """What a run counted."""

    rows_sent: int
    rows_in_table: int
    duplicates: int
    missing: int
    batches: int
    snapshots: int
    replays_recognised: int
    kills: int
    files_left_behind: int
    seconds: float

    @property
    def exactly_once(self) -> bool:
        return self.missing == 0 and self.duplicates == 0 and self.rows_in_table == self.rows_sent


class Audience(Protocol):
    """Whoever is shown how a run goes on."""

    def driver_started(self, *, pid: int, restart: bool) -> None: ...
    def batches_in(self, published: int) -> None: ...
    def killed(self, kill: Kill) -> None: ...
    def replay_recognised(self, batch_id: int) -> None: ...


# ---------------------------------------------------------------- when to kill


class PlannedKill(Protocol):
    """One kill of the driver."""

    def prepare(self, place: Place) -> None:
        """Called before the driver starts."""

    def carry_out(self, driver: Driver, watch: _Watch) -> str | None:
        """Wait until the driver is dead and say at what moment that was; None when the query had ended before."""


@dataclass(frozen=True)
class ScriptedKill:
    """A worker of the sink kills the driver when it reaches a step of a batch, exactly there."""

    order: KillOrder
    moment: str

    def prepare(self, place: Place) -> None:
        place.order_kill(self.order)

    def carry_out(self, driver: Driver, watch: _Watch) -> str | None:
        if watch.until_end() == 0:
            raise DemoError(f"The kill at batch {self.order.batch_id} never came: the query ended first.")
        return self.moment


@dataclass(frozen=True)
class RandomKill:
    """The demo kills the driver so many seconds after it published so many snapshots, whatever it does then."""

    snapshots: int
    delay_s: float

    def prepare(self, place: Place) -> None:
        pass

    def carry_out(self, driver: Driver, watch: _Watch) -> str | None:
        watch.until_more_are_in(self.snapshots)
        watch.pause(self.delay_s)
        driver.kill()
        if watch.until_end() == 0:
            return None
        after = {0: "the query began", 1: "its first snapshot"}.get(self.snapshots, f"its {self.snapshots} snapshots")
        return f"at a random moment, {self.delay_s:.2f} s after {after}"


def scripted_kills(*, batches: int) -> list[ScriptedKill]:
    """The two moments that hurt most."""
    committed, written = batches // 3, 2 * batches // 3
    return [
        ScriptedKill(
            KillOrder(Step.COMMITTED.value, committed), f"when batch {committed} was in and Spark had not logged it yet"
        ),
        ScriptedKill(
            KillOrder(Step.ROWS_WRITTEN.value, written), f"in the middle of writing the rows of batch {written}"
        ),
    ]


def random_kills(count: int, *, batches: int, seed: str) -> list[RandomKill]:
    """Moments nobody chose, spread so that the query is not done before the last."""
    chance = random.Random(seed)
    kills = []
    for _ in range(count):
        snapshots = chance.randint(0, max(0, (batches - 4) // (count + 1)))
        # A cold driver needs seconds for its first batch, a warm one tenths of a second for the next.
        kills.append(RandomKill(snapshots, chance.uniform(0.0, 1.0 if snapshots else 5.0)))
    return kills


# ---------------------------------------------------------------- the run


class _Watch:
    """Looks at the driver and the table until something is the case."""

    def __init__(self, place: Place, driver: Driver, audience: Audience) -> None:
        self._place = place
        self._driver = driver
        self._audience = audience
        self._at_start = len(place.published())
        self._seen = (self._at_start, len(place.replays()))
        self._news_at = time.monotonic()

    def until_end(self) -> int:
        """The driver's exit status: 0, or minus SIGKILL. Any other is an error."""
        while self._driver.exit_status() is None:
            self._look()
        self._look()
        status = self._driver.exit_status()
        if status not in (0, -signal.SIGKILL):
            raise DemoError(f"The driver ended by itself with status {status}.{_tail(self._place)}")
        return int(status or 0)

    def until_more_are_in(self, batches: int) -> None:
        """Until the query of this driver runs, and that many more batches are published. The end comes first, maybe."""
        while self._driver.exit_status() is None:
            self._look()
            if self._place.started.exists() and self._seen[0] >= self._at_start + batches:
                return

    def pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._driver.exit_status() is None and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.01))

    def _look(self) -> None:
        time.sleep(_LOOK_EVERY_S)
        replays = self._place.replays()
        now = (len(self._place.published()), len(replays))
        if now != self._seen:
            for batch_id in replays[self._seen[1] :]:
                self._audience.replay_recognised(batch_id)
            self._audience.batches_in(now[0])
            self._seen, self._news_at = now, time.monotonic()
        elif time.monotonic() - self._news_at > _LONGEST_SILENCE_S:
            raise DemoError(f"Nothing happened for {_LONGEST_SILENCE_S:.0f} s.{_tail(self._place)}")


def run_demo(place: Place, kills: Sequence[PlannedKill], audience: Audience, *, rows: int, batches: int) -> Figures:
    """Stream ``rows`` rows in ``batches`` batches with kills in between, and count what is in the table."""
    began = time.monotonic()
    place.empty()
    place.fill_source(rows=rows, batches=batches)
    done = 0
    for planned in kills:
        planned.prepare(place)
        with Driver(place) as driver:
            audience.driver_started(pid=driver.pid, restart=done > 0)
            moment = planned.carry_out(driver, _Watch(place, driver, audience))
        if moment is None:
            break
        done += 1
        # The driver, its JVM and its workers are gone: nothing changes under this look.
        audience.killed(_look_after_kill(place, done, moment, driver.pid))
    else:
        with Driver(place) as driver:
            audience.driver_started(pid=driver.pid, restart=done > 0)
            if _Watch(place, driver, audience).until_end() != 0:
                raise DemoError("Somebody else killed the driver, so this run shows nothing. Start the demo again.")
    place.remove_temporary()
    return _count(place, rows=rows, kills=done, seconds=time.monotonic() - began)


def _look_after_kill(place: Place, number: int, moment: str, driver_pid: int) -> Kill:
    published = place.published()
    return Kill(
        number=number,
        moment=moment,
        driver_pid=driver_pid,
        snapshot_id=published[-1].snapshot_id if published else None,
        published_batch=published[-1].batch_id if published else None,
        logged_batch=place.last_logged_batch(),
        planned_batch=place.last_planned_batch(),
        files_left_behind=place.files_left_behind(),
    )


def _count(place: Place, *, rows: int, kills: int, seconds: float) -> Figures:
    ids = _ids_in_table(place)
    distinct = pc.unique(ids)
    expected = pc.sum(pc.and_(pc.greater_equal(distinct, 0), pc.less(distinct, rows))).as_py() or 0
    published = place.published()
    return Figures(
        rows_sent=rows,
        rows_in_table=len(ids),
        duplicates=len(ids) - len(distinct),
        missing=rows - expected,
        batches=len({snapshot.batch_id for snapshot in published}),
        snapshots=len(published),
        replays_recognised=len(place.replays()),
        kills=kills,
        files_left_behind=place.files_left_behind(),
        seconds=round(seconds, 1),
    )


def _ids_in_table(place: Place) -> pa.ChunkedArray:
    table = place.open()
    columns = [
        batch.column("id") for split in table.scans.plan_splits([]) for batch in table.scans.read_split(split, ["id"])
    ]
    return pa.chunked_array(columns, pa.int64())


def _tail(place: Place) -> str:
    lines = place.driver_log.read_text(errors="replace").splitlines() if place.driver_log.exists() else []
    return "\n".join([f" The end of {place.driver_log}:", *lines[-15:]])
