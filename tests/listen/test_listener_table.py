"""What a listener of one's own may do with its table, and what it may not."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import OptionError
from paimon_sink.listen.table import ListenerTable
from tests.support.lake import Lake, rows


def test_it_says_what_the_table_is(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    lake.append(0, rows(1))

    table = ListenerTable.of(lake.open())

    assert (table.label, table.partition_spec, table.schema.names) == ("sales.orders", ("day",), ["id", "day"])


def test_tags_and_files_beside_the_rows_are_its_to_write(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    table = ListenerTable.of(local_lake.open())

    assert table.tag("nightly", local_lake.snapshot_ids()[0])
    table.write_file("notes/_SUCCESS", b"done")

    assert table.tag_names() == ["nightly"]
    assert table.read_file("notes/_SUCCESS") == b"done"
    table.drop_tag("nightly")
    assert table.tag_names() == []


@pytest.mark.parametrize("path", ["../other/file", "/etc/passwd", "..", "notes/../../other"])
def test_files_outside_of_the_table_are_not(local_lake: Lake, path: str) -> None:
    local_lake.append(0, rows(1))

    with pytest.raises(OptionError, match="only write inside the table"):
        ListenerTable.of(local_lake.open()).write_file(path, b"")


def test_nothing_that_publishes_expires_or_deletes_is_among_it() -> None:
    offered = {name for name in dir(ListenerTable) if not name.startswith("_")}

    assert offered == {
        "of",
        *("tag", "tag_names", "drop_tag", "keeps_partitions", "add_partition", "read_file", "write_file"),
    }
