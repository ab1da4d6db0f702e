"""What a file of an Iceberg table is. Names are judged by the forms that engines and this sink give them."""

from __future__ import annotations

import hashlib
import re

from paimon_sink.formats.audit import FileKind

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LIST = re.compile(rf"snap-\d+-\d+-{_UUID}\.avro")
_MANIFEST = re.compile(rf"{_UUID}-m\d+\.avro")
_METADATA = re.compile(rf"\d{{5,}}-{_UUID}(\.gz)?\.metadata\.json(\.gz)?")
_DATA = re.compile(rf".*{_UUID}.*\.(parquet|orc|avro)")
_MARK = "_SUCCESS"
"""Says that a partition is done. Nothing names it, and it dies with nothing."""
_NOTE = re.compile(r"snap-pwc-[a-z]+\.[0-9a-f]{32}\.avro")
_TEMPORARY = re.compile(rf"\..+\.([0-9a-f]{{32}}|{_UUID})\.tmp")


def temp_file_path(name: str) -> str:
    """Like a manifest list by its name: table buckets take no others."""
    return f"metadata/snap-pwc-{name}.avro"


def cache_file_path(name: str, *, branch: str) -> str:
    """The same for one that stays, a branch: no name of ours for what is temporary."""
    of_branch = hashlib.sha256(branch.encode("utf-8")).hexdigest()[:8]
    return f"metadata/snap-pwc-{name.replace('/', '-')}-{of_branch}.avro"


def kind_of(path: str) -> FileKind:
    *directories, name = path.split("/")
    if not directories or directories[0] not in ("data", "metadata"):
        return FileKind.FOREIGN
    if _TEMPORARY.fullmatch(name) or _NOTE.fullmatch(name):
        return FileKind.TEMPORARY
    if directories[0] == "data":
        if name == _MARK:
            return FileKind.KEPT
        return FileKind.DATA if _DATA.fullmatch(name) else FileKind.FOREIGN
    if directories != ["metadata"]:
        return FileKind.KEPT
    for form, kind in ((_LIST, FileKind.MANIFEST_LIST), (_MANIFEST, FileKind.MANIFEST), (_METADATA, FileKind.METADATA)):
        if form.fullmatch(name):
            return kind
    # Statistics, hints, metadata under other names: only its engine knows who needs it.
    return FileKind.KEPT
