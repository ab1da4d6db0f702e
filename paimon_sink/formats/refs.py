"""Names for snapshots, and which snapshot is the newest: tags, rolling back, and branches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paimon_sink.core.errors import UnsupportedTableError
from paimon_sink.formats.values import SnapshotInfo

__all__ = ["Branches", "Refs", "RolledBack"]


@dataclass(frozen=True)
class RolledBack:
    """What a rollback took back."""

    snapshot_ids: tuple[int, ...]
    """Those that are no longer part of the table, the newest first; such as landed meanwhile among them."""
    tags: tuple[str, ...] = ()
    """Names that went with them."""


class Refs(ABC):
    """What listeners use: names for snapshots, and the catalog's list of partitions; and rolling a table back."""

    label: str
    takes_tags_along = True
    """Whether rolling back removes the tags of what goes. Else they stay, and keep their snapshots."""

    @abstractmethod
    def tag(self, name: str, snapshot_id: int) -> bool:
        """Give a snapshot a name, which keeps it from expiring. False: it is gone, or about to go.

        A name that is taken stays what it is: whoever took it meant the same.
        """

    @abstractmethod
    def tag_names(self) -> list[str]:
        """All names that were given."""

    @abstractmethod
    def tags(self) -> dict[str, int]:
        """The snapshot that each name was given to, also where it is kept by its tag alone."""

    @abstractmethod
    def tagged(self) -> dict[str, SnapshotInfo]:
        """The same with what each snapshot says of itself."""

    @abstractmethod
    def drop_tag(self, name: str) -> None:
        """Take a name away. That there is none is fine. Files that only it kept are for `clean`."""

    def name_problem(self, name: str) -> str | None:
        """Why the format cannot have a tag of this name. None: it can."""
        return None

    def consumer_of(self, name: str) -> str | None:
        """The reader that a tag holds snapshots for, where the format keeps such as tags. None: it is anybody's."""
        return None

    @abstractmethod
    def roll_back(self, snapshot_id: int, *, newest: int, tag: str | None = None) -> RolledBack:
        """Make an older snapshot the newest, in place of ``newest``. ``tag`` keeps it, where it has expired.

        Raises ``CommitConflictError`` when ``newest`` is not the newest any more: then nothing was done. What lands
        while it is at work is either built on what stays, or goes too. What a crash leaves half done is a table at
        some snapshot between the two, and the next call finishes it. No data file is deleted.
        """

    @property
    def keeps_partitions(self) -> bool:
        """Whether the table's catalog has a list of its partitions, to which :meth:`add_partition` adds."""
        return False

    def add_partition(self, values: Mapping[str, str]) -> None:
        """Add a partition to the catalog's list, by the values of its keys. That it is there already is fine."""
        raise UnsupportedTableError(f"The catalog of {self.label} keeps no list of partitions.")


class Branches(ABC):
    """Lines of snapshots beside the table's own, for formats that share files between them."""

    main: str
    """The name of the table's own line."""
    own: str
    """The branch that the table was opened on."""

    @abstractmethod
    def all(self) -> dict[str, int]:
        """The newest snapshot of each branch, :attr:`main` among them."""

    @abstractmethod
    def line(self, name: str) -> Sequence[SnapshotInfo]:
        """The snapshots of a branch that stand, oldest first."""

    @abstractmethod
    def create(self, name: str, snapshot_id: int) -> bool:
        """A branch that begins with this snapshot. False: that is gone. Raises ``CommitConflictError`` at one taken."""

    @abstractmethod
    def publish(self, name: str, *, head: int, onto: int) -> None:
        """Make ``head``, the newest snapshot of a branch, the newest of the table in place of ``onto``.

        Raises ``CommitConflictError`` when one of them is not the newest any more: then nothing was done.
        """

    @abstractmethod
    def drop(self, name: str, *, head: int) -> None:
        """Take a branch away. Raises ``CommitConflictError`` when ``head`` is not its newest snapshot any more."""
