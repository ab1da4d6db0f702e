"""Holding expiry back: a consumer of the table, from the snapshot that the stream has come to on.

It is written once the offset that it belongs to is in the checkpoint, before anything is read, and moved on when a
batch is done. So it is always late and never early. A query that died leaves it behind, and after its time it counts no
more. Where a new stream begins is held before that, under a name of its own and for a short time: should the query die
before its first offset is logged, nobody will ever know that name again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from paimon_sink.core.clock import Clock
from paimon_sink.core.errors import ConsumerConflictError
from paimon_sink.core.option_groups.follow import NO_CONSUMER
from paimon_sink.follow.offset import Offset
from paimon_sink.formats.lineage import Consumer, Consumers, Mark

__all__ = ["Pin", "own_name"]

_SIGNS_OF_LIFE = 4
"""How often within its time a consumer is written again."""
_FOR_NOW_MS = 60 * 60 * 1000
"""How long the begin of a new stream is held, unless a consumer has less time altogether."""


def own_name(key: str) -> str:
    """The consumer of a query that was given no name."""
    return f"pwc-{key}"


@dataclass
class Pin:
    """What this process knows to be held."""

    consumers: Consumers | None
    table: str
    keep_ms: int
    clock: Clock
    held: Consumer | None = None
    written_ms: int = 0
    """By the steady clock."""
    for_now: str | None = None
    """Under which name the begin is held."""

    def hold_for_now(self, begin: Offset) -> bool:
        """Hold where a new stream begins until that is in the checkpoint. False: it has gone meanwhile."""
        if not self._is_wanted(begin) or begin.mark is None or self.consumers is None:
            return True
        self.for_now = own_name(begin.key)
        keep_ms = min(self.keep_ms, _FOR_NOW_MS)
        return self.consumers.put(
            Consumer(self.for_now, begin.mark.snapshot_id, begin.key, at_ms=self.clock.now_ms(), keep_ms=keep_ms)
        )

    def hold(self, offset: Offset, mark: Mark | None) -> None:
        """Hold from this snapshot on, unless the process does already. Whether that came in time is for the caller."""
        if self.held is not None:
            self._say_that_it_lives()
        elif self._is_wanted(offset) and mark is not None:
            self._write(Consumer(offset.consumer, mark.snapshot_id, offset.key, keep_ms=self.keep_ms))
            self._let_go_of_the_begin()

    def move(self, offset: Offset) -> None:
        """A batch up to here is done: what is before its snapshot may go."""
        if not self._is_wanted(offset) or offset.mark is None or self.consumers is None:
            return
        if self.held is None:
            self.hold(offset, offset.mark)
        elif (
            self.held.snapshot_id != offset.mark.snapshot_id
            and self.clock.steady_ms() - self.written_ms >= self.consumers.moves_every_ms
        ):
            self._write(replace(self.held, snapshot_id=offset.mark.snapshot_id))

    def _is_wanted(self, offset: Offset) -> bool:
        return self.consumers is not None and offset.consumer != NO_CONSUMER

    def _let_go_of_the_begin(self) -> None:
        if self.for_now is not None and self.held is not None and self.for_now != self.held.name:
            assert self.consumers is not None
            self.consumers.drop(self.for_now)
        self.for_now = None

    def _say_that_it_lives(self) -> None:
        if self.held is not None and self.clock.steady_ms() - self.written_ms >= self.keep_ms // _SIGNS_OF_LIFE:
            self._write(self.held)

    def _check_ours(self, wanted: Consumer) -> None:
        assert self.consumers is not None
        there = self.consumers.find(wanted.name)
        if there is None or there.key == wanted.key or there.is_dead(self.clock.now_ms()):
            return
        raise ConsumerConflictError(
            f"Cannot follow {self.table} as consumer {wanted.name}: another query holds that name, at snapshot "
            f"{there.snapshot_id}. Two under one name would let go what the slower still needs. Choose another "
            f"consumerId, or remove the consumer if its query is gone: pwc expire … --consumer {wanted.name}"
        )

    def _write(self, consumer: Consumer) -> None:
        assert self.consumers is not None
        # Each time: of two that began at the same time under one name, the first to come back stops.
        self._check_ours(consumer)
        if self.consumers.put(replace(consumer, at_ms=self.clock.now_ms())):
            self.held = consumer
            self.written_ms = self.clock.steady_ms()
