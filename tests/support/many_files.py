"""Snapshots of very many files, at the price of one: hard links to a file with one row."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace

from paimon_sink.core.messages import DataFile
from paimon_sink.formats.values import ClosedFile
from tests.support.batches import sealed
from tests.support.lake import Lake, rows
from tests.support.tasks import write

__all__ = ["append_many"]


def append_many(lake: Lake, batch_id: int, count: int) -> None:
    """One commit of so many files on a local disk, each with a name of its own and the same row."""
    table = lake.open()
    noted: list[ClosedFile] = []
    describe = type(table.files).describe

    def noting(self: object, file: ClosedFile) -> DataFile:
        noted.append(file)
        return describe(self, file)  # type: ignore[arg-type]

    type(table.files).describe = noting  # type: ignore[method-assign]
    try:
        message = write(lake, [rows(batch_id)], rows(batch_id).schema)
    finally:
        type(table.files).describe = describe  # type: ignore[method-assign]
    [file] = noted
    attempt = uuid.uuid4().hex
    names = [table.files.new_path(file.partition, attempt=attempt, number=number) for number in range(1, count)]
    for name in names:
        os.link(os.path.join(table.location, file.path), os.path.join(table.location, name))
    copies = [table.files.describe(replace(file, path=name)) for name in names]
    lake.commit(batch_id, sealed(replace(message, files=(*message.files, *copies))))
