"""Consumers of a table in memory: values in its state, which expiry looks at under the same lock."""

from __future__ import annotations

from paimon_sink.formats.lineage import Consumer, Consumers
from paimon_sink.formats.memory.state import TableState


class MemoryConsumers(Consumers):
    def __init__(self, state: TableState) -> None:
        self._state = state

    def all(self) -> list[Consumer]:
        with self._state.lock:
            return [self._state.consumers[name] for name in sorted(self._state.consumers)]

    def find(self, name: str) -> Consumer | None:
        return self._state.consumers.get(name)

    def put(self, consumer: Consumer) -> bool:
        with self._state.lock:
            if self._state.snapshot(consumer.snapshot_id) is None:
                return False
            self._state.consumers[consumer.name] = consumer
            return True

    def drop(self, name: str) -> None:
        with self._state.lock:
            self._state.consumers.pop(name, None)
