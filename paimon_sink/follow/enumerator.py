"""The enumerator of a stream: where a batch ends, and what is in one.

It owns which rows come next, and keeps nothing of it. :meth:`Enumerator.latest` walks along the snapshots from an
offset until a limit; :meth:`Enumerator.splits` gives what lies between two offsets of a checkpoint, whatever the
options of the day say: a limit or a number of tasks that changed since changes no row of a batch that was logged. What
is remembered between calls only spares requests.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import (
    CorruptTableError,
    OptionError,
    RefusedError,
    SnapshotExpiredError,
    SourceSchemaChangedError,
    StorageError,
    TableRolledBackError,
)
from paimon_sink.core.option_groups import FollowOptions, ReadOptions
from paimon_sink.core.option_groups.follow import NO_CONSUMER
from paimon_sink.core.steps import Step, reached
from paimon_sink.follow.admission import Admission, Limits
from paimon_sink.follow.offset import Offset, Origin, Taken
from paimon_sink.follow.pin import Pin, own_name
from paimon_sink.follow.plans import Plans
from paimon_sink.formats.contract import Table
from paimon_sink.formats.lineage import Lineage, LineageSnapshot, Mark, next_expired, replaced
from paimon_sink.formats.values import NEWEST, Split
from paimon_sink.formats.versions import rows_taken_out
from paimon_sink.read.scan import ReadTask, Scan

__all__ = ["Enumerator", "Frame"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 6
"""How often the table is asked before an error of its store ends the query. After an exception Spark asks no more."""


@dataclass(frozen=True)
class Frame:
    """The columns of the stream's DataFrame: those of one schema, and the highest that there was when it was made."""

    schema_id: int
    newest_schema_id: int


class Enumerator:
    """Follows one table for one query. It stays in its process, its offsets travel.

    Without a ``frame`` the columns are those that the table has now.
    """

    def __init__(
        self,
        opened: Callable[[], Table],
        read: ReadOptions,
        follow: FollowOptions,
        *,
        frame: Frame | None = None,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._backoff = backoff or Backoff(first_seconds=0.1, most_seconds=10.0)
        self._read = read
        self._follow = follow
        self.table = self._trying(opened)
        self._frame = frame or self._trying(self._frame_of_today)
        columns = self._trying(lambda: self.table.scans.columns(self._frame.schema_id))
        self.scan = Scan(replace(self.table, schema=columns.schema), columns, read)
        self._pin = Pin(self.table.consumers, self.table.label, follow.consumer_keep_ms, self._clock)
        self._plans = Plans(self.table.scans, self.scan.filters(), self._frame.schema_id)
        self._walked: dict[Mark | None, LineageSnapshot] = {}
        self._idle: tuple[Offset | None, int] | None = None
        self._is_bounded = False
        self._target: Mark | None = None
        self._report: dict[str, Any] | None = None

    def _frame_of_today(self) -> Frame:
        newest = self.table.scans.at(NEWEST)
        return Frame(newest.schema_id, newest.newest_schema_id)

    # ------------------------------------------------------------ where a batch ends

    def bound(self) -> None:
        """Go no further than the table is when it is next looked at, however much comes meanwhile."""
        self._is_bounded = True
        self._target = None

    def latest(self, start: Offset | None, limits: Limits) -> Offset:
        """Up to where the next batch goes; ``start`` itself where there is nothing new. None is the begin."""
        now_ms = self._clock.steady_ms()
        if start is not None and self._idle is not None:
            idle, since_ms = self._idle
            if idle == start and now_ms - since_ms < self._follow.poll_ms:
                return start
        if start is not None:
            self._trying(lambda: self._pin.hold(self._named(start), start.mark))
        found = self._trying(lambda: self._latest(start, limits))
        self._idle = (start, now_ms) if found == start else None
        return found

    def report(self) -> dict[str, Any] | None:
        """How far the table has come, as the last look showed it. Asks nobody."""
        return self._report

    @property
    def remembered(self) -> int:
        """Files of snapshots that are kept in memory, to spare requests."""
        return self._plans.weight

    def _latest(self, start: Offset | None, limits: Limits) -> Offset:
        if start is None:
            line, cursor = self._begun()
        else:
            line = self._look()
            cursor = self._resumed(line, start)
        reached(Step.LOOKED)
        self._walked = {}
        target = self._bound_of(line)
        admission = Admission(limits)
        while True:
            if not cursor.is_done:
                cursor = self._admitted(line, cursor, admission)
            if not cursor.is_done or (target is not None and cursor.mark == target):
                break
            following = self._entered_next(line, cursor, may_stop=cursor != start)
            if following is None:
                break
            cursor = following
        self._note(line, cursor)
        return cursor

    def _bound_of(self, line: Lineage) -> Mark | None:
        """The last snapshot that may be read. Fixed once: at the first look after the stream knows where it is."""
        if not self._is_bounded:
            return None
        if self._target is None:
            newest = line.newest()
            self._target = None if newest is None else newest.mark
        elif line.find(self._target) is None:
            # It expired below what was read, or it was rolled back, which is then no end to wait for.
            line.stands(self._target)
        return self._target

    def _admitted(self, line: Lineage, cursor: Offset, admission: Admission) -> Offset:
        snapshot = self._required(line, cursor)
        files = self._plans.of(line, snapshot, whole=_is_whole(cursor)).files
        self._check_count(cursor, len(files))
        file, group = self._plans.admit(files, (cursor.file, cursor.group), admission)
        return replace(cursor, file=file, group=group)

    def _entered_next(self, line: Lineage, cursor: Offset, *, may_stop: bool) -> Offset | None:
        """At the begin of the next snapshot. None: there is none, or it is for a batch of its own to fail at."""
        try:
            following = line.after(cursor.mark)
            if following is None:
                return None
            entered = self._entered(line, following, cursor)
        except (SnapshotExpiredError, SourceSchemaChangedError, TableRolledBackError, CorruptTableError) as error:
            if may_stop:
                return None
            if isinstance(error, SnapshotExpiredError):
                return self._past_the_loss(line, cursor, error)
            raise
        if entered is None and may_stop:
            return None
        if entered is None:
            raise rows_taken_out(self.table.label, following.snapshot_id, following.kind)
        self._walked[cursor.mark] = following
        return entered

    def _entered(self, line: Lineage, snapshot: LineageSnapshot, before: Offset) -> Offset | None:
        """At the begin of a snapshot. None: it took rows out, and such are not passed over."""
        self._check_schema(snapshot)
        added = self._plans.of(line, snapshot, whole=False)
        if added.took_rows_out and not self._read.skip_change_commits:
            return None
        return replace(before, mark=snapshot.mark, file=0, group=0, files=len(added.files))

    def _check_schema(self, snapshot: LineageSnapshot) -> None:
        if snapshot.schema_id > self._frame.newest_schema_id:
            raise SourceSchemaChangedError(
                f"The columns of {self.table.label} changed at snapshot {snapshot.snapshot_id}, after this stream's "
                "DataFrame was made. All rows before it were delivered. Start the query again, so that it loads the "
                "table anew: it goes on exactly there, with the new columns."
            )

    # ------------------------------------------------------------ where the stream begins and goes on

    def _begun(self) -> tuple[Lineage, Offset]:
        """Where a new stream begins, held for the time until that is in the checkpoint."""
        for _ in range(_ATTEMPTS):
            line = self._look()
            begin = self._begin(line)
            if self._pin.hold_for_now(begin):
                break
        return line, begin

    def _begin(self, line: Lineage) -> Offset:
        try:
            snapshot, taken = self._chosen(line)
        except SnapshotExpiredError as error:
            if self._follow.fail_on_data_loss:
                raise
            log.warning("Following %s from its oldest snapshot instead: %s", self.table.label, error)
            snapshot, taken = line.oldest(), Taken.ADDED
        mark = None if snapshot is None else snapshot.mark
        key = uuid.uuid4().hex[:12]
        begin = Offset(
            table=line.identity,
            origin=Origin(mark, taken if mark is not None else Taken.NOTHING),
            mark=mark,
            file=0,
            group=0,
            files=0,
            consumer=self._follow.consumer_id or own_name(key),
            key=key,
        )
        return begin if snapshot is None else self._opened(line, snapshot, begin)

    def _chosen(self, line: Lineage) -> tuple[LineageSnapshot | None, Taken]:
        start, at_ms = self._read.starting_version, self._read.starting_ms
        if at_ms is not None:
            if at_ms > self._clock.now_ms():
                raise OptionError(
                    f"Cannot follow {self.table.label}: startingTimestamp lies in the future. Use "
                    "startingVersion=latest for what comes from now on."
                )
            since = line.since(at_ms)
            return (line.newest(), Taken.NOTHING) if since is None else (since, Taken.ADDED)
        if isinstance(start, int):
            return line.with_id(start), Taken.ADDED
        if start == "latest":
            return line.newest(), Taken.NOTHING
        return (line.oldest() if start == "earliest" else line.newest()), Taken.WHOLE

    def _opened(self, line: Lineage, snapshot: LineageSnapshot, begin: Offset) -> Offset:
        """The begin, with the number of files that its snapshot has for the stream."""
        if begin.origin.taken is Taken.NOTHING:
            return begin
        self._check_schema(snapshot)
        found = self._plans.of(line, snapshot, whole=_is_whole(begin))
        if found.took_rows_out and not self._read.skip_change_commits:
            raise rows_taken_out(self.table.label, snapshot.snapshot_id, snapshot.kind)
        return replace(begin, files=len(found.files))

    def _resumed(self, line: Lineage, start: Offset) -> Offset:
        """Where the stream goes on, if the table still has it."""
        try:
            self._check_stands(line, start)
        except SnapshotExpiredError as error:
            return self._past_the_loss(line, start, error)
        return self._named(start)

    def _named(self, offset: Offset) -> Offset:
        """With the consumer of today. One that has another name from now on leaves the old one to its time."""
        before = own_name(offset.key) if offset.consumer == NO_CONSUMER else offset.consumer
        return replace(offset, consumer=self._follow.consumer_id or before)

    def _check_stands(self, line: Lineage, offset: Offset) -> None:
        if offset.mark is None:
            if line.identity != offset.table:
                raise replaced(self.table.label)
            return
        try:
            stands = line.stands(offset.mark)
        except (SnapshotExpiredError, TableRolledBackError):
            if line.identity != offset.table:
                raise replaced(self.table.label) from None
            raise
        if not stands and not offset.is_done:
            oldest = line.oldest()
            raise next_expired(self.table.label, offset.mark, oldest=None if oldest is None else oldest.snapshot_id)

    def _past_the_loss(self, line: Lineage, cursor: Offset, error: SnapshotExpiredError) -> Offset:
        """With failOnDataLoss=false: at the oldest snapshot, which is a new origin, so that a replay begins there."""
        oldest = line.oldest()
        if self._follow.fail_on_data_loss or oldest is None:
            raise error
        log.warning(
            "Rows of %s are lost to this stream, which goes on at snapshot %s: %s",
            self.table.label,
            oldest.snapshot_id,
            error,
        )
        begin = replace(cursor, origin=Origin(oldest.mark, Taken.ADDED), mark=oldest.mark, file=0, group=0, files=0)
        return self._opened(line, oldest, begin)

    # ------------------------------------------------------------ what is in a batch

    def tasks(self, start: Offset | None, end: Offset, *, parallelism: int) -> list[ReadTask]:
        """The batch between two offsets in tasks for the parallelism of today."""
        splits = self.splits(start, end)
        return self._trying(lambda: self.scan.tasks_of(splits, parallelism=parallelism))

    def splits(self, start: Offset | None, end: Offset) -> list[Split]:
        """What lies between two offsets that a checkpoint has. No option but the columns and ``where`` matters."""
        if start == end:
            return []
        if start is not None and start.key != end.key:
            raise RefusedError(
                f"Cannot go on following {self.table.label}: where this batch ends was found without knowing where the "
                "one before ended, so that rows would come twice. Nothing was read. Start the query again."
            )
        begin = start if start is not None and start.origin == end.origin else _beginning(end)
        self._trying(lambda: self._pin.hold(self._named(end), begin.mark))
        reached(Step.PINNED)
        found = self._trying(lambda: self._between(begin, end))
        reached(Step.BATCH_PLANNED)
        return found

    def _between(self, begin: Offset, end: Offset) -> list[Split]:
        # After the pin: what is there now stays for this batch.
        line = self._look()
        try:
            self._check_stands(line, replace(end, file=0, files=1))
            splits = self._collected(line, begin, end)
        except SnapshotExpiredError as error:
            if self._follow.fail_on_data_loss:
                raise
            return self._what_is_left(line, begin, end, error)
        if end.mark is not None:
            line.confirm(end.mark)
        return splits

    def _collected(self, line: Lineage, begin: Offset, end: Offset) -> list[Split]:
        splits: list[Split] = []
        cursor, snapshot = begin, None
        while True:
            is_last = cursor.mark == end.mark
            if cursor.mark is not None and not cursor.is_done:
                snapshot = snapshot or self._required(line, cursor)
                files = self._plans.of(line, snapshot, whole=_is_whole(cursor)).files
                if is_last:
                    self._check_count(end, len(files))
                place = (end.file, end.group) if is_last else (len(files), 0)
                splits += self._plans.between(files, (cursor.file, cursor.group), place)
            if is_last:
                return splits
            # The first is asked for, and the last by who calls. Expiry takes the oldest first and a rollback the
            # newest, so what the walk saw of those between still holds.
            walked = None if snapshot is None else self._walked.get(cursor.mark)
            snapshot = walked or line.after(cursor.mark)
            if snapshot is None:
                raise CorruptTableError(
                    f"Cannot find the snapshots of a batch of {self.table.label} that the checkpoint has, up to "
                    f"{end.mark and end.mark.snapshot_id}. The store may lag behind: start the query again."
                )
            cursor = replace(cursor, mark=snapshot.mark, file=0, group=0, files=1)

    def _what_is_left(self, line: Lineage, begin: Offset, end: Offset, error: SnapshotExpiredError) -> list[Split]:
        """Of a batch that was logged and lost some of its snapshots since: what those that stand added."""
        log.warning("Rows of a batch of %s are lost to this stream: %s", self.table.label, error)
        oldest = line.oldest()
        if end.mark is None or oldest is None or line.find(end.mark) is None:
            return []
        origin = Origin(oldest.mark, Taken.ADDED)
        return self._collected(line, replace(begin, origin=origin, mark=oldest.mark, file=0, group=0, files=1), end)

    # ------------------------------------------------------------ when one is done

    def commit(self, end: Offset) -> None:
        """A batch up to here is done. What only it needed may expire."""
        self._trying(lambda: self._pin.move(self._named(end)))
        reached(Step.MOVED_ON)

    # ------------------------------------------------------------ inside

    def _look(self) -> Lineage:
        return self.table.scans.lineage()

    def _required(self, line: Lineage, offset: Offset) -> LineageSnapshot:
        assert offset.mark is not None
        found = line.find(offset.mark)
        if found is None:
            line.stands(offset.mark)
            oldest = line.oldest()
            raise next_expired(self.table.label, offset.mark, oldest=None if oldest is None else oldest.snapshot_id)
        return found

    def _check_count(self, offset: Offset, files: int) -> None:
        if files != offset.files:
            raise CorruptTableError(
                f"Snapshot {offset.mark and offset.mark.snapshot_id} of {self.table.label} has {files} files for this "
                f"stream, and the checkpoint says {offset.files}. Restore the table, or start with a new checkpoint."
            )

    def _note(self, line: Lineage, cursor: Offset) -> None:
        newest = line.newest()
        if newest is not None:
            self._report = {
                "snapshot": str(newest.snapshot_id),
                "committedMs": newest.at_ms,
                "snapshotsBehind": line.behind(cursor.mark),
            }

    def _trying(self, ask: Callable[[], T]) -> T:
        """Once more where the store failed: after an exception Spark ends the query."""
        for attempt in range(1, _ATTEMPTS):
            try:
                return ask()
            except StorageError as error:
                log.warning("Asking the table again, attempt %d of %d: %s", attempt + 1, _ATTEMPTS, error)
                self._backoff.wait(self._clock, attempt)
        return ask()


def _is_whole(offset: Offset) -> bool:
    """Whether the files of its snapshot are all that the table had then."""
    return offset.origin.taken is Taken.WHOLE and offset.mark == offset.origin.mark


def _beginning(end: Offset) -> Offset:
    """Where the stream began, or went on after a loss, as an offset that was reached since says."""
    nothing = end.origin.taken is Taken.NOTHING
    return replace(end, mark=end.origin.mark, file=0, group=0, files=0 if nothing else 1)
