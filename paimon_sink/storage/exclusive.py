"""Put-if-absent, the primitive that commits are built on, for every kind of store that has it.

Each form returns True only to the caller whose bytes are now there, and False only when another writer's are. A request
that a lower layer repeated (botocore, aiohttp and NFS all do) may find the file of its own first attempt. Every form
recognises that: a commit that took its own snapshot for another writer's would delete its own data files. Any exception
means that the outcome is not known.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from paimon_sink.core.errors import PutReplacedError, StorageError
from paimon_sink.storage.durable import fsync_directory, temporary_beside, write_synced

__all__ = ["ExclusivePut", "exclusive_put", "put_local"]

ExclusivePut = Callable[[str, bytes], bool]

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_RENAMED_BY_OTHERS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")
"""The end of the names that Java Paimon and pypaimon give to temporary files. Ours have no hyphens."""
_PUT_ID = "pwc-put"
_ONE_PUT = 4 * 2**30
_MEMORY_LOCK = threading.Lock()


# ---------------------------------------------------------------- local disks


def put_local(path: str, data: bytes) -> bool:
    """Write a synced temporary file, then hard-link it to ``path``: the name appears at once and with all its bytes."""
    if os.path.lexists(path):
        return False
    temporary = temporary_beside(path)
    try:
        write_synced(temporary, data)
        created = _link(temporary, path)
        if created and not _stays(temporary, path):
            raise PutReplacedError(f"{path} was created, and another engine renamed its own file over it right away.")
    finally:
        _unlink_if_there(temporary)
    if created:
        fsync_directory(os.path.dirname(path))
    return created


def _link(temporary: str, path: str) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # NFS may repeat a link whose response was lost; a second name on our file means that the first attempt landed.
        return os.stat(temporary).st_nlink > 1
    except OSError as error:
        if error.errno in _NO_HARD_LINKS:
            raise StorageError(
                f"Cannot commit to {path}: this filesystem has no hard links, and without them two writers could "
                "overwrite each other's commits. Move the table to a disk with hard links (ext4, xfs, NFS) or to S3."
            ) from error
        raise
    return True


def _stays(temporary: str, path: str) -> bool:
    """Whether our file stays at ``path``, now that it is linked there.

    Other Paimon engines check that the name is free and then rename a temporary file to it, which would replace ours if
    it was linked in between. So their temporary files for this name are removed first: their rename then fails, and
    they retry. A temporary file that is written later comes from an engine that checks after us. A rename that came
    before the removal is detected here.
    """
    directory, name = os.path.split(path)
    prefix = f".{name}."
    for other_name in os.listdir(directory):
        if other_name.startswith(prefix) and _RENAMED_BY_OTHERS.fullmatch(other_name, len(name) + 2):
            # May be deleted: all it can do is replace what was just committed.
            _unlink_if_there(os.path.join(directory, other_name))
    return os.path.samefile(temporary, path)


def _unlink_if_there(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


# ---------------------------------------------------------------- every other store


def exclusive_put(protocol: str, fs: Any) -> ExclusivePut:
    """The put-if-absent of an fsspec filesystem. Raises ``StorageError`` when this version of it has none."""
    if protocol == "s3":
        return lambda path, data: _put_s3(fs, path, data)
    if protocol == "memory":
        return lambda path, data: _put_memory(fs, path, data)
    condition = _condition(fs)
    if condition is None:
        package = type(fs).__module__.partition(".")[0]
        raise StorageError(
            f"Cannot write to {protocol}: the installed {package} has no exclusive create, so "
            "two writers could overwrite each other's commits. Upgrade it, or use local disk or S3."
        )
    return lambda path, data: _put_conditional(fs, path, data, condition)


def _put_s3(fs: Any, path: str, data: bytes) -> bool:
    """Conditional PUT (``If-None-Match: *``), always one request: not every server honours it on multipart uploads."""
    put_id = uuid.uuid4().hex
    try:
        fs.pipe_file(path, data, mode="create", chunksize=_ONE_PUT, Metadata={_PUT_ID: put_id})
    except OSError as error:
        # s3fs recognises AWS's own 412 only. A 409 (two conditional PUTs at once) decides nothing and is raised.
        if not _is_precondition_failed(error):
            raise
    else:
        return True
    return _s3_put_id(fs, path) == put_id


def _is_precondition_failed(error: OSError) -> bool:
    response = getattr(error.__cause__, "response", None)
    if not isinstance(response, dict):
        return False
    return bool(response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 412)


def _s3_put_id(fs: Any, path: str) -> str | None:
    bucket, key, _ = fs.split_path(path)
    head = fs.call_s3("head_object", Bucket=bucket, Key=key)
    put_id = {name.lower(): value for name, value in head.get("Metadata", {}).items()}.get(_PUT_ID)
    return None if put_id is None else str(put_id)


def _put_memory(fs: Any, path: str, data: bytes) -> bool:
    # fsspec checks and then stores; without the lock another thread could come in between.
    with _MEMORY_LOCK:
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True


def _condition(fs: Any) -> dict[str, Any] | None:
    """The argument by which this class offers exclusive create. One that it does not declare it may ignore."""
    method = getattr(fs, "_pipe_file", None)
    if method is None:
        return None
    parameters = inspect.signature(method).parameters
    if "overwrite" in parameters:
        return {"overwrite": False}
    if "mode" in parameters and type(fs)._pipe_file is not _inherited_pipe_file():
        return {"mode": "create"}
    return None


def _inherited_pipe_file() -> Any:
    from fsspec.asyn import AsyncFileSystem

    return AsyncFileSystem._pipe_file


def _put_conditional(fs: Any, path: str, data: bytes, condition: dict[str, Any]) -> bool:
    put_id = uuid.uuid4().hex
    has_ids = "metadata" in inspect.signature(fs._pipe_file).parameters
    named = {"metadata": {_PUT_ID: put_id}} if has_ids else {}
    try:
        fs.pipe_file(path, data, **condition, **named)
    except Exception as error:
        if not (isinstance(error, FileExistsError) or getattr(error, "error_code", None) == "BlobAlreadyExists"):
            raise
        if has_ids:
            fs.invalidate_cache()
            return (fs.info(path).get("metadata") or {}).get(_PUT_ID) == put_id
        # adlfs has metadata of its own there, and no place for ours.
        if fs.cat_file(path) == data:
            raise StorageError(
                f"{path} is there with exactly the bytes of this put: it may be our own, sent twice. "
                "Read it back to find out."
            ) from error
        return False
    return True
