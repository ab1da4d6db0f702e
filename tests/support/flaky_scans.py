"""A table whose store fails so many questions about its snapshots before each answer: a fake around a real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from paimon_sink.core.errors import StorageError
from paimon_sink.formats.contract import Table

__all__ = ["flaky"]


class _Failing:
    """Hands on to what it stands before. The first questions fail, and after each that goes well one more."""

    def __init__(self, inner: Any, failures: int) -> None:
        self._inner = inner
        self._failures = failures
        self._left = failures

    def _ask(self) -> None:
        if self._left:
            self._left -= 1
            raise StorageError("Cannot read a file of the table: the connection broke.")
        self._left = self._failures


class FlakyLineage(_Failing):
    def __getattr__(self, name: str) -> Any:
        if name in ("added", "whole", "find", "after", "stands"):
            self._ask()
        return getattr(self._inner, name)


class FlakyScans(_Failing):
    def lineage(self) -> Any:
        self._ask()
        return FlakyLineage(self._inner.lineage(), 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def flaky(opened: Callable[[], Table], failures: int) -> Table:
    table = opened()
    scans: Any = FlakyScans(table.scans, failures)
    return replace(table, scans=scans)
