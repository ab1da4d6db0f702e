"""What cleaning and checking make of the files that mark-done leaves in partitions."""

from __future__ import annotations

import uuid

import pytest

from paimon_sink.formats.audit import FileKind
from paimon_sink.formats.iceberg import kinds as iceberg
from paimon_sink.formats.paimon import kinds as paimon

UNFINISHED = f"._SUCCESS.{uuid.uuid4().hex}.tmp"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("day=1/hour=2/_SUCCESS", FileKind.KEPT, id="in a partition"),
        pytest.param(f"day=1/hour=2/{UNFINISHED}", FileKind.TEMPORARY, id="left by a writer that died"),
        pytest.param("day=1/hour=2/notes.txt", FileKind.FOREIGN, id="something else in a partition"),
        pytest.param("day=1/_SUCCESS", FileKind.FOREIGN, id="above the partitions"),
        pytest.param("hour=2/day=1/_SUCCESS", FileKind.FOREIGN, id="in no partition of this table"),
        pytest.param("_SUCCESS", FileKind.FOREIGN, id="in the table"),
        pytest.param("day=1/hour=2/bucket-0/_SUCCESS", FileKind.FOREIGN, id="in a bucket"),
    ],
)
def test_on_paimon(path: str, kind: FileKind) -> None:
    assert paimon.kind_of(path, partition_keys=("day", "hour")) is kind


def test_on_paimon_without_partitions_there_is_none() -> None:
    assert paimon.kind_of("_SUCCESS", partition_keys=()) is FileKind.FOREIGN
    assert paimon.kind_of("bucket-0/_SUCCESS", partition_keys=()) is FileKind.FOREIGN


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("data/day=1/hour=2/_SUCCESS", FileKind.KEPT, id="in a partition"),
        pytest.param(f"data/day=1/{UNFINISHED}", FileKind.TEMPORARY, id="left by a writer that died"),
        pytest.param("data/day=1/notes.txt", FileKind.FOREIGN, id="something else in a partition"),
        pytest.param("_SUCCESS", FileKind.FOREIGN, id="in the table"),
    ],
)
def test_on_iceberg(path: str, kind: FileKind) -> None:
    assert iceberg.kind_of(path) is kind
