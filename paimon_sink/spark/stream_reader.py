"""Spark's stream reader: the enumerator of ``follow/`` behind the questions that Spark asks.

Spark builds three of these. One lives on the driver from the start of a query to its end and answers; one is made to be
sent to the tasks; and copies of that read. They share nothing but the options: what one batch has to know of another is
in the offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.option_fields import Purpose
from paimon_sink.core.options import DECLARED, FIRST, LAST, ONE_SNAPSHOT, Options
from paimon_sink.follow.admission import NO_LIMITS, Limits
from paimon_sink.follow.enumerator import Enumerator, Frame
from paimon_sink.follow.offset import INITIAL, Offset
from paimon_sink.formats.registry import open_table
from paimon_sink.formats.values import NEWEST
from paimon_sink.read.scan import Scan
from paimon_sink.spark.context import parallelism
from paimon_sink.spark.reader import TaskPartition, check_columns, read_partition
from paimon_sink.spark.sentence import sentence_first

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow

    HAS_ADMISSION = True
except ImportError:  # Spark 4.1
    HAS_ADMISSION = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark 4.1 does not ask for it."""


__all__ = ["PwcStreamReader", "RefusedStreamReader", "is_of_stream", "may_be_of_stream", "opened_columns"]

_MAX_FILES = 1000


class PwcStreamReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the appends of a table, each row once."""

    def __init__(self, options: Options, schema: StructType, frame: Frame | None = None) -> None:
        self._options = options
        self._schema = schema
        self._frame = frame
        self._seen: Offset | None = None
        _check_limits(options)

    @cached_property
    def _enumerator(self) -> Enumerator:
        """On the driver alone, once Spark asks."""
        options = self._options
        made = Enumerator(lambda: open_table(options.table), options.read, options.follow, frame=self._frame)
        check_columns(options, self._schema, made.scan)
        return made

    # ------------------------------------------------------------ where a batch ends

    def initialOffset(self) -> dict[str, Any]:
        """A constant. Spark does not log the answer, and asks again after a restart."""
        return dict(INITIAL)

    def getDefaultReadLimit(self) -> ReadLimit:
        """A token, handed back with each question: the limits are those of the options, all of them."""
        return ReadMaxFiles(self._options.follow.max_files or _MAX_FILES)

    def prepareForTriggerAvailableNow(self) -> None:
        with sentence_first():
            self._enumerator.bound()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Spark 4.1 asks without arguments, and takes all there is."""
        with sentence_first():
            if start is None:
                return self._all_there_is().encode()
            begin = Offset.decode(start)
            end = self._enumerator.latest(begin, NO_LIMITS if isinstance(limit, ReadAllAvailable) else self._limits)
        # Spark compares the texts: where nothing is new, the same comes back.
        return start if end == begin else end.encode()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        with sentence_first():
            return self._enumerator.report()

    def _all_there_is(self) -> Offset:
        """From what Spark planned last. It plans an empty range with a restart, and nothing where a stream is new."""
        self._seen = self._enumerator.latest(self._seen, NO_LIMITS)
        return self._seen

    @property
    def _limits(self) -> Limits:
        follow = self._options.follow
        return Limits(follow.max_files or _MAX_FILES, follow.max_bytes, follow.max_rows)

    # ------------------------------------------------------------ what is in one

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[ds.InputPartition]:
        with sentence_first():
            finish = Offset.decode(end)
            if finish is None:
                return []
            self._seen = finish
            tasks = self._enumerator.tasks(Offset.decode(start), finish, parallelism=parallelism())
        return [TaskPartition(task) for task in tasks]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, self._schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        with sentence_first():
            done = Offset.decode(end)
            if done is not None:
                self._enumerator.commit(done)


class RefusedStreamReader(ds.DataSourceStreamReader):
    """Stands where options are wrong, and says so when it is asked for anything."""

    def __init__(self, error: PwcError) -> None:
        self._error = error

    def initialOffset(self) -> NoReturn:
        self._refuse()

    def latestOffset(self, *_: object) -> NoReturn:
        self._refuse()

    def partitions(self, start: object, end: object) -> NoReturn:
        self._refuse()

    def read(self, partition: ds.InputPartition) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        with sentence_first():
            raise self._error


def opened_columns(options: Options) -> Scan:
    """The columns of a stream's DataFrame: those that the table has today, wherever the stream begins."""
    table = open_table(options.table)
    newest = table.scans.at(NEWEST)
    return Scan(replace(table, schema=newest.schema), newest, options.read)


def is_of_stream(options: Mapping[str, str]) -> bool:
    """Whether one of the options is for streams alone."""
    declared = {str(key).lower(): DECLARED.options.get(DECLARED.today(str(key)).lower()) for key in options}
    alone = any(option is not None and option.purposes == {Purpose.STREAM_READ} for option in declared.values())
    return alone or _starts_with_a_word(options)


def may_be_of_stream(options: Mapping[str, str]) -> bool:
    """Whether the options say what a stream can heed, and not which snapshot a batch is of or where it ends."""
    keys = {str(key).lower() for key in options}

    def given(*names: str) -> bool:
        return any(name.lower() in keys for name in names)

    return given(*FIRST, "skipChangeCommits") and not given(*LAST, *ONE_SNAPSHOT)


def _starts_with_a_word(options: Mapping[str, str]) -> bool:
    start = next((str(value) for key, value in options.items() if str(key).lower() == "startingversion"), "")
    return bool(start.strip()) and not start.strip().isdigit()


def _check_limits(options: Options) -> None:
    follow = options.follow
    given = {
        "maxFilesPerTrigger": follow.max_files,
        "maxBytesPerTrigger": follow.max_bytes,
        "maxRowsPerTrigger": follow.max_rows,
    }
    asked = [key for key, value in given.items() if value is not None]
    if asked and not HAS_ADMISSION:
        raise OptionError(
            f"Cannot heed {', '.join(asked)}: Spark 4.1 does not tell a Python source where a batch begins or whether "
            "it is the last of a run, so each takes all there is. Leave it out, or use Spark 4.2 or newer."
        )
