"""Where Spark ends the Arrow batches that it sends to Python: by their bytes, or by their rows alone.

Spark keeps to a limit in bytes by measuring the whole batch after every row, which is half of the work of its tasks.
Without it, nobody bounds a batch of wide rows but their number: a batch that Java has no room for ends its process.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

__all__ = ["MAX_BYTES", "MAX_ROWS", "settings_for"]

log = logging.getLogger(__name__)

MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNMEASURED = str(2**31 - 1)
"""Spark's largest value. With any other it measures."""
_ROWS = "100"
"""A gigabyte of rows of 10 MB. A column of a batch can hold no more than 1 GiB."""
_ENOUGH_MIB = 2048
"""What Java takes for that: 1 GiB, half of it again while it grows, and what is on its way to Python."""
_JAVA_MEMORY = "1g"
"""Spark's own default, of a driver and of an executor."""

_LOCAL = re.compile(r"local(?:\[(?P<threads>\d+|\*)(?:\s*,\s*\d+)?\])?")
_SIZE = re.compile(r"(?P<number>\d+)(?:(?P<unit>[kmgt])b?)?")
_UNITS_KIB = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30}


def settings_for(setting: Callable[[str], str | None], *, local_threads: int | None) -> Mapping[str, str]:
    """What to set so that rows alone end a batch. Nothing where somebody chose, or where wide rows would not fit.

    ``local_threads`` is how many tasks ``local[*]`` runs at once, where that is known.
    """
    rows = setting(MAX_ROWS)
    if setting(MAX_BYTES) is not None or (rows is not None and not _is_limit(rows)):
        # A limit in bytes is there for wide rows. Without one of rows, it is the only one.
        return {}
    if rows is not None:
        return {MAX_BYTES: _UNMEASURED}
    a_task_mib = _mib_a_task(setting, local_threads)
    if a_task_mib < _ENOUGH_MIB:
        log.info(
            "Left Spark's limit of Arrow batches in bytes as it is: a task has %d MiB of Java's memory, and rows of "
            "10 MB take %d without it. Writes of narrow rows are faster without it: give tasks more memory, or set %s "
            "to the number of your widest rows that fits, before you register.",
            a_task_mib,
            _ENOUGH_MIB,
            MAX_ROWS,
        )
        return {}
    return {MAX_BYTES: _UNMEASURED, MAX_ROWS: _ROWS}


def _is_limit(rows: str) -> bool:
    return rows.strip().isdecimal() and int(rows) > 0


def _mib_a_task(setting: Callable[[str], str | None], local_threads: int | None) -> int:
    """What each of the tasks that share a JVM has of its memory; 0 where nobody can know how many they are."""
    local = _LOCAL.fullmatch(setting("spark.master") or "")
    if local is None:
        memory, threads = setting("spark.executor.memory"), _number(setting("spark.executor.cores"))
    else:
        named = local["threads"] or "1"
        memory, threads = setting("spark.driver.memory"), (local_threads or 0) if named == "*" else int(named)
    return _mib(memory or _JAVA_MEMORY) // threads if threads else 0


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.strip().isdecimal() else 0


def _mib(text: str) -> int:
    """Of a size as Spark writes it, where a number alone is in MiB; 0 where it is none."""
    size = _SIZE.fullmatch(text.strip().lower())
    return 0 if size is None else int(size["number"]) * _UNITS_KIB[size["unit"] or "m"] // 1024
