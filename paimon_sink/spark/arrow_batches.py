"""Where Spark ends the Arrow batches that it sends to Python: by their bytes, or by their rows alone.

Spark keeps to a limit in bytes by measuring the whole batch after every row, which is half of the work of its tasks.
Without it, nobody bounds a batch of wide rows but their number: a batch that Java has no room for ends its process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["MAX_BYTES", "MAX_ROWS", "settings_for"]

MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNMEASURED = str(2**31 - 1)
"""Spark's largest value. With any other it measures."""
_MOST_ROWS, _FEWEST_ROWS = 500, 50
_ROWS_A_MIB = 0.5
"""Of a task's part of Java's memory: rows of 1 MB then take half of it, and as much again while a batch grows."""
_THREADS = 8
"""Tasks that share a JVM, where nobody says how many."""
_JAVA_MEMORY = "1g"
"""Spark's own default, of a driver and of an executor."""

_LOCAL = re.compile(r"local(?:\[(?P<threads>\d+|\*)(?:\s*,\s*\d+)?\])?")
_SIZE = re.compile(r"(?P<number>\d+)(?:(?P<unit>[kmgt])b?)?")
_UNITS_KIB = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30}


def settings_for(setting: Callable[[str], str | None], *, local_threads: int | None) -> Mapping[str, str]:
    """What to set so that rows alone end a batch: as many as fit when each has 1 MB. Nothing where somebody chose.

    ``local_threads`` is how many tasks ``local[*]`` runs at once, where that is known.
    """
    rows = setting(MAX_ROWS)
    if setting(MAX_BYTES) is not None or (rows is not None and not _is_limit(rows)):
        # A limit in bytes is there for wide rows. Without one of rows, it is the only one.
        return {}
    if rows is not None:
        return {MAX_BYTES: _UNMEASURED}
    fitting = int(_mib_a_task(setting, local_threads) * _ROWS_A_MIB)
    return {MAX_BYTES: _UNMEASURED, MAX_ROWS: str(min(_MOST_ROWS, max(_FEWEST_ROWS, fitting)))}


def _is_limit(rows: str) -> bool:
    return rows.strip().isdecimal() and int(rows) > 0


def _mib_a_task(setting: Callable[[str], str | None], local_threads: int | None) -> int:
    """What each of the tasks that share a JVM has of its memory."""
    local = _LOCAL.fullmatch(setting("spark.master") or "")
    if local is None:
        memory, threads = setting("spark.executor.memory"), _number(setting("spark.executor.cores"))
    else:
        named = local["threads"] or "1"
        memory, threads = setting("spark.driver.memory"), (local_threads or 0) if named == "*" else int(named)
    return _mib(memory or _JAVA_MEMORY) // (threads or _THREADS)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.strip().isdecimal() else 0


def _mib(text: str) -> int:
    """Of a size as Spark writes it, where a number alone is in MiB; 0 where it is none."""
    size = _SIZE.fullmatch(text.strip().lower())
    return 0 if size is None else int(size["number"]) * _UNITS_KIB[size["unit"] or "m"] // 1024
