"""Manifests and their lists say the same to us as to the library, whichever file's reader was made first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from paimon_sink.formats.iceberg.avro import entries_in, manifests_in

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
BY_ID = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
IO = PyArrowFileIO()


def manifest(path: Path, spec: PartitionSpec, values: list[Any], *, version: Any = 2) -> ManifestFile:
    """An entry of each status in turn, one a value."""
    writer = write_manifest(version, spec, SCHEMA, IO.new_output(str(path)), 7, "deflate")
    with writer:
        for number, value in enumerate(values):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"data/{number}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(*(() if spec is UNPARTITIONED_PARTITION_SPEC else (value,))),
                record_count=number + 1,
                file_size_in_bytes=100 + number,
                lower_bounds={1: bytes([number])},
            )
            status = list(ManifestEntryStatus)[number % 3]
            entry = ManifestEntry.from_args(status=status, snapshot_id=7, sequence_number=5, data_file=file)
            writer.add_entry(entry)
    return writer.to_manifest_file()


@pytest.mark.parametrize("version", [1, 2])
def test_entries_are_those_that_the_library_reads(tmp_path: Path, version: int) -> None:
    made = [
        manifest(tmp_path / "none.avro", UNPARTITIONED_PARTITION_SPEC, [None] * 4, version=version),
        manifest(tmp_path / "day.avro", BY_DAY, ["monday", None, "tuesday"], version=version),
        manifest(tmp_path / "id.avro", BY_ID, [1, 2, None, 4], version=version),
        manifest(tmp_path / "again.avro", BY_DAY, ["friday"], version=version),
    ]

    for each in (*made, *reversed(made)):
        entries = list(entries_in(IO.new_input(each.manifest_path)))
        theirs = each.fetch_manifest_entry(IO, discard_deleted=False)
        # The library's have inherited from their manifest.
        assert [(entry.status, entry.data_file) for entry in entries] == [
            (entry.status, entry.data_file) for entry in theirs
        ]
        assert [list(entry.data_file.partition._data) for entry in entries] == [
            list(entry.data_file.partition._data) for entry in theirs
        ]


@pytest.mark.parametrize("version", [1, 2])
def test_manifests_are_those_that_the_library_reads(tmp_path: Path, version: Any) -> None:
    made = [manifest(tmp_path / f"{number}.avro", BY_DAY, ["monday"] * number, version=version) for number in (1, 3)]
    path = str(tmp_path / "list.avro")
    with write_manifest_list(version, IO.new_output(path), 7, 6, 3, "deflate") as writer:
        writer.add_manifests(made)

    for _ in range(2):
        found = list(manifests_in(IO.new_input(path)))
        assert [each._data for each in found] == [each._data for each in read_manifest_list(IO.new_input(path))]
        assert [each.manifest_path for each in found] == [each.manifest_path for each in made]


def test_a_file_whose_header_has_no_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "strange.avro"
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": []}, [])
    path.write_bytes(path.read_bytes().replace(b"avro.schema", b"avro.strang"))

    with pytest.raises(ValueError, match="No schema found"):
        list(entries_in(IO.new_input(str(path))))
