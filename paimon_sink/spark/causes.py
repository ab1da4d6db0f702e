"""Our own error inside one of Spark's, which carries it as text: a Python traceback within a message of the JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paimon_sink.core import errors
from paimon_sink.core.errors import PwcError, RefusedError

__all__ = ["RAISED_HERE", "cause_of"]

RAISED_HERE = "Where it was raised:"
"""The line between our sentence and the traceback, which follows it."""

_SPARKS = ("pyspark.", "py4j.")
"""Whose messages hold tracebacks of other processes. Anybody else's may hold any text."""

_OUTER_FIRST = re.compile(r"\nCaused by: |\n+JVM stacktrace:\n")
"""Where the JVM goes on with the cause of what it printed so far."""

# The line that a traceback ends with is the first one that is not indented. A message that quotes one of our errors,
# even at the start of a line, is not mistaken for it. With hideTraceback, the line stands right after Spark's words.
_RAISED = re.compile(
    r"(?:Traceback \(most recent call last\):\n(?: .*\n)*"
    r"|An exception was thrown from the Python worker:\s+"
    r"|Failed to [\w ]*Python data source[\w ]*: )"
    rf"{re.escape(errors.__name__)}\.(?P<kind>\w+): "
)
_SENTENCE_ENDS = re.compile(
    r"\s+SQLSTATE: [0-9A-Z]{5}\b"
    rf"|\n{re.escape(RAISED_HERE)}\n"
    r"|\n\s*at [\w.$]+[(/]"
    r"|\n+Driver stacktrace:"
    r"|\n=== Streaming Query ===\n"
    r"|\n+Previous exception in task: "
    r"|\n\nDuring handling of the above exception, another exception occurred:\n"
    r"|\n\nThe above exception was the direct cause of the following exception:\n"
)


_NO_ROOM = ("arrow.vector.util.OversizedAllocationException", "arrow.memory.OutOfMemoryException")
"""Java's words where it had no room for the Arrow batch that it made for Python."""
_TOO_WIDE = (
    "Nothing was committed: Java had no room for a batch of rows as wide as these on their way to Python. Set "
    "spark.sql.execution.arrow.maxRecordsPerBatch to the number of them that fits, or leave Spark's limit in bytes as "
    "it is with paimon_sink.register(spark, tune=False) in a new session, and run the job again."
)


def cause_of(exception: BaseException | None) -> PwcError | None:
    """The error of this package that made Spark fail, as its class and sentence; None where it was something else.

    Spark raises errors of its own, so ``except PwcError`` catches nothing that came through it.

    Args:
        exception: What a batch job or ``query.awaitTermination()`` raised, or ``query.exception()`` returned, classic
            or over Spark Connect.

    Returns:
        Our error, with its class and its whole message. The exception itself, where it is ours.

    Example:
        ```python
        from paimon_sink.errors import CommitError, cause_of

        try:
            spark.range(3).write.format("pwc").mode("append").options(warehouse="/tmp/lake", table="no-database").save()
        except Exception as error:
            ours = cause_of(error)
            print("try again" if isinstance(ours, CommitError) else ours)
        ```
    """
    for error in _outermost_first(exception, set()):
        cause = error if isinstance(error, PwcError) else _cause_in_text(error)
        if cause is not None:
            return cause
    return None


def _outermost_first(exception: object, seen: set[int]) -> Iterator[BaseException]:
    if not isinstance(exception, BaseException) or id(exception) in seen:
        return
    seen.add(id(exception))
    yield exception
    # PySpark keeps the causes of the JVM apart from Python's.
    yield from _outermost_first(getattr(exception, "_cause", None), seen)
    yield from _outermost_first(exception.__cause__, seen)
    if not exception.__suppress_context__:
        yield from _outermost_first(exception.__context__, seen)


def _cause_in_text(exception: BaseException) -> PwcError | None:
    if not type(exception).__module__.startswith(_SPARKS):
        return None
    text = _text(exception)
    for part in _OUTER_FIRST.split(text):
        raised = list(_RAISED.finditer(part))
        if raised:
            # Of errors that were raised from each other, Python prints the outermost last.
            sentence = _SENTENCE_ENDS.split(part[raised[-1].end() :], maxsplit=1)[0]
            return _kind(raised[-1]["kind"])(sentence.strip())
    return RefusedError(_TOO_WIDE) if any(words in text for words in _NO_ROOM) else None


def _text(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception:  # noqa: BLE001 - it asks the JVM, which may be gone; who looks for a cause wants no other error
        return ""


def _kind(name: str) -> type[PwcError]:
    """By its name. A worker may run another version of this package, and know errors that this one does not."""
    kind = getattr(errors, name, None) if name in errors.__all__ else None
    return kind if isinstance(kind, type) and issubclass(kind, PwcError) else PwcError
