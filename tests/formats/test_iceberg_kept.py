"""Metadata whose snapshots stay text: whatever stands in it, it reads and goes on as pyiceberg's own does, and keeps
what pyiceberg does not know."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    update_table_metadata,
)

from paimon_sink.formats.iceberg.file_io import MetadataFile
from paimon_sink.formats.iceberg.kept import (
    KeptSnapshots,
    ancestor_ids,
    ancestors,
    lowest_number,
    mentions,
    standing,
    with_kept,
)
from paimon_sink.formats.iceberg.kept_text import KeptText, slim
from tests.support.lake import Lake, rows

Json = dict[str, Any]

SEEDS = range(60)
NASTY = (
    "plain",
    'a "snapshots":[ in quotes',
    '],"snapshot-log":[',
    "]}",
    '\\"snapshots":[{"snapshot-id":7,',
    "a\nb\tc",
    "Zoë, 東京 & <co>",
    "[]",
    "{}",
    "\\",
)
SPELLINGS: dict[str, Callable[[Json], str]] = {
    "compact": lambda data: json.dumps(data, separators=(",", ":"), ensure_ascii=False),
    "escaped": lambda data: json.dumps(data, separators=(",", ":")),
    "spaced": json.dumps,
    "indented": lambda data: json.dumps(data, indent=2),
    "sorted": lambda data: json.dumps(data, separators=(",", ":"), sort_keys=True),
}


class History:
    """A table's metadata as some engine may have left it, unknown fields and all."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.snapshots: list[Json] = []

    def text(self) -> str:
        return self.random.choice(NASTY)

    def unknown(self) -> Json:
        """Of a version of the specification that nobody knows yet."""
        values: list[Any] = [1, self.text(), [1, {"snapshots": []}], {"snapshot-id": 5, "x": [self.text()]}, True]
        return {f"future-{name}": value for name, value in zip("abc", self.random.sample(values, 3), strict=True)}

    def maybe(self, fields: Json) -> Json:
        return fields if self.random.random() < 0.4 else {}

    def snapshot(self, number: int) -> Json:
        ids = [each["snapshot-id"] for each in self.snapshots]
        parent = self.random.choice([*ids[-2:], None]) if ids else None
        where: Json = {"snapshot-id": self.random.getrandbits(62)}
        where |= {} if parent is None else {"parent-snapshot-id": parent}
        numbered = {"sequence-number": number}
        # pyiceberg and Java order them differently, and others as they like.
        begin = self.random.choice([{**where, **numbered}, {**numbered, **where}, {**where, **numbered}])
        summary = {"operation": "append", "pwc.commit-user": self.text(), self.text(): self.text()}
        rest = {"timestamp-ms": 1_700_000_000_000 + number, "manifest-list": f"file:///lake/m-{number}.avro"}
        found = {**begin, **rest, "summary": summary, "schema-id": 0, **self.maybe(self.unknown())}
        if self.random.random() < 0.1:
            found = dict(self.random.sample(sorted(found.items()), len(found)))
        return found

    def metadata(self) -> Json:
        length = self.random.choice([0, 1, 3, 12])
        for number in range(1, length + 1):
            self.snapshots.append(self.snapshot(number))
        ids = [each["snapshot-id"] for each in self.snapshots]
        refs: Json = {}
        if ids:
            refs["main"] = {"snapshot-id": ids[-1], "type": "branch", **self.maybe(self.unknown())}
            refs["t"] = {"snapshot-id": self.random.choice(ids), "type": "tag", "max-ref-age-ms": 10}
        column = {"id": 1, "name": self.text(), "required": False, "type": "long", **self.maybe(self.unknown())}
        fields: Json = {
            "format-version": 2,
            "table-uuid": str(uuid.UUID(int=self.random.getrandbits(128))),
            "location": "file:///lake/t",
            "last-sequence-number": length,
            "last-updated-ms": 1_700_000_001_000,
            "last-column-id": 1,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [column], **self.maybe(self.unknown())}],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": [], **self.maybe(self.unknown())}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": [], **self.maybe(self.unknown())}],
            "properties": {"k": self.text(), "going": "x", f"p-{self.text()}": self.text()},
            **({"current-snapshot-id": ids[-1]} if ids else self.maybe({"current-snapshot-id": -1})),
            "refs": refs,
            "snapshots": self.snapshots,
            "statistics": [
                {
                    "snapshot-id": each,
                    "statistics-path": "file:///lake/s.puffin",
                    "file-size-in-bytes": 1,
                    "file-footer-size-in-bytes": 1,
                    "blob-metadata": [],
                    **self.maybe(self.unknown()),
                }
                for each in ids[:1]
            ],
            "snapshot-log": [{"timestamp-ms": 1, "snapshot-id": each} for each in ids],
            "metadata-log": [{"timestamp-ms": 1, "metadata-file": f"file:///lake/{self.text()}.json"}],
            **self.maybe(self.unknown()),
        }
        return dict(self.random.sample(sorted(fields.items()), len(fields))) if self.random.random() < 0.3 else fields


@pytest.fixture(params=sorted(SPELLINGS))
def spelt(request: pytest.FixtureRequest) -> Callable[[Json], str]:
    return SPELLINGS[request.param]


def same(ours: TableMetadata, theirs: TableMetadata) -> None:
    for name in type(theirs).model_fields:
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (list(mine) if name in ("snapshots", "snapshot_log") else mine) == other, name


def commit(metadata: TableMetadata, *, parent: int | None) -> tuple[TableUpdate, ...]:
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": 4_611_686_018_427_387_903,
            "parent-snapshot-id": parent,
            "sequence-number": metadata.next_sequence_number(),
            "timestamp-ms": 1_700_000_002_000,
            "manifest-list": "file:///lake/new.avro",
            "summary": Summary(Operation.APPEND, **{"pwc.commit-user": "Zoë"}),
            "schema-id": 0,
        }
    )
    moved = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot.snapshot_id}
    return (
        AddSnapshotUpdate(snapshot=snapshot),
        SetSnapshotRefUpdate.model_validate(moved),
        SetPropertiesUpdate(updates={"new": 'a ],"b'}),
        RemovePropertiesUpdate(removals=["going"]),
    )


def unknown_of(data: Any) -> list[Any]:
    """Every unknown field, and where it is."""
    if isinstance(data, dict):
        own = [(key, value) for key, value in data.items() if key.startswith("future-")]
        return own + [found for key, value in data.items() if (key, value) not in own for found in unknown_of(value)]
    return [found for each in data for found in unknown_of(each)] if isinstance(data, list) else []


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_stands_in_it_reads_as_pyiceberg_reads_it(seed: int, spelt: Callable[[Json], str]) -> None:
    text = spelt(History(seed).metadata())
    theirs = TableMetadataUtil.parse_raw(text)

    found = slim(text)

    assert found is not None
    ours = with_kept(TableMetadataUtil.parse_raw(found.text), found)
    same(ours, theirs)
    ids = [snapshot.snapshot_id for snapshot in theirs.snapshots]
    assert [ours.snapshot_by_id(each) for each in [*ids, 1]] == [theirs.snapshot_by_id(each) for each in [*ids, 1]]
    assert standing(ours, [*ids, 1]) == set(ids)
    assert len(ours.snapshots) == len(ids)
    assert bool(ours.snapshots) == bool(ids)
    for head in theirs.snapshots:
        assert list(ancestors(ours, head)) == list(ancestors(theirs, head))
        assert list(ancestor_ids(ours, head)) == list(ancestor_ids(theirs, head))
        assert lowest_number(ours, head) == lowest_number(theirs, head)
    for user in NASTY:
        summaries = [each.summary.additional_properties for each in theirs.snapshots if each.summary is not None]
        if any(user in summary.values() for summary in summaries):
            assert mentions(ours, user)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_commit_leaves_what_pyiceberg_would_and_all_it_does_not_know(
    seed: int, spelt: Callable[[Json], str], *, packed: bool
) -> None:
    data = History(seed).metadata()
    text = spelt(data)
    ending = ".gz.metadata.json" if packed else ".metadata.json"
    pack = gzip.compress if packed else bytes
    file = MetadataFile(f"file:///lake/1{ending}", pack(text.encode()))
    whole = TableMetadataUtil.parse_raw(text)
    updates = commit(whole, parent=whole.current_snapshot_id)
    theirs = update_table_metadata(whole, updates, metadata_location="file:///lake/1.metadata.json")
    slimmed = gzip.decompress(file.slim_data) if packed else file.slim_data
    view = update_table_metadata(
        TableMetadataUtil.parse_raw(slimmed.decode()), updates, metadata_location="file:///lake/1.metadata.json"
    )

    after = file.followed_by(f"file:///lake/2{ending}", pack(view.model_dump_json().encode()), slim_only=True)

    written = (gzip.decompress(after.data) if packed else after.data).decode()
    same(TableMetadataUtil.parse_raw(written), theirs)
    assert sorted(map(repr, unknown_of(json.loads(written)))) == sorted(map(repr, unknown_of(data)))
    assert json.loads(written)["snapshots"][:-1] == data["snapshots"]
    # The next reader finds the same, whether it read the file or wrote it.
    assert after.slim is not None
    assert after.slim == slim(written)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_expiry_keeps_what_pyiceberg_does_not_know(seed: int) -> None:
    data = History(seed).metadata()
    whole = TableMetadataUtil.parse_raw(json.dumps(data))
    named = {ref.snapshot_id for ref in whole.refs.values()}
    gone = [each.snapshot_id for each in whole.snapshots if each.snapshot_id not in named][:2]
    file = MetadataFile("file:///lake/1.metadata.json", json.dumps(data).encode())
    theirs = update_table_metadata(whole, (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": gone}),))

    after = file.followed_by("file:///lake/2.metadata.json", theirs.model_dump_json().encode(), slim_only=False)

    written = json.loads(after.data)
    same(TableMetadataUtil.parse_raw(after.data.decode()), theirs)
    kept = {each["snapshot-id"]: unknown_of(each) for each in data["snapshots"] if each["snapshot-id"] not in gone}
    assert {each["snapshot-id"]: unknown_of(each) for each in written["snapshots"]} == kept
    for key in ("schemas", "refs", "partition-specs", "sort-orders"):
        assert unknown_of(written[key]) == unknown_of(data[key])


def test_pyiceberg_itself_loses_what_it_does_not_know() -> None:
    """Should this fail, it learned to keep it, and need not be helped."""
    data = next(found for seed in SEEDS if unknown_of(found := History(seed).metadata()))

    again = json.loads(TableMetadataUtil.parse_raw(json.dumps(data)).model_dump_json())

    assert unknown_of(again) == []


@pytest.mark.parametrize("broken", ["", "{", "[]", "{}", '{"format-version":2,"snapshots":3}'])
def test_what_is_no_metadata_is_left_to_pyiceberg(broken: str) -> None:
    assert slim(broken) is None
    assert MetadataFile("1.metadata.json", broken.encode()).slim_data == broken.encode()


@pytest.mark.parametrize("version", [1, 3])
def test_other_versions_of_the_format_are_left_to_pyiceberg(version: int) -> None:
    assert slim(json.dumps({**History(3).metadata(), "format-version": version})) is None


def test_a_branch_whose_snapshot_is_missing_is_left_to_pyiceberg() -> None:
    data = next(found for seed in SEEDS if (found := History(seed).metadata())["snapshots"])
    data["refs"]["main"]["snapshot-id"] = 1

    assert slim(json.dumps(data)) is None


def test_a_name_that_engines_spell_differently_may_be_anywhere() -> None:
    go_spells_it = KeptText(r'{"snapshot-id":1,"summary":{"pwc.commit-user":"a\u0026b"}}')

    assert go_spells_it.mentions("a&b")
    assert not go_spells_it.mentions("nobody")


# ---------------------------------------------------------------- through a catalog


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake({"warehouse": str(tmp_path), "tableFormat": "iceberg"})


def metadata_file(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        (location,) = database.execute("SELECT metadata_location FROM iceberg_tables").fetchone()
    return Path(location.removeprefix("file://"))


def test_a_commit_makes_objects_of_few_snapshots_however_many_there_are(lake: Lake) -> None:
    for batch in range(12):
        lake.append(batch, rows(batch))
    table = lake.open()
    message = lake.write(rows(12))

    head = table.commits.load_head(commit_user="test")
    lake.commit(12, message)

    snapshots = head.native.metadata.snapshots  # type: ignore[attr-defined]
    assert isinstance(snapshots, KeptSnapshots)
    assert snapshots.made <= 2
    assert lake.ids() == list(range(13))


def test_what_a_newer_engine_wrote_is_there_after_our_commits(lake: Lake, tmp_path: Path) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    found = json.loads(metadata_file(tmp_path).read_text())
    found["future-top"] = {"a": [1]}
    found["schemas"][0]["fields"][0]["future-column"] = "x"
    found["snapshots"][0]["future-snapshot"] = "y"
    found["refs"]["main"]["future-ref"] = 1
    metadata_file(tmp_path).write_text(json.dumps(found, indent=1))

    lake.append(2, rows(2))
    lake.with_options(expire__olderThan="0s", expire__keepLast="2").append(3, rows(3))

    now = json.loads(metadata_file(tmp_path).read_text())
    assert now["future-top"] == {"a": [1]}
    assert now["schemas"][0]["fields"][0]["future-column"] == "x"
    assert now["refs"]["main"]["future-ref"] == 1
    assert [each.get("future-snapshot") for each in now["snapshots"]] == [None, None]
    assert lake.ids() == [0, 1, 2, 3]


def test_pyiceberg_goes_on_where_we_stopped_and_we_go_on_after_it(lake: Lake, tmp_path: Path) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    catalog = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    theirs = catalog.load_table("sales.orders")

    theirs.append(pa.Table.from_batches([rows(3)]))
    lake.append(3, rows(4))

    assert sorted(catalog.load_table("sales.orders").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    assert lake.ids() == [0, 1, 2, 3, 4]
    assert len(lake.history()) == 5
