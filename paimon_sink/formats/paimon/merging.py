"""Paimon's manifests merged while a snapshot is built.

A list of manifests is a story, oldest first: an entry that takes a file out comes after the one that put it in, and
Java's readers refuse another order. So only neighbours are merged. Entries are carried over as they were read, byte for
byte where they hold bytes: whoever wrote them may know more of them than we do.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import fastavro
from pypaimon.common.memory_size import MemorySize
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.schema.data_file_meta import DATA_FILE_META_SCHEMA
from pypaimon.manifest.schema.manifest_entry import MANIFEST_ENTRY_SCHEMA
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta
from pypaimon.table.file_store_table import FileStoreTable
from pypaimon.table.row.generic_row import GenericRow, GenericRowDeserializer
from pypaimon.utils.range import Range

from paimon_sink.formats.merging import Inputs, Leftovers, MergeRule, Weight
from paimon_sink.formats.paimon.entries import ADD
from paimon_sink.formats.paimon.manifests import named

log = logging.getLogger(__name__)

_MIN_COUNT, _FULL_SIZE = "manifest.merge-min-count", "manifest.full-compaction-threshold-size"
_DEFAULT_MIN_COUNT = 30
_DEFAULT_FULL_SIZE = 16 << 20
_READERS = 8
_VERSION = 2
_ENTRY_FIELDS = frozenset(field["name"] for field in MANIFEST_ENTRY_SCHEMA["fields"])
_FILE_FIELDS = frozenset(field["name"] for field in DATA_FILE_META_SCHEMA["fields"])

Identity = tuple[object, ...]


@dataclass(frozen=True)
class Merged:
    """A list of manifests after merging, and what was written for it."""

    manifests: list[ManifestFileMeta]
    made: dict[Inputs, Sequence[ManifestFileMeta]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Of the manifests that were written."""
        return [manifest.file_name for made in self.made.values() for manifest in made]


class ManifestMerger:
    """Decides what to merge in the base of the next snapshot, and writes it."""

    def __init__(self, table: FileStoreTable) -> None:
        options = table.options.options.to_map()
        self._carrier = _Carrier(table)
        self._target_bytes: int = table.options.manifest_target_size()
        self._full_bytes = _bytes(options.get(_FULL_SIZE), _DEFAULT_FULL_SIZE)
        self._rule = MergeRule(
            count=max(2, _number(options.get(_MIN_COUNT), _DEFAULT_MIN_COUNT)), target_bytes=self._target_bytes
        )

    def merge(self, manifests: Sequence[ManifestFileMeta], leftovers: Leftovers[ManifestFileMeta]) -> Merged:
        """The list as it goes on. Raises what reading and writing raise, and leaves nothing behind then.

        ``leftovers`` are those of the same commit: what it merged for an attempt that was lost is used again.
        """
        again = leftovers.take(lambda inputs: _place(inputs, manifests) is not None)
        if again:
            # What is due beyond that can wait for the next commit.
            return Merged(_spliced(manifests, again), again)
        made: dict[Inputs, Sequence[ManifestFileMeta]] = {}
        try:
            for group in self._due(manifests):
                members = [manifests[position] for position in group.positions]
                made[tuple(member.file_name for member in members)] = self._carrier.write(
                    group.entries, self._target_bytes
                )
        except BaseException:
            # May go: they were made for a snapshot that is not built.
            leftovers.keep(made)
            leftovers.close()
            raise
        return Merged(_spliced(manifests, made), made)

    def _due(self, manifests: Sequence[ManifestFileMeta]) -> Iterator[_Group]:
        deleting = sum(manifest.file_size for manifest in manifests if manifest.num_deleted_files)
        if deleting >= self._full_bytes:
            yield from self._without_deletions(manifests)
            return
        weights = [
            Weight(manifest.num_added_files + manifest.num_deleted_files, manifest.file_size) for manifest in manifests
        ]
        for run in self._rule.runs(weights):
            left = _settled(self._carrier.read_all([manifests[position] for position in run]))
            if left is None:
                log.warning("Manifests from %s on are not merged: not ours to judge", manifests[run[0]].file_name)
            else:
                yield _Group(run, left)

    def _without_deletions(self, manifests: Sequence[ManifestFileMeta]) -> Iterator[_Group]:
        """The manifests that take files out, or whose files are taken out, as live files only; small ones go along."""
        gone = self._taken_out(manifests)
        if gone is None:
            return
        partitions = {entry.partition_bytes: tuple(entry.partition.values) for entry in gone.values()}
        cancelled: set[Identity] = set()
        group, filled = _Group(), 0
        for position, manifest in enumerate(manifests):
            left = self._left_of(manifest, gone.keys(), cancelled, partitions.values())
            if left is None or filled + manifest.file_size > self._target_bytes:
                if group.is_worth_it:
                    yield group
                group, filled = _Group(), 0
            if left is not None:
                group.add(position, left, manifest)
                filled += manifest.file_size
        if group.is_worth_it:
            yield group

    def _taken_out(self, manifests: Sequence[ManifestFileMeta]) -> dict[Identity, _Carried] | None:
        gone: dict[Identity, _Carried] = {}
        for manifest in manifests:
            if manifest.num_deleted_files:
                entries = self._carrier.read_all([manifest])
                if entries is None:
                    return None
                gone |= {entry.identity: entry for entry in entries if entry.kind != ADD}
        return gone

    def _left_of(
        self,
        manifest: ManifestFileMeta,
        gone: Set[Identity],
        cancelled: set[Identity],
        partitions: Iterable[tuple[Any, ...]],
    ) -> list[_Carried] | None:
        """What is left of a manifest, or None when it stays as it is.

        A deletion goes only once its addition went: should that be where nobody looked, it is still needed.
        """
        must_change = manifest.num_deleted_files > 0 or 2 * manifest.file_size < self._target_bytes
        if not must_change and not any(_may_hold(manifest, partition) for partition in partitions):
            return None
        entries = self._carrier.read_all([manifest])
        if entries is None:
            return None
        left = []
        for entry in entries:
            if entry.kind == ADD and entry.identity in gone:
                cancelled.add(entry.identity)
            elif entry.kind == ADD or entry.identity not in cancelled:
                left.append(entry)
        return left if must_change or len(left) < len(entries) else None


@dataclass
class _Group:
    """Neighbours that become one, and the entries that are left of them."""

    positions: list[int] = field(default_factory=list)
    entries: list[_Carried] = field(default_factory=list)
    dropped: int = 0

    def add(self, position: int, left: list[_Carried], manifest: ManifestFileMeta) -> None:
        self.positions.append(position)
        self.entries += left
        self.dropped += manifest.num_added_files + manifest.num_deleted_files - len(left)

    @property
    def is_worth_it(self) -> bool:
        return len(self.positions) > 1 or self.dropped > 0


# ---------------------------------------------------------------- entries as they are


@dataclass(frozen=True)
class _File:
    """What the meta of a manifest is made of."""

    schema_id: int
    level: int
    row_count: int
    first_row_id: int | None

    def row_id_range(self) -> Range:
        assert self.first_row_id is not None
        return Range(self.first_row_id, self.first_row_id + self.row_count - 1)


@dataclass(frozen=True)
class _Carried:
    """An entry with its record to the letter."""

    record: dict[str, Any]
    kind: int
    partition: GenericRow
    bucket: int
    total_buckets: int
    file: _File

    @property
    def partition_bytes(self) -> bytes:
        return bytes(self.record["_PARTITION"])

    @property
    def identity(self) -> Identity:
        """What Java tells files apart by."""
        file = self.record["_FILE"]
        return (
            self.record["_PARTITION"],
            self.bucket,
            self.file.level,
            file["_FILE_NAME"],
            tuple(file["_EXTRA_FILES"] or ()),
            file.get("_EMBEDDED_FILE_INDEX"),
            file.get("_EXTERNAL_PATH"),
        )


class _Carrier(ManifestFileManager):
    """pypaimon's writer, with its rolling and its figures, for records that are only passed on."""

    def write(self, entries: Sequence[_Carried], target_bytes: int) -> list[ManifestFileMeta]:
        return list(self.rolling_write(list(entries), target_bytes, f"manifest-{uuid.uuid4()}"))

    @staticmethod
    def _to_avro_record(entry: Any) -> dict[str, Any]:
        record: dict[str, Any] = entry.record
        return record

    def read_all(self, manifests: Sequence[ManifestFileMeta]) -> list[_Carried] | None:
        """The entries in their order, or None if some have fields that we would not pass on."""
        carried: list[_Carried] = []
        with ThreadPoolExecutor(_READERS) as readers:
            for entries in readers.map(self._carried, manifests):
                if entries is None:
                    return None
                carried += entries
        return carried

    def _carried(self, manifest: ManifestFileMeta) -> list[_Carried] | None:
        path = f"{self.manifest_path}/{manifest.file_name}"
        with named("manifest", path):
            with self.file_io.new_input_stream(path) as stream:
                raw = stream.read()
            records: list[Any] = list(fastavro.reader(BytesIO(raw)))
            if len(records) != manifest.num_added_files + manifest.num_deleted_files:
                raise ValueError(f"it has {len(records)} entries, its list says otherwise")
            if not all(map(_is_known, records)):
                return None
            partitions: dict[bytes, GenericRow] = {}
            return [self._entry(record, partitions) for record in records]

    def _entry(self, record: dict[str, Any], partitions: dict[bytes, GenericRow]) -> _Carried:
        file, raw = record["_FILE"], record["_PARTITION"]
        if raw not in partitions:
            partitions[raw] = GenericRowDeserializer.from_bytes(raw, self.partition_keys_fields)
        created = file.get("_CREATION_TIME")
        if isinstance(created, datetime) and created.tzinfo is None:
            # It would be taken for the time of this machine's zone.
            file["_CREATION_TIME"] = created.replace(tzinfo=UTC)
        return _Carried(
            record,
            kind=record["_KIND"],
            partition=partitions[raw],
            bucket=record["_BUCKET"],
            total_buckets=record["_TOTAL_BUCKETS"],
            file=_File(file["_SCHEMA_ID"], file["_LEVEL"], file["_ROW_COUNT"], file.get("_FIRST_ROW_ID")),
        )


def _is_known(record: dict[str, Any]) -> bool:
    return record["_VERSION"] == _VERSION and record.keys() <= _ENTRY_FIELDS and record["_FILE"].keys() <= _FILE_FIELDS


# ---------------------------------------------------------------- pure


def _settled(entries: Iterable[_Carried] | None) -> list[_Carried] | None:
    """What is left once pairs cancel. None where a file comes or goes twice: readers may disagree on what that means.

    A deletion stays if its addition is not among them: that one is further down the list.
    """
    if entries is None:
        return None
    left: dict[Identity, _Carried] = {}
    cancelled: set[Identity] = set()
    for entry in entries:
        identity = entry.identity
        earlier = left.get(identity)
        if identity in cancelled or (earlier is not None and (earlier.kind != ADD or entry.kind == ADD)):
            return None
        if earlier is not None:
            del left[identity]
            cancelled.add(identity)
        else:
            left[identity] = entry
    return list(left.values())


def _place(inputs: Inputs, manifests: Sequence[ManifestFileMeta]) -> int | None:
    """Where the inputs stand in the list, one after the other."""
    names = [manifest.file_name for manifest in manifests]
    start = names.index(inputs[0]) if inputs[0] in names else None
    return start if start is not None and tuple(names[start : start + len(inputs)]) == inputs else None


def _spliced(
    manifests: Sequence[ManifestFileMeta], made: dict[Inputs, Sequence[ManifestFileMeta]]
) -> list[ManifestFileMeta]:
    """The list with what was made in the place of its inputs."""
    replaced = {name for inputs in made for name in inputs}
    at_start = {inputs[0]: result for inputs, result in made.items()}
    spliced: list[ManifestFileMeta] = []
    for manifest in manifests:
        spliced.extend(at_start.get(manifest.file_name, ()))
        if manifest.file_name not in replaced:
            spliced.append(manifest)
    return spliced


def _may_hold(manifest: ManifestFileMeta, partition: Sequence[Any]) -> bool:
    """Whether a manifest may have files of a partition, by the bounds in its list."""
    stats = manifest.partition_stats
    for index, value in enumerate(partition):
        low, high = stats.min_values.get_field(index), stats.max_values.get_field(index)
        if value is not None and low is not None and high is not None and not low <= value <= high:
            return False
    return True


def _number(text: Any, default: int) -> int:
    return int(text) if text is not None and str(text).strip().isdecimal() else default


def _bytes(text: Any, default: int) -> int:
    try:
        return default if text is None else int(MemorySize.parse(str(text)).get_bytes())
    except ValueError:
        return default
