"""A filesystem that lies: an fsspec filesystem around a real one, for all that networks do to a request and its answer.

It stands under the real storage code: ``RemoteStore`` and its put-if-absent talk to it as they talk to s3fs. What it
does is drawn from a seed, one draw a request, and written down in ``log``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from fsspec.spec import AbstractFileSystem

from tests.support.lying_disk import DiskFileSystem
from tests.support.lying_plan import HONEST, Lie, Lies, Schedule
from tests.support.lying_upload import LyingUpload

__all__ = ["DiskFileSystem", "Lie", "Lies", "LyingFileSystem"]

T = TypeVar("T")


class LyingFileSystem(AbstractFileSystem):
    """Every call below is one request. A request that changes something may be lied about in any way, a read may fail,
    and a listing may be stale: it hides the newest names, and never invents any.

    ``gate`` is called with the name of every request before it is sent: a test may stop or end its caller there.
    """

    cachable = False

    def __init__(
        self, inner: Any, lies: Lies = HONEST, *, seed: int = 0, gate: Callable[[str], None] | None = None
    ) -> None:
        super().__init__()
        self.inner = inner
        self.protocol = inner.protocol
        # The root of names is the real one's; fsspec asks for it on the class and on the object.
        self._strip_protocol = inner._strip_protocol
        self.log: list[str] = []
        self.lies_told = 0
        self._gate = gate
        self._late: list[_Late] = []
        self._listed: dict[str, list[str]] = {}
        self._lock = threading.RLock()
        self.lie(lies, seed=seed)

    # ---------------------------------------------------------------- what tests turn

    def lie(self, lies: Lies, *, seed: int) -> None:
        """Lie like that from now on."""
        self._schedule = Schedule(lies, seed)

    def honest(self) -> None:
        """Tell the truth from now on. Requests that are still under way arrive all the same."""
        self.lie(HONEST, seed=0)

    def land_late(self) -> None:
        """Let all requests arrive that were reported failed and are still under way."""
        while self._late:
            self._land(self._late.pop(0))

    @property
    def under_way(self) -> list[str]:
        return [late.name for late in self._late]

    # ---------------------------------------------------------------- requests that change something

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **arguments: Any) -> Any:
        name = f"{'create' if mode == 'create' else 'put'} {self._short(path)}"
        if mode != "overwrite":
            arguments["mode"] = mode
        return self._change(name, lambda: self.inner.pipe_file(path, value, **arguments))

    def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **arguments: Any) -> Any:
        """Where the storage code looks whether a filesystem declares an exclusive create."""
        return self.pipe_file(path, value, mode, **arguments)

    def rm_file(self, path: str) -> Any:
        return self._change(f"delete {self._short(path)}", lambda: self.inner.rm_file(path))

    def call_s3(self, method: str, *arguments: Any, **named: Any) -> Any:
        """S3's own requests, of which the storage code sends ``head_object``, ``delete_objects`` and listings."""
        if method == "list_objects_v2":
            return self._page(named)
        name = f"{method} {named.get('Key', '')}".strip()
        ask = self._read if method.startswith(("head_", "get_", "list_")) else self._change
        return ask(name, lambda: self.inner.call_s3(method, *arguments, **named))

    # ---------------------------------------------------------------- requests that read

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **arguments: Any) -> Any:
        return self._read(f"get {self._short(path)}", lambda: self.inner.cat_file(path, start, end, **arguments))

    def info(self, path: str, **arguments: Any) -> Any:
        return self._read(f"head {self._short(path)}", lambda: self.inner.info(path, **arguments))

    def exists(self, path: str, **arguments: Any) -> bool:
        try:
            self.info(path, **arguments)
        except FileNotFoundError:
            return False
        return True

    def ls(self, path: str, detail: bool = True, **arguments: Any) -> list[Any]:
        entries = self._listing(
            f"list {self._short(path)}", path, lambda: self.inner.ls(path, detail=True, **arguments)
        )
        return entries if detail else sorted(str(entry["name"]) for entry in entries)

    def find(self, path: str, *arguments: Any, **named: Any) -> Any:
        return self._read(f"list all of {self._short(path)}", lambda: self.inner.find(path, *arguments, **named))

    def open(self, path: str, mode: str = "rb", **arguments: Any) -> Any:
        """A file to read is asked for once; a file to write is one request, sent when it is closed."""
        if "r" in mode:
            return self._read(f"open {self._short(path)}", lambda: self.inner.open(path, mode, **arguments))
        return LyingUpload(lambda data: self.pipe_file(path, data))

    def invalidate_cache(self, path: str | None = None) -> None:
        self.inner.invalidate_cache(path)

    def split_path(self, path: str) -> Any:
        return self.inner.split_path(path)

    # ---------------------------------------------------------------- requests to others on the same network

    def request(self, name: str, send: Callable[[], T], *, changes: bool) -> T:
        """A request that is no file's, such as one to a catalog."""
        return self._change(name, send) if changes else self._read(name, send)

    # ---------------------------------------------------------------- where it lies

    def _change(self, name: str, send: Callable[[], T]) -> T:
        lie = self._begin(name)
        if lie is Lie.FAILS_AFTER:
            send()
            raise self._schedule.failure(lie, name)
        if lie is Lie.LATE:
            self._late.append(_Late(name, send, *self._schedule.delay()))
            raise self._schedule.failure(lie, name)
        if lie is Lie.REPEATED:
            # A proxy sends it again and hands on the second answer.
            send()
        elif lie is not None:
            raise self._schedule.failure(lie, name)
        return self._send(send)

    def _read(self, name: str, send: Callable[[], T]) -> T:
        lie = self._begin(name, among=Lie.failing())
        if lie is not None:
            raise self._schedule.failure(lie, name)
        return self._send(send)

    def _page(self, named: dict[str, Any]) -> dict[str, Any]:
        bucket, pages = named["Bucket"], []
        path = f"{bucket}/{named['Prefix']}".rstrip("/")

        def send() -> list[Any]:
            page = self.inner.call_s3("list_objects_v2", **named)
            pages.append({kind: page.get(kind) or [] for kind in ("Contents", "CommonPrefixes")})
            pages.append(page)
            keys = [found["Key"] for found in pages[0]["Contents"]]
            keys += [found["Prefix"] for found in pages[0]["CommonPrefixes"]]
            return [{"name": f"{bucket}/{key}".rstrip("/")} for key in keys]

        shown = {entry["name"] for entry in self._listing(f"list {self._short(path)}", path, send)}
        found, page = pages
        return {
            **page,
            "Contents": [one for one in found["Contents"] if f"{bucket}/{one['Key']}".rstrip("/") in shown],
            "CommonPrefixes": [
                one for one in found["CommonPrefixes"] if f"{bucket}/{one['Prefix']}".rstrip("/") in shown
            ],
        }

    def _listing(self, name: str, path: str, send: Callable[[], list[Any]]) -> list[Any]:
        lie = self._begin(name, among=Lie.failing() | {Lie.STALE})
        if lie not in (None, Lie.STALE):
            raise self._schedule.failure(lie, name)
        entries = self._send(send)
        known = self._listed.setdefault(self._short(path), [])
        names = {str(entry["name"]) for entry in entries}
        # Oldest first, as far as one who lists can know; new ones of one listing go by their names.
        known[:] = [found for found in known if found in names] + sorted(names.difference(known), key=_by_number)
        hidden = self._schedule.hidden(self._short(path), known, begins=lie is Lie.STALE)
        if hidden:
            self.lies_told += 1
            self.log.append(f"  hides {', '.join(found.rpartition('/')[2] for found in sorted(hidden))}")
        return [entry for entry in entries if str(entry["name"]) not in hidden]

    def _begin(self, name: str, *, among: frozenset[Lie] | None = None) -> Lie | None:
        if self._gate is not None:
            self._gate(name)
        with self._lock:
            for late in self._late:
                late.wait -= 1
            self._land_due(after=False)
            lie = self._schedule.draw(name, Lie.changing() if among is None else among)
            self.lies_told += lie is not None
            self.log.append(f"{name}{'' if lie is None else f': {lie.value}'}")
            return lie

    def _send(self, send: Callable[[], T]) -> T:
        try:
            return send()
        finally:
            # After the request it meets, also when that one's true answer is that there is no such file.
            self._land_due(after=True)

    def _land_due(self, *, after: bool) -> None:
        for late in [late for late in self._late if late.wait <= 0 and (after or late.before)]:
            if late in self._late:
                self._late.remove(late)
                self._land(late)

    def _land(self, late: _Late) -> None:
        self.lies_told += 1
        try:
            late.send()
        except Exception as error:  # noqa: BLE001 - nobody waits for this answer any more
            self.log.append(f"  arrives late, in vain: {late.name}: {type(error).__name__}")
        else:
            self.log.append(f"  arrives late: {late.name}")

    def _short(self, path: str) -> str:
        return "/".join(str(self.inner._strip_protocol(path)).rsplit("/", 2)[-2:])


class _Late:
    """A request under way: it arrives ``wait`` requests later, before or after that one."""

    def __init__(self, name: str, send: Callable[[], Any], wait: int, before: bool) -> None:
        self.name, self.send, self.wait, self.before = name, send, wait, before


def _by_number(name: str) -> tuple[int, str]:
    """snapshot-10 is newer than snapshot-9."""
    digits = name.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else -1, name)
