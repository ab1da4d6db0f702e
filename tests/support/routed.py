"""A stream whose rows choose their tables: what each of them, the quarantine and the home have, and if it adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from paimon_sink import PwcDataSource
from paimon_sink.core.errors import StorageError, TableNotFoundError
from paimon_sink.core.messages import RoutedFiles
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.quarantine_sums import opener
from paimon_sink.maintain.verify import verify
from paimon_sink.route.deliver import Courier, Owed
from paimon_sink.route.settle import Settled, settle_home
from paimon_sink.route.spare import Spare
from paimon_sink.route.sums import RouteSums
from paimon_sink.spark.writers import PwcBatchWriter, PwcCommitMessage, PwcStreamWriter
from tests.support.batches import opened
from tests.support.lake import Lake
from tests.support.whole import assert_whole

__all__ = ["ID_AND_ROUTE", "Routed", "Row", "refusing", "routed", "routed_rows"]

ID_AND_ROUTE = StructType([StructField("id", LongType()), StructField("to", StringType())])
Row = tuple[int, str | None]


def routed_rows(*found: Row) -> pa.RecordBatch:
    ids, routes = zip(*found, strict=True) if found else ((), ())
    schema = pa.schema([("id", pa.int64()), ("to", pa.string())])
    return pa.RecordBatch.from_pydict({"id": list(ids), "to": list(routes)}, schema=schema)


@dataclass(frozen=True)
class Routed:
    """The tables of one database, and a writer into all of them. Tables are committed one after the other."""

    lake: Lake

    @property
    def database(self) -> str:
        return self.lake.table.partition(".")[0]

    def with_options(self, **extra: str) -> Routed:
        """As of a lake: a dot is two underscores."""
        return Routed(self.lake.with_options(**extra))

    @property
    def judging(self) -> Routed:
        """With a quarantine for rows below one, and for those without a table."""
        return self.judging_by("id > 0")

    def judging_by(self, check: str) -> Routed:
        return self.with_options(
            quarantine=f"{self.database}.bad",
            quarantine__maxShare="1",
            check__positive=check,
            route__onUnknown="quarantine",
        )

    def options(self) -> dict[str, str]:
        own = {key: text for key, text in self.lake.all_options().items() if key != "table"}
        routes = {"routeColumn": "to", "route.database": self.database, "route.commitThreads": "1"}
        return {**routes, **own}

    def table(self, name: str) -> Lake:
        return Lake(self.lake.options, table=f"{self.database}.{name}")

    @property
    def home(self) -> Lake:
        return self.table("pwc_routes")

    # ------------------------------------------------------------ writing

    def writer(self) -> PwcStreamWriter:
        return PwcDataSource(self.options()).streamWriter(ID_AND_ROUTE, False)

    def job(self, identifier: int | None) -> PwcBatchWriter:
        named = {} if identifier is None else {"commitIdentifier": str(identifier)}
        return PwcDataSource({**self.options(), **named}).writer(ID_AND_ROUTE, False)

    def write(self, *found: Row) -> PwcCommitMessage:
        return self.writer().write(iter([routed_rows(*found)]))

    def commit(self, batch_id: int, *messages: PwcCommitMessage | None) -> None:
        self.writer().commit(list(messages), batch_id)

    def append(self, batch_id: int, *found: Row) -> PwcCommitMessage:
        message = self.write(*found)
        self.commit(batch_id, message)
        return message

    def run(self, identifier: int | None, *found: Row) -> None:
        message = self.job(identifier).write(iter([routed_rows(*found)]))
        self.job(identifier).commit([message])

    def settle(self) -> Settled:
        kept = ("table", "route", "regional", "quarantine", "check")
        own = {
            key: text
            for key, text in self.lake.all_options().items()
            if key == "tableFormat" or not key.startswith(kept)
        }
        options = {**own, "table": self.home.table}
        return settle_home(parse_options(options, purpose=Purpose.STREAM_WRITE))

    def parts_of(self, message: PwcCommitMessage) -> tuple[RoutedFiles, ...]:
        return opened(message).routed

    # ------------------------------------------------------------ looking

    def ids(self, name: str) -> list[int]:
        try:
            return self.table(name).ids()
        except TableNotFoundError:
            return []

    def is_there(self, name: str) -> bool:
        try:
            self.table(name).open()
        except TableNotFoundError:
            return False
        return True

    def home_options(self) -> Options:
        return parse_options(self.home.all_options(), purpose=Purpose.READ)

    def problems(self) -> list[str]:
        """What ``pwc verify`` says of the home."""
        options = self.home_options()
        home = self.home.open()
        report = verify(home, open_quarantine=opener(options.table), check_routes=RouteSums(options))
        return [f"{problem.kind.value}: {problem.where} {problem.what}" for problem in report.problems]

    def orphans(self, name: str) -> list[str]:
        """Data files of a table that no snapshot names, and no home either."""
        lake = self.table(name)
        spare = Spare(lake.open(), parse_options(lake.all_options(), purpose=Purpose.READ))
        report = verify(lake.open(), spared=spare)
        return [orphan.path for orphan in report.orphans if orphan.path.endswith(".parquet")]

    def assert_in(self, *, bad: Iterable[int] = (), **tables: Iterable[int]) -> None:
        """Each row is where it should be, once, and the home adds up."""
        found = {name: self.ids(name) for name in (*tables, "bad")}
        expected = {**{name: sorted(ids) for name, ids in tables.items()}, "bad": sorted(bad)}
        assert found == expected, (found, expected)
        problems = self.problems()
        assert problems == [], problems
        for name in (*tables, "bad", "pwc_routes"):
            assert_whole(self.table(name))


def routed(lake: Lake) -> Routed:
    return Routed(lake)


@contextmanager
def refusing(tables: Routed, *names: str) -> Iterator[None]:
    """These tables take no batch."""
    deliver = Courier.deliver

    def refused(own: Courier, owed: Sequence[Owed]) -> int:
        if owed[0].part.table in {tables.table(name).table for name in names}:
            raise StorageError("the store refuses")
        return deliver(own, owed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Courier, "deliver", refused)
        yield
