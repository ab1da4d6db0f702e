"""The clauses about names of snapshots, about going back to one, and about what lies in single files."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import CommitConflictError
from paimon_sink.formats.values import AsOf
from paimon_sink.testing.contract_lake import ContractLake, rows

__all__ = ["RefsContract", "RollbackContract"]


class RefsContract:
    """What every format keeps of tags and of files read by themselves. With a fixture ``lake``."""

    def test_a_tag_names_its_snapshot_until_it_is_dropped(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        lake.append(1, rows(2))
        first, second = (snapshot.snapshot_id for snapshot in lake.history())
        refs = lake.open().refs

        assert refs.tag("old", first)
        assert refs.tag("new", second)
        assert refs.tag("old", second), "whoever took it meant the same"

        assert refs.tags() == {"old": first, "new": second}
        assert {name: snapshot.rows for name, snapshot in refs.tagged().items()} == {"old": 1, "new": 2}
        assert lake.open().scans.at(AsOf(version="old")).snapshot_id == first
        refs.drop_tag("old")
        refs.drop_tag("old")
        assert lake.open().refs.tag_names() == ["new"]

    def test_a_snapshot_that_is_not_there_gets_no_tag(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        [only] = (snapshot.snapshot_id for snapshot in lake.history())

        assert not lake.open().refs.tag("none", only + 98)
        assert lake.open().refs.tag_names() == []

    def test_the_ledger_of_an_older_snapshot_is_what_it_was(self, lake: ContractLake) -> None:
        for batch in range(3):
            lake.append(batch, rows(batch))
        first, second, _ = (snapshot.snapshot_id for snapshot in lake.history())
        commits = lake.open().commits

        assert commits.ledger_at(first, commit_user="test").entries["test"].batch_id == 0
        assert commits.ledger_at(second, commit_user="test").entries["test"].batch_id == 1
        assert "other" not in commits.ledger_at(second, commit_user="other").entries

    def test_a_file_is_read_by_itself_whoever_names_it(self, lake: ContractLake) -> None:
        lake.append(0, rows(1, 2))
        lake.write(rows(3))
        table = lake.open()
        stored_rows = table.upkeep.stored_rows()

        found = {
            tuple(sorted(row["id"] for batch in reading for row in batch.to_pylist()))
            for path in lake.data_files()
            for reading in stored_rows.readings(path, ["id"], stored=None)
        }

        assert found == {(1, 2), (3,)}
        assert all(map(stored_rows.may_hold_rows, lake.data_files()))
        assert not any(map(stored_rows.may_hold_rows, lake.metadata_files()))
        with pytest.raises(FileNotFoundError):
            list(stored_rows.readings(lake.data_files()[0] + "x.parquet", ["id"], stored=None))


class RollbackContract:
    """What every format keeps of rolling back. With a fixture ``lake``."""

    def test_an_older_snapshot_becomes_the_newest_and_later_batches_come_again(self, lake: ContractLake) -> None:
        for batch in range(3):
            lake.append(batch, rows(batch))
        first, second, third = (snapshot.snapshot_id for snapshot in lake.history())
        files = lake.data_files()

        done = lake.open().refs.roll_back(first, newest=third)

        assert done.snapshot_ids == (third, second)
        assert lake.ids() == [0]
        assert lake.data_files() == files
        lake.append(0, rows(0))
        lake.append(1, rows(1))
        assert lake.ids() == [0, 1]

    def test_a_table_that_moved_on_is_left_as_it_is(self, lake: ContractLake) -> None:
        lake.append(0, rows(0))
        lake.append(1, rows(1))
        first, second = (snapshot.snapshot_id for snapshot in lake.history())
        lake.append(2, rows(2))

        with pytest.raises(CommitConflictError):
            lake.open().refs.roll_back(first, newest=second)

        assert lake.ids() == [0, 1, 2]
