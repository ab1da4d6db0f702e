"""A streaming source in Python that has one row and asks nobody for it: none in Python starts sooner."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

__all__ = ["BareStream"]


class BareStream(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bare_stream"

    def schema(self) -> str:
        return "id long, day string"

    def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _Reader()


class _Reader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return {"rows": "0"}

    def latestOffset(self, *_: object) -> dict[str, str]:  # noqa: N802
        return {"rows": "1"}

    def partitions(self, start: object, end: object) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        yield 0, "monday"

    def commit(self, end: object) -> None: ...
