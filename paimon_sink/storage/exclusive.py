"""Put-if-absent, the one primitive that commits rest on, for every kind of store that has it.

Each form answers True only to the caller whose bytes are now there, and False only when somebody else's are. A request
that was repeated below us (botocore, aiohttp and NFS all do that) may find its own first try: every form tells that
apart, because a commit that mistook itself for a winner it lost to would delete its own data files. Any exception means
that the outcome is not known.
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
"""How Java Paimon and pypaimon end the names of their temporary files. Ours have no hyphens."""
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
            raise PutReplacedError(f"{path} was there, and another engine renamed its own file over it at once.")
    finally:
        _unlink_if_there(temporary)
    if created:
        fsync_directory(os.path.dirname(path))
    return created


def _link(temporary: str, path: str) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # NFS may repeat a link whose answer was lost; a second name on our file says that the first try landed.
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
    """Whether our file stays at ``path``, now that it is there.

    Paimon's other engines look whether the name is free, and then rename a temporary file to it; ours would be gone if
    it came in between. So their temporary files for this name go first: whoever wrote one has lost, and is told so by
    the rename that fails. Who writes one later looks after us. What was renamed before that is seen here.
    """
    directory, name = os.path.split(path)
    for found in os.listdir(directory):
        if found.startswith(f".{name}.") and _RENAMED_BY_OTHERS.fullmatch(found, len(name) + 2):
            # May go: it can only replace what was just committed.
            _unlink_if_there(os.path.join(directory, found))
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
        # s3fs knows AWS's own 412 only. A 409 (two conditional PUTs at once) settles nothing and goes up.
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
    found = {name.lower(): value for name, value in head.get("Metadata", {}).items()}.get(_PUT_ID)
    return None if found is None else str(found)


def _put_memory(fs: Any, path: str, data: bytes) -> bool:
    # fsspec looks and then stores; threads of one process would get in between.
    with _MEMORY_LOCK:
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True


def _condition(fs: Any) -> dict[str, Any] | None:
    """How this class spells exclusive create. What it does not declare it may swallow, and overwrite."""
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
    try:
        fs.pipe_file(path, data, **condition)
    except Exception as error:
        if not (isinstance(error, FileExistsError) or getattr(error, "error_code", None) == "BlobAlreadyExists"):
            raise
        if fs.cat_file(path) == data:
            raise StorageError(
                f"{path} is there with exactly the bytes of this put: it may be our own, sent twice. "
                "Read it back to tell."
            ) from error
        return False
    return True
