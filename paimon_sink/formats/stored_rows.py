"""Reading single data files, whoever names them: what lies in a file, not what a snapshot makes of it.

Rows that a delete file or a deletion vector takes out are in there all the same. So this is for those who have to know
what is stored, and for nobody who wants to know what a table says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_sink.formats.audit import StoredFile

__all__ = ["DATA_SUFFIXES", "StoredRows"]

DATA_SUFFIXES = (".parquet", ".orc", ".avro")


class StoredRows(ABC):
    """The files of one table, with the columns that it has now, found by their ids."""

    @abstractmethod
    def may_hold_rows(self, path: str) -> bool:
        """Whether a file below the table, by its relative path, is of a kind that holds rows, whoever wrote it."""

    @abstractmethod
    def readings(
        self, path: str, columns: Sequence[str], *, stored: StoredFile | None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """All rows of a file, a batch at a time. ``stored`` is what metadata says of it; None: nothing names it.

        Of a file that nothing names it may not be known which schema it was written with. Then there is one reading
        for each that it may be. Raises ``FileNotFoundError`` when it is gone, and anything when it cannot be read.
        """
