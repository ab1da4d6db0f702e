"""What an adapter tells of a whole table: every snapshot, what each names, and which files are there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from paimon_sink.formats.ledger import Ledger
from paimon_sink.formats.values import SnapshotInfo

S = TypeVar("S", bound=SnapshotInfo)


class ProblemKind(Enum):
    """Kinds of problems. The value is for machines, and short enough for people."""

    BROKEN_METADATA = "broken metadata"
    UNREACHABLE = "not reachable"
    MISSING_FILE = "missing file"
    DAMAGED_FILE = "damaged file"
    WRONG_COUNT = "wrong count"
    GAP = "snapshot gap"
    BROKEN_CHAIN = "broken chain"
    DOUBLED_BATCH = "doubled batch"
    DOUBLED_FILE = "doubled file"
    LEDGER = "ledger"
    OWED = "not delivered"


class FileKind(Enum):
    """What a file is, by its name and its place."""

    DATA = "data file"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    METADATA = "metadata file"
    TEMPORARY = "temporary file"
    CLAIM = "claim"
    KEPT = "part of the table"
    """It needs no name to live, or only its own engine knows who needs it."""
    FOREIGN = "not ours"

    @property
    def needs_a_name(self) -> bool:
        """Whether it is dead where nothing names it."""
        return self not in (FileKind.KEPT, FileKind.FOREIGN)


@dataclass(frozen=True)
class Problem:
    """Something that is not as the table says, and where."""

    kind: ProblemKind
    where: str
    what: str


@dataclass(frozen=True)
class StoredFile:
    """A data file as the metadata describes it. ``path`` is relative to the table."""

    path: str
    rows: int
    size_bytes: int
    is_elsewhere: bool = False
    """Outside of the table, where ``path`` is its whole address."""
    origin: Any = field(default=None, compare=False, repr=False)
    """What its format has to know to read it by itself, such as the schema it was written with. Small."""


@dataclass(frozen=True)
class RefHistory(Generic[S]):
    """Snapshots that follow each other, oldest first: the table itself, a branch, or a tag with its only one."""

    name: str
    """Empty for the table itself."""
    snapshots: Sequence[S]
    problems: Sequence[Problem] = ()
    tag: str | None = None
    """The name of the tag, where it is one."""
    branch: str | None = None
    """The branch that it is or is on, where that is not the table itself."""
    consumer: str | None = None
    """The reader it is kept for, where a format keeps such as tags."""


@dataclass(frozen=True)
class Contents:
    """What a snapshot names. ``rows`` and ``rows_added`` are counted, or None where metadata is broken."""

    entered: Sequence[StoredFile]
    """Its files that the snapshot told before it did not have."""
    rows: int | None
    rows_added: int | None
    problems: Sequence[Problem] = ()
    live: Set[str] = frozenset()
    """Paths of all its files, until the next snapshot is asked for."""


class Audit(ABC, Generic[S]):
    """One reading of all of a table's metadata. What cannot be read is a problem, not an exception."""

    @abstractmethod
    def histories(self) -> list[RefHistory[S]]:
        """All that keeps files alive, the table itself first."""

    @abstractmethod
    def contents(self, history: RefHistory[S], snapshot: S) -> Contents:
        """What one snapshot names. To be asked in the order of its history; each metadata file is read once."""

    @abstractmethod
    def ledger(self, snapshot: S) -> Ledger | None:
        """The ledger a snapshot carries. Raises ``CorruptTableError`` when it cannot be read."""

    @abstractmethod
    def files(self) -> Iterator[str]:
        """Every data and metadata file that is there, in relative paths; not those that need no name to live."""

    @abstractmethod
    def kind(self, path: str) -> FileKind:
        """What a file of the table is, by its path relative to it. In doubt it is kept."""

    @abstractmethod
    def added_by(self, manifest: str) -> Set[str]:
        """Paths that a manifest adds which no snapshot names yet. Raises ``FileNotFoundError`` when it is gone."""

    def notes(self, *, old: Set[str]) -> Set[str]:
        """Files that no snapshot names and that somebody needs all the same, given which are of nobody under way."""
        return frozenset()

    @property
    @abstractmethod
    def metadata_files(self) -> Set[str]:
        """What was read between the snapshots and the data, and what is named there and not checked here."""
