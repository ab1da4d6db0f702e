"""Manifests in blocks of many entries say what the library's say, to every reader, and take less."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriter,
    write_manifest,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from paimon_sink.formats.iceberg.blocks import _BufferEncoder, in_blocks

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "day", StringType(), required=False))
SPEC = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"))


def entries(number: int) -> Iterator[ManifestEntry]:
    chance = random.Random(number)
    for one in range(number):
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"data/day=é/{one:05}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(chance.choice([None, "", "é" * 40])),
            record_count=chance.randrange(2**40),
            file_size_in_bytes=chance.randrange(2**60),
            column_sizes={1: chance.randrange(300), 2: 2**62},
            value_counts={},
            null_value_counts={1: 0},
            nan_value_counts=None,
            lower_bounds={1: chance.randbytes(8), 2: b""},
            upper_bounds={2: chance.randbytes(200)},
            key_metadata=None,
            split_offsets=[4, chance.randrange(2**50)],
            equality_ids=None,
            sort_order_id=None,
        )
        yield ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=7, sequence_number=None, data_file=file
        )


def writer(path: Path, codec: Any) -> ManifestWriter:
    return write_manifest(
        format_version=2,
        spec=SPEC,
        schema=SCHEMA,
        output_file=PyArrowFileIO().new_output(str(path)),
        snapshot_id=7,
        avro_compression=codec,
    )


def written(to: AbstractContextManager[ManifestWriter], number: int, *, last: Any = None) -> Any:
    with to as opened:
        for entry in entries(number):
            opened.add_entry(entry)
        if last is not None:
            opened.add_entry(last)
    return opened.to_manifest_file()


def blocks(path: Path) -> list[list[Any]]:
    with path.open("rb") as file:
        return [list(block) for block in fastavro.block_reader(file)]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("number", [1, 700])
def test_readers_find_what_the_library_would_have_written(tmp_path: Path, number: int, codec: Any) -> None:
    plain, ours = tmp_path / "plain.avro", tmp_path / "ours.avro"

    theirs = written(writer(plain, codec), number)
    made = written(in_blocks(writer(ours, codec)), number)

    assert [row for block in blocks(ours) for row in block] == [row for block in blocks(plain) for row in block]
    read = made.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=True)
    assert [entry.data_file for entry in read] == [
        entry.data_file for entry in theirs.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=True)
    ]
    assert made.manifest_length == ours.stat().st_size
    assert (made.added_files_count, made.added_rows_count, made.partitions) == (
        theirs.added_files_count,
        theirs.added_rows_count,
        theirs.partitions,
    )


def test_a_block_holds_many_entries_and_not_all(tmp_path: Path) -> None:
    written(in_blocks(writer(tmp_path / "ours.avro", "gzip")), 700)

    sizes = [len(block) for block in blocks(tmp_path / "ours.avro")]

    assert len(sizes) > 1
    assert max(sizes) > 100


def test_what_fails_halfway_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        written(in_blocks(writer(tmp_path / "ours.avro", "gzip")), 3, last="no entry")

    assert blocks(tmp_path / "ours.avro") == []


def test_numbers_are_written_as_the_library_writes_them() -> None:
    chance = random.Random(1)
    edges = [sign * 2**power + step for power in range(63) for sign in (1, -1) for step in (-1, 0, 1)]
    numbers = [*edges, 2**63 - 1, -(2**63), *(chance.randrange(-(2**63), 2**63) for _ in range(1000))]
    plain, ours = io.BytesIO(), _BufferEncoder()

    for number in numbers:
        BinaryEncoder(plain).write_int(number)
        ours.write_int(number)

    assert bytes(ours.buffer) == plain.getvalue()
