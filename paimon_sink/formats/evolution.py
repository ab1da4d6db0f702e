"""Changing the columns of a table: what a format offers for it, and how columns are shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paimon_sink.core.evolve import Change, Path

__all__ = ["ColumnInfo", "Evolution", "SchemaVersion"]


@dataclass(frozen=True)
class ColumnInfo:
    """A column, or a field inside one, as the table's metadata has it."""

    path: Path
    field_id: int | None
    """None for what has none in this format, such as the elements of an array."""
    type_name: str
    nullable: bool
    comment: str | None = None
    role: str = ""
    """What it is beside a column: ``partition``, ``identifier``."""


@dataclass(frozen=True)
class SchemaVersion:
    """The columns that a table had for some time. The last version is that of today."""

    schema_id: int
    columns: tuple[ColumnInfo, ...]
    at_ms: int | None = None
    """When it was made, where the format says so."""


class Evolution(ABC):
    """What changes the columns of one open table. Everything is decided on them as they were when it was opened."""

    fixed: Mapping[Path, str]
    """Columns whose type stays, with the reason."""
    refusal: str | None = None
    """Why nobody can change this table only if its columns are still what they were. None: that can be done."""

    @abstractmethod
    def check(self, changes: Sequence[Change]) -> None:
        """Raise ``SchemaMismatchError`` at what the format has no room for: a type, a name. Touches nothing."""

    @abstractmethod
    def put(self, changes: Sequence[Change]) -> bool:
        """Make all of the changes at once, if the columns are still what they were. False: they are not.

        Any ``StorageError`` means that the outcome is not known.
        """

    @abstractmethod
    def versions(self) -> list[SchemaVersion]:
        """Every schema that the table still knows, oldest first."""
