"""Data files of routed batches that no snapshot of their table names, and that a manifest of their home does.

Their names bear the mark of the home. Whose home is not known here, or cannot be read, is spared: in doubt a file
stays. Cleaning asks once more after it announced what it is about to delete, and a commit of the home writes its
manifest before it looks for such announcements: whichever comes second sees the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace

from paimon_sink.core.errors import CorruptTableError, OptionError, TableNotFoundError
from paimon_sink.core.names import parse_table_name
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.options import Options
from paimon_sink.core.properties import ROUTE_HOME
from paimon_sink.core.route_marks import mark_in, mark_of
from paimon_sink.core.route_options import home_of
from paimon_sink.core.routes import HOME, Destination
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table
from paimon_sink.route.manifest import manifest_files, read_manifest

__all__ = ["Spare"]


@dataclass(frozen=True)
class Spare:
    """Asks the homes of one table, which is known by these options."""

    table: Table
    options: Options

    def __call__(self, paths: Iterable[str]) -> Set[str]:
        """Those of the files that a home may still need."""
        marked = {path: mark for path in paths if (mark := mark_in(path)) is not None}
        if not marked:
            return frozenset()
        homes = {mark_of(home.label): home for home in self._homes()}
        named = {mark: frozenset(self._named(homes[mark])) for mark in set(marked.values()) & homes.keys()}
        return {path for path, mark in marked.items() if mark not in named or path in named[mark]}

    def _homes(self) -> Iterator[Table]:
        place = self.options.table
        if place.name is None:
            return
        asked = home_of(self.options.route)
        names = {Destination(place.name[0], HOME), *([Destination(*asked)] if asked is not None else [])}
        for snapshot in self.table.upkeep.history():
            try:
                names.add(Destination(*parse_table_name(snapshot.properties[ROUTE_HOME])))
            except (KeyError, OptionError):
                continue
        for name in sorted(names):
            try:
                yield open_table(_placed(place, name))
            except TableNotFoundError:
                continue

    def _named(self, home: Table) -> Iterator[str]:
        for path in manifest_files(home):
            try:
                tables = read_manifest(home, path).tables
            except FileNotFoundError:
                # Its batch was never put, and it went: so may what it named.
                continue
            except CorruptTableError as error:
                raise CorruptTableError(f"Cannot tell which files of {self.table.label} are needed: {error}") from error
            for part in tables:
                if part.table_identity == self.table.identity:
                    yield from (file.path for file in part.files)


def _placed(place: TableOptions, name: Destination) -> TableOptions:
    return replace(place, name=(name.database, name.table), partition_by=(), table_properties={})
