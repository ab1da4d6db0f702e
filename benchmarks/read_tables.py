"""The tables that the benchmark of reads is about: written once with our sink, in files of one size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["SHAPES", "Shape", "Stored", "write"]

_EPOCH_US = 1_700_000_000_000_000
_WIDE = 60


@dataclass(frozen=True)
class Shape:
    """Columns, each as Spark computes it from the number of the row, ``id``."""

    key: str
    columns: Mapping[str, str]


def _hashed(salt: int, values: int) -> str:
    return f"pmod(xxhash64(id, {salt}), {values})"


def _amount(salt: int) -> str:
    """From 0 to 1,000, in steps that a double adds up exactly: so every reader has to come to the same sum."""
    return f"{_hashed(salt, 1000 << 16)} / 65536D"


_NARROW = {
    "id": "id",
    "day": f"concat('2026-11-', lpad(CAST({_hashed(1, 28)} + 1 AS STRING), 2, '0'))",
    "customer": f"concat('customer-', {_hashed(2, 200_000)})",
    "amount": _amount(3),
    "at": f"timestamp_micros({_EPOCH_US} + id * 1000)",
}


def _mixed(number: int) -> tuple[str, str]:
    """A further column of the wide table: name and expression."""
    kinds = {
        "long": f"xxhash64(id, {number})",
        "int": f"CAST(if(pmod(id, 10) = 0, NULL, {_hashed(number, 100_000)}) AS INT)",
        "double": _amount(number),
        "label": f"concat('label-', {_hashed(number, 28)})",
        "text": f"concat('text-', {_hashed(number, 200_000)})",
        "time": f"timestamp_micros({_EPOCH_US} + {_hashed(number, 86_400_000_000)})",
        "date": f"date_add(DATE'2026-01-01', CAST({_hashed(number, 365)} AS INT))",
        "flag": f"{_hashed(number, 2)} = 0",
        "price": f"CAST({_hashed(number, 1_000_000)} AS DECIMAL(12, 2))",
    }
    kind = list(kinds)[number % len(kinds)]
    return f"{kind}_{number}", kinds[kind]


SHAPES: Mapping[str, Shape] = {
    "narrow": Shape("narrow", _NARROW),
    "wide": Shape("wide", {**_NARROW, **dict(_mixed(number) for number in range(len(_NARROW), _WIDE))}),
}


@dataclass(frozen=True)
class Stored:
    """A table that is not written to again."""

    shape: Shape
    format: str
    rows: int
    warehouse: Path

    @property
    def title(self) -> str:
        return f"{self.rows:,} x {len(self.shape.columns)}"

    @property
    def options(self) -> dict[str, str]:
        return {"warehouse": str(self.warehouse), "table": f"bench.{self.shape.key}", "tableFormat": self.format}

    @cached_property
    def files(self) -> list[str]:
        """All data files that lie there. One that is not of the table would be noticed: rows are counted."""
        return sorted(str(path) for path in self.warehouse.rglob("*.parquet"))

    @cached_property
    def list_of_files(self) -> Path:
        """A file that names them, for a source that is given only text."""
        path = self.warehouse / "files.txt"
        path.write_text("\n".join(self.files))
        return path

    @cached_property
    def iceberg_metadata(self) -> str:
        """The newest metadata file. It is all that an engine needs to read the table."""
        return str(max(self.warehouse.rglob("*.metadata.json")))

    def largest_bytes(self) -> int:
        return max(Path(file).stat().st_size for file in self.files)


def write(spark: SparkSession, shape: Shape, table_format: str, *, rows: int, files: int, to: Path) -> Stored:
    """One file a task, unless they are larger than a file of ours gets."""
    stored = Stored(shape, table_format, rows, to / f"{shape.key}-{table_format}")
    columns = [f"{expression} AS {name}" for name, expression in shape.columns.items()]
    frame = spark.range(0, rows, 1, files).selectExpr(*columns)
    frame.write.format("pwc").mode("append").options(**stored.options).save()
    return stored
