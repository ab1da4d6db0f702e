"""What a routed batch is to bring into which tables: a file beside the home, written once and never changed.

The put of the home names it, and with that the batch is decided: also for a replay whose rows would choose otherwise.
It stays for as long as a snapshot that names it, since a rollback may make that one the newest again.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.clock import Moment
from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.messages import DataFile, RoutedFiles
from paimon_sink.core.outbox import OutboxPart
from paimon_sink.core.strict_json import as_count, as_list, as_text, as_whole, read_json
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import Plan

__all__ = ["ROUTES", "Manifest", "is_manifest", "manifest_files", "read_manifest", "write_manifest"]

ROUTES = "routes"
"""What the file is called."""
_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """One batch, by table."""

    commit_user: str
    batch_id: int
    planned: Moment | None
    """As of a plan: no file is older."""
    tables: tuple[RoutedFiles, ...]
    column: str | None = None
    """The one by which rows chose, as the options name it."""

    @classmethod
    def of(cls, plan: Plan, *, column: str | None) -> Manifest:
        assert plan.batch_id is not None, "what is owed stands in the ledger"
        return cls(plan.commit_user, plan.batch_id, plan.planned, plan.routed, column)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.tables)

    def to_bytes(self) -> bytes:
        """A line that tells whether the rest is whole, and the rest."""
        body = json.dumps(
            {
                "user": self.commit_user,
                "batch": self.batch_id,
                "column": self.column,
                "planned": None if self.planned is None else [self.planned.wall_ms, self.planned.steady_ms],
                "tables": [_table_fields(part) for part in self.tables],
            },
            separators=(",", ":"),
        ).encode("utf-8")
        head = json.dumps({"version": _VERSION, "sha256": hashlib.sha256(body).hexdigest()}).encode("utf-8")
        return head + b"\n" + body

    @classmethod
    def from_bytes(cls, raw: bytes) -> Manifest:
        """Read it again, or raise ``ValueError``."""
        first, _, body = raw.partition(b"\n")
        head = read_json(first)
        if head["version"] != _VERSION:
            raise ValueError(f"it has version {head['version']!r}, this paimon-sink reads {_VERSION}")
        if hashlib.sha256(body).hexdigest() != head["sha256"]:
            raise ValueError("it is not what was written")
        fields = read_json(body)
        planned = fields["planned"]
        return cls(
            as_text(fields["user"]),
            as_count(fields["batch"]),
            None if planned is None else Moment(*map(as_count, as_list(planned))),
            tuple(_table_from(part) for part in as_list(fields["tables"])),
            None if fields["column"] is None else as_text(fields["column"]),
        )


def _table_fields(part: RoutedFiles) -> dict[str, Any]:
    return {
        "table": part.table,
        "identity": part.table_identity,
        "schemas": sorted(part.schema_ids),
        "watermark": part.watermark_ms,
        "files": [
            [file.path, list(file.partition), file.rows, file.size_bytes, base64.b64encode(file.entry).decode("ascii")]
            for file in part.files
        ],
    }


def _table_from(fields: Any) -> RoutedFiles:
    return RoutedFiles(
        as_text(fields["table"]),
        as_text(fields["identity"]),
        frozenset(as_count(schema) for schema in as_list(fields["schemas"])),
        tuple(_file_from(as_list(file)) for file in as_list(fields["files"])),
        None if fields["watermark"] is None else as_whole(fields["watermark"]),
    )


def _file_from(fields: list[Any]) -> DataFile:
    path, partition, rows, size_bytes, entry = fields
    return DataFile(
        as_text(path),
        tuple(None if value is None else as_text(value) for value in as_list(partition)),
        as_count(rows),
        as_count(size_bytes),
        base64.b64decode(as_text(entry), validate=True),
    )


# ---------------------------------------------------------------- beside the home


def is_manifest(home: Table, path: str) -> bool:
    return home.side_files.is_kept_file(path, ROUTES)


def write_manifest(home: Table, manifest: Manifest) -> OutboxPart:
    """Write it, and give what the ledger is to say of it."""
    path = home.side_files.new_kept_file(ROUTES)
    data = manifest.to_bytes()
    home.store.write(home.full_path(path), data)
    return OutboxPart(home.label, path, manifest.rows, len(data))


def read_manifest(home: Table, path: str) -> Manifest:
    """Raises ``FileNotFoundError``, and ``CorruptTableError`` where it is damaged."""
    if not is_manifest(home, path):
        raise CorruptTableError(f"{path[:200]!r} is no file in which {home.label} keeps what it owes. Refused.")
    try:
        return Manifest.from_bytes(home.store.read(home.full_path(path)))
    except FileNotFoundError:
        raise
    except (ValueError, TypeError, KeyError, LookupError) as error:
        raise CorruptTableError(
            f"{path} of {home.label} cannot be read ({error}): it names data files that may be in no table yet. "
            "Nothing was deleted. Restore the file; or roll the home back to before that snapshot, and write the batch "
            "again."
        ) from error


def manifest_files(home: Table) -> list[str]:
    """All that are there, whether a ledger names them or not."""
    directory = home.side_files.temp_file_path("").rpartition("/")[0]
    paths = (f"{directory}/{name}" for name in home.store.list(home.full_path(directory)))
    return [path for path in paths if is_manifest(home, path)]
