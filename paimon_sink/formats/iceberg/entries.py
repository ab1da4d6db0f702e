"""A data file as a commit message carries it, in plain JSON, and as a manifest wants it.

The message says path, rows and size, the entry says the rest. It repeats name, rows and size, so that an entry which
came under the name of another file is found: one would be published, the other deleted.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.typedef import Record

from paimon_sink.core.errors import MessageError
from paimon_sink.core.garbage import no_collection
from paimon_sink.core.messages import DataFile
from paimon_sink.core.strict_json import is_whole, read_json
from paimon_sink.formats.iceberg.metrics import FileMetrics
from paimon_sink.formats.iceberg.partitions import Partitioning, values_of
from paimon_sink.formats.values import ClosedFile

_VERSION = 1
_DATA = "data"
_FIGURES = ("column_sizes", "value_counts", "null_counts", "nan_counts")
_BOUNDS = ("lower", "upper")


def data_path(partition: tuple[Any, ...], name: str, partitioning: Partitioning) -> str:
    """Where a data file goes, relative to the table."""
    return "/".join(filter(None, (_DATA, partitioning.path(partition) if partition else "", name)))


@dataclass(frozen=True)
class WrittenFor:
    """What a task knew of the table when it wrote a file."""

    spec_id: int
    place: str
    """The fingerprint of its location."""


@dataclass(frozen=True)
class CheckedEntries:
    """What the entries of some files say: read once, and needed again when they go into a manifest."""

    written_for: set[WrittenFor] = field(default_factory=set)
    bodies: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    """By the entry."""


def check_entries(files: Sequence[DataFile], partitioning: Partitioning) -> CheckedEntries:
    """What they say; ``MessageError`` unless each is a data file of the table, just as its own entry describes it."""
    checked, known = CheckedEntries(), _Partitions(partitioning)
    with no_collection():
        for file in files:
            checked.bodies[file.entry], written_for = _checked_entry(file, known)
            checked.written_for.add(written_for)
    return checked


class _Partitions:
    """The partitions of many files, of which there are few: each is made of its texts once."""

    def __init__(self, partitioning: Partitioning) -> None:
        self.partitioning = partitioning
        self._known: dict[tuple[str | None, ...], tuple[Record, str, tuple[str | None, ...]]] = {}

    def of(self, texts: Sequence[str | None]) -> tuple[Record, str, tuple[str | None, ...]]:
        """As manifests have it, its directory, and its values in words."""
        key = tuple(texts)
        if key not in self._known:
            partition = self.partitioning.decode(texts)
            values = values_of(partition)
            labels = tuple(None if value is None else str(value) for value in values)
            self._known[key] = (partition, data_path(values, "", self.partitioning), labels)
        return self._known[key]


def _checked_entry(file: DataFile, known: _Partitions) -> tuple[dict[str, Any], WrittenFor]:
    """Raise ``MessageError`` unless the entry is of the file named, and the path is that of the entry's partition.

    A file of another spec is no lie: the table was changed since, which is for the coordinator to refuse.
    """
    path, labels = file.path, file.partition
    try:
        body = read_json(file.entry)
        written_for = WrittenFor(_spec(body), str(body["place"]))
        is_of_today = written_for.spec_id == known.partitioning.spec.spec_id
        described = (body["file"], body["rows"], body["bytes"])
        if is_of_today:
            _, directory, labels = known.of(body["partition"])
            path = f"{directory}/{body['file']}"
    except Exception as error:
        raise _unreadable(file, error) from error
    is_data = file.path.startswith(f"{_DATA}/") and file.path.endswith(".parquet")
    named = (file.path.rpartition("/")[2], file.rows, file.size_bytes)
    if not is_data or named != described or (file.path, file.partition) != (path, labels):
        raise MessageError(
            f"A commit message names the file {file.path[:200]!r} and describes another one. Nothing was committed."
        )
    return body, written_for


def partition_of(file: DataFile, partitioning: Partitioning) -> tuple[Any, ...]:
    """The values of a file's partition, as manifests have them."""
    try:
        return values_of(partitioning.decode(read_json(file.entry)["partition"]))
    except (ValueError, TypeError, KeyError) as error:
        raise _unreadable(file, error) from error


def encode_entry(file: ClosedFile, metrics: FileMetrics, partitioning: Partitioning, *, table_location: str) -> bytes:
    body: dict[str, Any] = {
        "version": _VERSION,
        "place": _fingerprint(table_location),
        "file": file.path.rpartition("/")[2],
        "rows": file.footer.num_rows,
        "bytes": file.size_bytes,
        "spec": partitioning.spec.spec_id,
        "partition": partitioning.encode(file.partition),
        "split_offsets": list(metrics.split_offsets),
    }
    for name in _FIGURES:
        body[name] = {str(key): value for key, value in getattr(metrics, name).items()}
    for name in _BOUNDS:
        bounds = getattr(metrics, name).items()
        body[name] = {str(key): base64.b64encode(value).decode("ascii") for key, value in bounds}
    return json.dumps(body, separators=(",", ":")).encode("utf-8")


def changes_since(written_for: Iterable[WrittenFor], *, spec_id: int, table_location: str) -> list[str]:
    """What became of the table since files were written, as far as they tell."""
    changes: dict[str, None] = {}
    for seen in written_for:
        if seen.spec_id != spec_id:
            changes["the partitioning changed"] = None
        if seen.place != _fingerprint(table_location):
            changes["the table was given another location"] = None
    return list(changes)


def _spec(body: dict[str, Any]) -> int:
    if not is_whole(body["spec"]):
        raise ValueError("its spec is no number")
    return int(body["spec"])


def _fingerprint(location: str) -> str:
    """Tells two locations apart without naming them."""
    return hashlib.sha256(location.rstrip("/").encode("utf-8")).hexdigest()[:16]


def decode_entries(
    files: Sequence[DataFile], partitioning: Partitioning, checked: CheckedEntries | None, *, table_location: str
) -> list[ManifestDataFile]:
    """The files as manifest entries name them. What was ``checked`` is not read again."""
    known, bodies = _Partitions(partitioning), {} if checked is None else checked.bodies
    with no_collection():
        return [_decoded(file, bodies.get(file.entry), known, table_location) for file in files]


def _decoded(file: DataFile, body: dict[str, Any] | None, known: _Partitions, table_location: str) -> ManifestDataFile:
    partitioning = known.partitioning
    try:
        body = read_json(file.entry) if body is None else body
        assert body is not None
        if body["version"] != _VERSION or body["spec"] != partitioning.spec.spec_id:
            raise ValueError(f"version {body['version']!r}, spec {body['spec']!r}")
        figures = {name: _figures(body[name]) for name in _FIGURES}
        bounds = {name: _bytes(body[name]) for name in _BOUNDS}
        offsets = body["split_offsets"]
        if not isinstance(offsets, list) or not all(map(is_whole, offsets)):
            raise ValueError("its split offsets are no numbers")
        decoded = ManifestDataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{table_location.rstrip('/')}/{file.path}",
            file_format=FileFormat.PARQUET,
            partition=known.of(body["partition"])[0],
            record_count=file.rows,
            file_size_in_bytes=file.size_bytes,
            column_sizes=figures["column_sizes"],
            value_counts=figures["value_counts"],
            null_value_counts=figures["null_counts"],
            nan_value_counts=figures["nan_counts"],
            lower_bounds=bounds["lower"],
            upper_bounds=bounds["upper"],
            key_metadata=None,
            split_offsets=offsets,
            equality_ids=None,
            sort_order_id=None,
        )
    except Exception as error:
        raise _unreadable(file, error) from error
    decoded.spec_id = partitioning.spec.spec_id
    return decoded


def _figures(body: dict[str, Any]) -> dict[int, int]:
    if not all(map(is_whole, body.values())):
        raise ValueError("a count is no number")
    return {int(key): value for key, value in body.items()}


def _bytes(body: dict[str, Any]) -> dict[int, bytes]:
    return {int(key): binascii.a2b_base64(value, strict_mode=True) for key, value in body.items()}


def _unreadable(file: DataFile, error: Exception) -> MessageError:
    return MessageError(
        f"A commit message describes the data file {file.path[:200]!r} in a way that cannot be read ({error!r}). "
        "Nothing was committed."
    )
