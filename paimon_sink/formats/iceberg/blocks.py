"""Manifests in Avro blocks of many entries.

The library makes a block of each entry, compresses it by itself and encodes its numbers byte by byte: much time in a
large commit, and larger files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import ManifestEntry, ManifestWriter

__all__ = ["in_blocks"]

_BLOCK_BYTES = 64_000
"""As Avro's own library for Java has it."""


@contextmanager
def in_blocks(writer: ManifestWriter, *, block_bytes: int = _BLOCK_BYTES) -> Iterator[ManifestWriter]:
    """The writer, opened, and closed in the end. What is added to it comes in blocks of about that size."""
    with writer:
        output = writer._writer
        blocks = _Blocks(output, block_bytes)
        setattr(output, "write_block", blocks.add)  # noqa: B010 - mypy takes no method for a variable
        yield writer
        blocks.flush()


class _Blocks:
    def __init__(self, output: AvroOutputFile[ManifestEntry], block_bytes: int) -> None:
        self._output = output
        self._block_bytes = block_bytes
        self._encoder = _BufferEncoder()
        self._entries = 0

    def add(self, entries: list[ManifestEntry]) -> None:
        for entry in entries:
            self._output.writer.write(self._encoder, entry)
        self._entries += len(entries)
        if len(self._encoder.buffer) >= self._block_bytes:
            self.flush()

    def flush(self) -> None:
        if not self._entries:
            return
        content, size = bytes(self._encoder.buffer), len(self._encoder.buffer)
        codec = self._output.compression_codec()
        if codec is not None:
            content, size = codec.compress(content)
        self._output.encoder.write_int(self._entries)
        self._output.encoder.write_int(size)
        self._output.encoder.write(content)
        self._output.encoder.write(self._output.sync_bytes)
        self._encoder, self._entries = _BufferEncoder(), 0


class _BufferEncoder(BinaryEncoder):
    """The library's, without an object for each byte."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def write(self, b: bytes) -> None:
        self.buffer += b

    def write_int(self, integer: int) -> None:
        rest = (integer << 1) ^ (integer >> 63)
        while rest > 0x7F:
            self.buffer.append((rest & 0x7F) | 0x80)
            rest >>= 7
        self.buffer.append(rest)

    def write_bytes(self, b: bytes) -> None:
        self.write_int(len(b))
        self.buffer += b
