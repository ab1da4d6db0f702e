"""What a listener may see and do of its table. Publishing, expiring and deleting rows are not among it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from paimon_sink.core.errors import OptionError
from paimon_sink.formats.contract import Table


@dataclass(frozen=True)
class ListenerTable:
    """A table as its listeners know it."""

    label: str
    """What sentences call it: ``sales.orders`` or its location."""
    location: str
    schema: pa.Schema
    partition_spec: tuple[str, ...]
    """As ``partitionBy`` says it. Empty: it has no partitions."""
    _table: Table = field(repr=False, compare=False)

    @classmethod
    def of(cls, table: Table) -> ListenerTable:
        return cls(table.label, table.location, table.schema, table.partition_spec, table)

    # ------------------------------------------------------------ tags

    def tag(self, name: str, snapshot_id: int) -> bool:
        """Give a snapshot a name, which keeps it from expiring. False: it is gone, or about to go.

        A name that is taken stays what it is: whoever took it meant the same.
        """
        return self._table.refs.tag(name, snapshot_id)

    def tag_names(self) -> list[str]:
        """All names that were given."""
        return self._table.refs.tag_names()

    def drop_tag(self, name: str) -> None:
        """Take a name away. That there is none is fine."""
        self._table.refs.drop_tag(name)

    # ------------------------------------------------------------ partitions

    @property
    def keeps_partitions(self) -> bool:
        """Whether the table's catalog has a list of its partitions, to which :meth:`add_partition` adds."""
        return self._table.refs.keeps_partitions

    def add_partition(self, values: Mapping[str, str]) -> None:
        """Add a partition to the catalog's list, by the values of its keys. That it is there already is fine."""
        self._table.refs.add_partition(values)

    # ------------------------------------------------------------ files beside the rows

    def read_file(self, path: str) -> bytes:
        """A file of the table, by its path relative to it. Raises ``FileNotFoundError`` where there is none."""
        return self._table.store.read(self._table.store.join(self.location, path))

    def write_file(self, path: str, data: bytes) -> None:
        """Create or replace a file such as ``_SUCCESS``, at once. Data and metadata files of the table are not for
        listeners to write."""
        inside = posixpath.normpath(path)
        if inside.startswith(("/", "../")) or inside in (".", ".."):
            raise OptionError(f"A listener of {self.label} may only write inside the table, not {path!r}.")
        self._table.store.write(self._table.store.join(self.location, path), data)
