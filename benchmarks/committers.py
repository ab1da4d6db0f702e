"""Who commits in a benchmark: this package, and the libraries as they come. Small files, mostly one a commit.

``prepare`` writes the file and is not timed. ``commit`` publishes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_to_write
from paimon_sink.write.task import write_task
from tests.support import foreign
from tests.support.batches import sealed, sink_options
from tests.support.lake import Lake, rows
from tests.support.s3 import S3Server, s3_server, seaweedfs

__all__ = ["FORMATS", "Committer", "Ours", "Pyiceberg", "Pypaimon", "lakes"]

FORMATS = ("paimon", "iceberg")
_TARGET_BYTES = 128 << 20


class Committer(ABC):
    """One table, and one way to commit to it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.commits = 0

    @abstractmethod
    def prepare(self, files: int = 1) -> Callable[[], object]:
        """Write files, each as a task of its own does. What comes back commits them."""

    def grow(self, commits: int) -> None:
        while self.commits < commits:
            self.prepare()()


class Ours(Committer):
    """A streaming writer as Spark builds it for every batch: it opens the table, folds the message and commits."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        options = sink_options(lake)
        self.table: Table = open_to_write(options.table, rows().schema, compression=options.write.compression)

    def prepare(self, files: int = 1) -> Callable[[], object]:
        writer, messages = self.lake.stream_writer(), [sealed(self.write()) for _ in range(files)]
        batch_id = self.commits
        self.commits += 1
        return lambda: writer.commit(messages, batch_id)

    def write(self, *batches: pa.RecordBatch) -> TaskMessage:
        return write_task(
            iter(batches or [rows(self.commits)]),
            table=self.table,
            incoming=rows().schema,
            case_sensitive=True,
            target_bytes=_TARGET_BYTES,
            query_id=None,
        )


class Pypaimon(Committer):
    """pypaimon's own stream commit, on a table that stays open."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self._builder: Any = foreign.create(lake, rows().schema).new_stream_write_builder()

    def prepare(self, files: int = 1) -> Callable[[], object]:
        identifier = self.commits
        self.commits += 1
        messages: list[Any] = []
        for _ in range(files):
            writer = self._builder.new_write()
            writer.write_arrow_batch(rows(identifier))
            messages += writer.prepare_commit(identifier)
            writer.close()
        return lambda: self._commit(messages, identifier)

    def _commit(self, messages: Any, identifier: int) -> None:
        commit = self._builder.new_commit()
        commit.commit(messages, identifier)
        commit.close()


class Pyiceberg(Committer):
    """pyiceberg's own fast append, on a table that stays open."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        from tests.support.iceberg_engine import IcebergEngine, native

        IcebergEngine(lake).create(rows().schema)
        self._table = native(lake)

    def prepare(self, files: int = 1) -> Callable[[], object]:
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        written = pa.Table.from_batches([rows(self.commits)])
        self.commits += 1
        of_tasks = [
            file
            for _ in range(files)
            for file in _dataframe_to_data_files(table_metadata=self._table.metadata, df=written, io=self._table.io)
        ]
        return lambda: self._append(of_tasks)

    def _append(self, files: list[Any]) -> None:
        with self._table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for file in files:
                append.append_data_file(file)


@contextmanager
def lakes(store: str, directory: Path, *, catalog: str = "sqlite") -> Iterator[Callable[..., Lake]]:
    """Gives lakes by format and table name: on the local disk, or on an S3 server that lives as long as the block.

    ``catalog`` is that of Iceberg tables: a SQLite file, or the REST catalog of SeaweedFS.
    """
    with ExitStack() as stack:
        if catalog == "rest":
            server: S3Server | None = seaweedfs(stack)
        else:
            server = stack.enter_context(s3_server()) if store == "s3" else None

        def lake(table_format: str, table: str, **extra: str) -> Lake:
            if server is not None and catalog == "rest" and table_format == "iceberg":
                return Lake(
                    server.iceberg_options(), f"bench_{directory.name.lower().replace('-', '_')}.{table}", extra
                )
            if server is None:
                options = {"warehouse": str(directory / table_format)}
            else:
                options = {"warehouse": f"s3://{server.bucket}/{directory.name}/{table_format}", **server.options()}
            options["tableFormat"] = table_format
            if server is not None and table_format == "iceberg":
                # The files are on S3, the catalog is a SQLite file beside us.
                options |= {"catalog.type": "sql", "catalog.uri": f"sqlite:///{directory}/catalog.db?timeout=60"}
            return Lake(options, f"bench.{table}", extra)

        yield lake
