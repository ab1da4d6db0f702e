"""Every store behind fsspec: S3, GCS, Azure, and memory for tests.

Only calls that take a path literally are used: fsspec's ``rm`` and ``glob`` read ``[`` and ``*`` as patterns, and a
partition value may hold both.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, BinaryIO, cast

import pyarrow.fs as pafs

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.exclusive import exclusive_put
from paimon_sink.storage.kinds import KINDS
from paimon_sink.storage.logs import keep_out_of_logs
from paimon_sink.storage.output import BufferedOutput, Output, UploadOutput
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import DEFAULT_BLOCK_BYTES, Listed, Store, Upload

__all__ = ["RemoteStore"]

_MODIFIED = ("LastModified", "last_modified", "mtime", "updated", "created")
_DELETE_AT_ONCE = 1000
_MARKERS = ("KeyMarker", "UploadIdMarker")
"""The fields that say where the next page of unfinished uploads begins."""
_S3FS_ATTEMPTS = 2


class RemoteStore(Store):
    def __init__(self, protocol: str, root: str, settings: StorageSettings, *, filesystem: Any = None) -> None:
        """``filesystem`` is one that is open already; without it, the protocol's own is opened from the settings."""
        super().__init__(root, settings)
        self._protocol = protocol
        self.is_far = protocol != "memory"
        with self._doing("open", root):
            self._fs = _filesystem(protocol, root, settings) if filesystem is None else filesystem
            self._put_if_absent = exclusive_put(protocol, self._fs)

    @property
    def arrow_filesystem(self) -> pafs.FileSystem:
        return pafs.PyFileSystem(_handler(self._fs))

    def arrow_path(self, path: str) -> str:
        return str(self._fs._strip_protocol(path))

    def read(self, path: str) -> bytes:
        with self._doing("read", path, absent_is_known=True):
            return bytes(self._fs.cat_file(path))

    def write(self, path: str, data: bytes) -> None:
        with self._doing("write", path):
            self._fs.pipe_file(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with self._doing("create", path):
            return self._put_if_absent(path, data)

    def exists(self, path: str) -> bool:
        with self._doing("look for", path):
            try:
                self._info(path)
            except FileNotFoundError:
                return False
            return True

    def size(self, path: str) -> int:
        with self._doing("look at", path, absent_is_known=True):
            info = self._info(path)
            if info["type"] == "directory":
                raise IsADirectoryError(path)
            return int(info["size"])

    def list(self, path: str) -> list[str]:
        with self._doing("list", path):
            if self._protocol == "s3":
                return sorted(self._names_on_s3(path))
            self._fs.invalidate_cache()
            own = self.arrow_path(path)
            try:
                entries = self._fs.ls(path, detail=True)
            except FileNotFoundError:
                return []
            # A file lists itself, and so does the empty object that some tools put in place of a directory.
            names = {str(entry["name"]).rstrip("/") for entry in entries} - {own.rstrip("/")}
            return sorted(name.rpartition("/")[2] for name in names)

    def walk_files(self, path: str) -> Iterator[str]:
        return (listed.path for listed in self.walk(path))

    def walk(self, path: str) -> Iterator[Listed]:
        with self._doing("list", path):
            self._fs.invalidate_cache()
            own = self.arrow_path(path).rstrip("/")
            try:
                details: dict[str, dict[str, Any]] = self._fs.find(path, detail=True)
            except FileNotFoundError:
                details = {}
        for name, info in sorted(details.items()):
            if name.startswith(own + "/") and not name.endswith("/"):
                size = int(info.get("size") or 0)
                yield Listed(path.rstrip("/") + name[len(own) :], size, _modified_ms(info))

    def uploads(self, path: str) -> Iterator[Upload]:
        if self._protocol != "s3":
            return
        bucket, key, _ = self._fs.split_path(path)
        prefix = key.rstrip("/") + "/"
        markers: dict[str, str] = {}
        while True:
            with self._doing("list unfinished uploads in", path):
                response = self._fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix, **markers)
            for upload in response.get("Uploads") or []:
                name = self.join(path, upload["Key"].removeprefix(prefix))
                yield Upload(name, upload["UploadId"], _modified_ms({"mtime": upload.get("Initiated")}))
            markers = {name: response[f"Next{name}"] for name in _MARKERS if response.get(f"Next{name}")}
            if not response.get("IsTruncated") or not markers:
                return

    def end_upload(self, upload: Upload) -> None:
        bucket, key, _ = self._fs.split_path(upload.path)
        with self._doing("end the upload of", upload.path), suppress(FileNotFoundError):
            self._fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=upload.upload_id)

    def delete(self, path: str) -> None:
        with self._doing("delete", path), suppress(FileNotFoundError):
            self._fs.rm_file(path)

    def delete_many(self, paths: Iterable[str]) -> None:
        if self._protocol == "s3":
            self._delete_in_bulk(paths)
        else:
            super().delete_many(paths)

    def mkdirs(self, path: str) -> None:
        return

    def open_output(self, path: str, *, block_bytes: int = DEFAULT_BLOCK_BYTES) -> Output:
        with self._doing("open", path):
            if self._protocol == "memory":
                return BufferedOutput(path, self._failed, lambda data: self.write(path, data))
            upload = self._fs.open(path, "wb", block_size=block_bytes)
            return UploadOutput(path, self._failed, upload, part_bytes=block_bytes)

    def open_input(self, path: str) -> BinaryIO:
        with self._doing("open", path, absent_is_known=True):
            if self._protocol == "memory":
                # fsspec hands out the stored object itself, with one position for all readers.
                return io.BytesIO(self._fs.cat_file(path))
            return cast(BinaryIO, self._fs.open(path, "rb"))

    def _info(self, path: str) -> dict[str, Any]:
        self._fs.invalidate_cache()
        return cast(dict[str, Any], self._fs.info(path))

    def _names_on_s3(self, path: str) -> set[str]:
        """ListObjectsV2 directly: s3fs asks once more where nothing is found, whether it is a file."""
        bucket, key, _ = self._fs.split_path(path)
        prefix = key.rstrip("/") + "/" if key else ""
        names: set[str] = set()
        further: dict[str, str] = {}
        while True:
            try:
                page = self._fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, Delimiter="/", **further)
            except FileNotFoundError:
                return set()
            names.update(found["Key"] for found in page.get("Contents") or ())
            names.update(found["Prefix"] for found in page.get("CommonPrefixes") or ())
            if not page.get("IsTruncated") or not page.get("NextContinuationToken"):
                # The empty object that some tools put in place of a directory lists itself.
                return {name.removeprefix(prefix).rstrip("/") for name in names} - {""}
            further = {"ContinuationToken": page["NextContinuationToken"]}

    def _delete_in_bulk(self, paths: Iterable[str]) -> None:
        """DeleteObjects directly: s3fs's own bulk delete ignores the errors in the response."""
        refused: list[dict[str, Any]] = []
        rest = iter(paths)
        while chunk := list(islice(rest, _DELETE_AT_ONCE)):
            by_bucket: dict[str, list[dict[str, str]]] = {}
            for path in chunk:
                bucket, key, _ = self._fs.split_path(path)
                by_bucket.setdefault(bucket, []).append({"Key": key})
            for bucket, objects in by_bucket.items():
                with self._doing("delete files in", f"s3://{bucket}"):
                    response = self._fs.call_s3(
                        "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
                    )
                refused += [error for error in response.get("Errors", []) if error.get("Code") != "NoSuchKey"]
        if refused:
            first = refused[0]
            raise StorageError(
                self._settings.scrub(
                    f"Cannot delete {len(refused)} files, the first being {first.get('Key')}: "
                    f"{first.get('Code')} {first.get('Message', '')}"
                )
            )


def _modified_ms(info: dict[str, Any]) -> int | None:
    """When a file was written, from whichever key its filesystem uses."""
    for key in _MODIFIED:
        value = info.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return int(aware.timestamp() * 1000)
    return None


def _handler(fs: Any) -> pafs.FileSystemHandler:
    # The stubs declare the class abstract.
    handler: Any = pafs.FSSpecHandler
    return cast(pafs.FileSystemHandler, handler(fs))


def _filesystem(protocol: str, root: str, settings: StorageSettings) -> Any:
    import fsspec

    kind = KINDS[protocol]
    try:
        cls = fsspec.get_filesystem_class(kind.listed_as or protocol)
    except ImportError as error:
        raise StorageError(
            f"{protocol}:// needs the package {kind.package or protocol}, which is not installed. Run "
            f"pip install 'paimon-sink[{kind.extra or 'all'}]' on the driver and on every executor."
        ) from error
    if protocol == "s3":
        keep_out_of_logs(settings)
        fs = cls(**settings.s3fs_arguments())
        # botocore retries requests; s3fs only has to retry response bodies that break off.
        fs.retries = _S3FS_ATTEMPTS
        return fs
    return cls(use_listings_cache=False, **cls._get_kwargs_from_urls(root))
