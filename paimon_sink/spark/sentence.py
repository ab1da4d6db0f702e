"""Our sentence before the traceback, where Spark prints an error of a worker."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from paimon_sink.core.errors import PwcError
from paimon_sink.spark.causes import RAISED_HERE
from paimon_sink.spark.context import in_worker

__all__ = ["sentence_first"]

_HIDE = "SPARK_HIDE_TRACEBACK"
"""Spark's own switch, read when a worker reports what ended it."""


@contextmanager
def sentence_first() -> Iterator[None]:
    """Around all that Spark calls in a worker. Only what leaves it for good: Spark ends a worker that raised.

    Spark prints a worker's exception as Python does, frames first, thirty lines or so above the sentence that its user
    needs. So Spark is told to leave the frames out, and they follow the sentence as a note.
    """
    try:
        yield
    except PwcError as error:
        if in_worker() and _HIDE not in os.environ:
            error.add_note(f"{RAISED_HERE}\n{''.join(traceback.format_exception(error)).rstrip()}")
            os.environ[_HIDE] = "1"
        raise
