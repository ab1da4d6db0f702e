"""What a file of a Paimon table is. Names are judged by the forms that Paimon's engines and this sink give them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paimon_sink.formats.audit import FileKind

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LIST = re.compile(rf"manifest-list-{_UUID}-\d+")
_MANIFEST = re.compile(rf"(index-)?manifest-{_UUID}-\d+")
_DATA = re.compile(rf"data-{_UUID}-\d+(\.[a-z0-9]+)?\.(parquet|orc|avro)")
_CHANGELOG = re.compile(rf"changelog-{_UUID}-\d+.*")
_TEMPORARY = re.compile(rf"\..+\.([0-9a-f]{{32}}|{_UUID})\.tmp")
_BUCKET = re.compile(r"bucket-(\d+|postpone)")
_MARK = "_SUCCESS"
"""Says that a partition is done. Nothing names it, and it dies with nothing."""
_CLAIM = re.compile(rf"\d+\.[^.]*\.{_UUID}")
_OWN = ("snapshot", "schema", "tag", "branch", "consumer", "changelog", "index", "statistics", "service", "pwc")


def kind_of(path: str, *, partition_keys: Sequence[str]) -> FileKind:
    *directories, name = path.split("/")
    if not directories:
        return FileKind.FOREIGN
    is_in_bucket = _is_bucket(directories, partition_keys)
    is_in_partition = len(directories) == len(partition_keys) and _is_below(directories, partition_keys)
    is_at_home = is_in_bucket or is_in_partition or directories[0] in (*_OWN, "manifest")
    if not is_at_home:
        return FileKind.FOREIGN
    if _TEMPORARY.fullmatch(name):
        return FileKind.TEMPORARY
    if directories == ["manifest"]:
        if _LIST.fullmatch(name):
            return FileKind.MANIFEST_LIST
        # Others there, such as sidecars, belong to a manifest that only their engine can name.
        return FileKind.MANIFEST if _MANIFEST.fullmatch(name) else FileKind.KEPT
    if is_in_partition:
        return FileKind.KEPT if name == _MARK else FileKind.FOREIGN
    if is_in_bucket:
        if _CHANGELOG.fullmatch(name):
            return FileKind.KEPT
        return FileKind.DATA if _DATA.fullmatch(name) else FileKind.FOREIGN
    if directories[:2] == ["pwc", "claims"] and len(directories) == 4 and _CLAIM.fullmatch(name):
        return FileKind.CLAIM
    return FileKind.KEPT


def _is_bucket(directories: Sequence[str], partition_keys: Sequence[str]) -> bool:
    """Whether this is a bucket below the table's own partitions."""
    if len(directories) != len(partition_keys) + 1 or not _BUCKET.fullmatch(directories[-1]):
        return False
    return _is_below(directories, partition_keys)


def _is_below(directories: Sequence[str], partition_keys: Sequence[str]) -> bool:
    return all(name.startswith(f"{key}=") for name, key in zip(directories, partition_keys, strict=False))
