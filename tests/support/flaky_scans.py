"""A table whose store fails so many questions before each answer: a fake around a real one.

Questions about snapshots and files, and about consumers. ``breaking`` is a table whose data files break off instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from paimon_sink.core.errors import StorageError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import Split

__all__ = ["QUESTIONS", "breaking", "flaky"]


QUESTIONS = (
    *("lineage", "at", "columns", "cut"),
    *("added", "whole", "find", "after", "ahead", "stands", "newest", "oldest", "confirm"),
    *("consumer", "put"),
)
"""All that a driver asks of snapshots, of their files, and of consumers."""
_ANSWERS = 20


class _Failing:
    """One question fails so many times, is answered for a while, and fails again."""

    def __init__(self, question: str, failures: int) -> None:
        self.question = question
        self._failures = failures
        self._asked = 0

    def ask(self, question: str) -> None:
        if question != self.question:
            return
        self._asked += 1
        if (self._asked - 1) % (self._failures + _ANSWERS) < self._failures:
            raise StorageError("Cannot read a file of the table: the connection broke.")


class _Between:
    """Hands on to what it stands before, in its own words for some."""

    words: Mapping[str, str] = {}

    def __init__(self, inner: Any, failing: _Failing) -> None:
        self._inner = inner
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        self._failing.ask(self.words.get(name, name))
        return getattr(self._inner, name)


class FlakyConsumers(_Between):
    words: Mapping[str, str] = {"find": "consumer"}


class FlakyScans(_Between):
    def lineage(self) -> Any:
        self._failing.ask("lineage")
        return _Between(self._inner.lineage(), self._failing)


class BreakingScans:
    """Each split breaks off after so many batches of rows."""

    def __init__(self, inner: Any, batches: int) -> None:
        self._inner = inner
        self._left = batches

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._inner.read_split(split, columns):
            if not self._left:
                raise StorageError("Cannot read a data file of the table: the connection broke.")
            self._left -= 1
            yield batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def flaky(opened: Callable[[], Table], question: str, failures: int) -> Table:
    table = opened()
    failing = _Failing(question, failures)
    scans: Any = FlakyScans(table.scans, failing)
    consumers: Any = None if table.consumers is None else FlakyConsumers(table.consumers, failing)
    return replace(table, scans=scans, consumers=consumers)


def breaking(opened: Callable[[], Table], batches: int) -> Table:
    table = opened()
    scans: Any = BreakingScans(table.scans, batches)
    return replace(table, scans=scans)
