"""Tables that Java made in ways of its own: other file formats, packed metadata, other places for files."""

from __future__ import annotations

import pytest

from integration.interop.iceberg.shared import Shared
from paimon_sink.core.errors import UnsupportedTableError
from tests.support.lake import rows


def test_packed_metadata_is_read_and_goes_on(local: Shared) -> None:
    local.create(properties="'write.metadata.compression-codec'='gzip'")
    local.insert(1)

    local.lake.append(0, rows(2))
    local.insert(3)
    local.lake.append(0, rows(2))

    local.assert_agreed([1, 2, 3])


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_other_file_formats_are_read_right_or_refused(local: Shared, form: str) -> None:
    local.create(properties=f"'write.format.default'='{form}'")
    local.insert(1, 2)

    with pytest.raises(UnsupportedTableError, match=f"file format {form}"):
        local.lake.write(rows(3))
    if form == "orc":
        assert local.lake.ids() == [1, 2]
    else:
        with pytest.raises(UnsupportedTableError, match=r"\.avro is AVRO"):
            local.lake.read()


def test_files_in_the_object_store_layout_are_read_and_writing_is_refused(local: Shared) -> None:
    local.create(properties="'write.object-storage.enabled'='true'")
    local.insert(1, 2)

    with pytest.raises(UnsupportedTableError, match="object store layout"):
        local.lake.write(rows(3))

    local.assert_agreed([1, 2])
