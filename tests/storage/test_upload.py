"""Parts of a file that travel to an object store while the next ones are written."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paimon_sink.core.errors import StorageError
from paimon_sink.storage.output import UploadOutput

ROOT = Path(__file__).parent.parent.parent
PART = b"0123456789"
WAIT_S = 30


@dataclass
class Upload:
    """An upload that can be held up, and that fails as often as it is told to."""

    parts: list[bytes] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)
    failures: int = 0
    ended: str | None = None
    closed: bool = False

    def write(self, part: bytearray) -> int:
        assert self.go_on.wait(WAIT_S)
        if self.failures:
            self.failures -= 1
            raise OSError("the store is gone")
        self.parts.append(bytes(part))
        return len(part)

    def close(self) -> None:
        self.ended = "published"

    def discard(self) -> None:
        self.ended = f"discarded after {len(self.parts)}"


@pytest.fixture
def upload() -> Iterator[Upload]:
    found = Upload()
    yield found
    found.go_on.set()


def output_of(upload: Upload) -> UploadOutput:
    def failed(verb: str, path: str, error: BaseException) -> StorageError:
        return StorageError(f"Cannot {verb} {path}: {error}")

    return UploadOutput("s3://lake/file", failed, upload, part_bytes=len(PART))


def test_the_next_part_is_filled_while_one_travels(upload: Upload) -> None:
    output = output_of(upload)
    output.write(PART)

    # It is held up, and yet there is no wait here.
    output.write(PART[:-1])

    assert upload.parts == []
    assert output.tell() == 2 * len(PART) - 1
    upload.go_on.set()
    output.close()
    assert upload.parts == [PART, PART[:-1]]
    assert upload.ended == "published"


def test_parts_arrive_in_their_order_and_whole(upload: Upload) -> None:
    upload.go_on.set()
    output = output_of(upload)
    sent = b"".join(bytes([number]) * (number % 7) for number in range(200))

    for number in range(200):
        output.write(bytes([number]) * (number % 7))
    output.close()

    assert b"".join(upload.parts) == sent


def test_a_part_that_failed_on_its_way_fails_the_file(upload: Upload) -> None:
    upload.failures = 1
    upload.go_on.set()
    output = output_of(upload)
    output.write(PART)

    with pytest.raises(StorageError, match=r"s3://lake/file: the store is gone"):
        output.close()

    assert upload.ended == "discarded after 0"
    assert upload.closed


def test_a_part_that_failed_is_told_by_the_write_that_fills_the_next(upload: Upload) -> None:
    upload.failures = 1
    upload.go_on.set()
    output = output_of(upload)
    output.write(PART)

    with pytest.raises(StorageError, match="the store is gone"):
        output.write(PART)
    output.discard()

    assert upload.ended == "discarded after 0"


def test_a_discarded_file_is_dropped_once_its_part_has_arrived(upload: Upload) -> None:
    output = output_of(upload)
    output.write(PART)
    threading.Timer(0.05, upload.go_on.set).start()

    output.discard()

    assert upload.ended == "discarded after 1"


def test_more_files_than_may_travel_at_once_are_all_whole() -> None:
    uploads = [Upload() for _ in range(20)]
    outputs = [output_of(upload) for upload in uploads]
    for upload in uploads:
        upload.go_on.set()

    for _ in range(3):
        for output in outputs:
            output.write(PART)
    for output in outputs:
        output.close()

    assert [b"".join(upload.parts) for upload in uploads] == [PART * 3] * 20


def test_a_child_of_a_fork_sends_its_own_parts() -> None:
    """Spark forks its Python workers, and threads stay with the parent."""
    script = """
import os
from tests.storage.test_upload import PART, Upload, output_of

def send():
    upload = Upload()
    upload.go_on.set()
    output = output_of(upload)
    output.write(PART)
    output.close()
    return upload.parts[0] == PART

assert send()
child = os.fork()
if child == 0:
    os._exit(0 if send() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
