"""What a batch takes of one snapshot: its files, remembered for a while, and pieces of them by offsets."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.core.together import for_each
from paimon_sink.follow.admission import Admission
from paimon_sink.formats.contract import Scans
from paimon_sink.formats.lineage import Added, FollowedFile, Lineage, LineageSnapshot, Mark
from paimon_sink.formats.values import FilterTree, Split

__all__ = ["Place", "Plans"]

_MOST_FILES = 50_000
"""So many files of snapshots are remembered. The last snapshot is in any case, however many it has."""

_A_SMALL_SNAPSHOT = 1_000
"""With more files than that, those after it are not read at the same time: they would not fit beside it."""

Place = tuple[int, int]
"""So many files, and so many row groups of the next."""


class Plans:
    """The files of snapshots for one stream. A snapshot has the same ones in the same order whenever it is asked."""

    def __init__(self, scans: Scans, filters: Sequence[FilterTree], schema_id: int) -> None:
        self._scans = scans
        self._filters = filters
        self._schema_id = schema_id
        self._known: OrderedDict[tuple[Mark, bool], Added] = OrderedDict()
        self._are_small = True
        self.weight = 0

    def of(self, line: Lineage, snapshot: LineageSnapshot, *, whole: bool) -> Added:
        found = self._known.get((snapshot.mark, whole))
        if found is None and whole:
            found = Added(line.whole(snapshot, schema_id=self._schema_id, filters=self._filters))
        elif found is None:
            found = self._read(line, snapshot)
        self._keep(snapshot, found, whole=whole)
        return found

    def _read(self, line: Lineage, snapshot: LineageSnapshot) -> Added:
        """What it added; from afar what those after it added is read at the same time, and kept."""
        ahead = line.ahead(snapshot) if self._are_small else []
        later = [each for each in ahead if (each.mark, False) not in self._known]
        found, *founds = for_each(lambda ask: ask(), self._questions(line, snapshot, later), far=bool(later))
        assert found is not None
        self._are_small = _weight(found) <= _A_SMALL_SNAPSHOT
        for each, added in zip(later, founds, strict=True):
            if added is not None:
                self._keep(each, added, whole=False)
        return found

    def _questions(
        self, line: Lineage, snapshot: LineageSnapshot, later: Sequence[LineageSnapshot]
    ) -> list[Callable[[], Added | None]]:
        def added(of: LineageSnapshot) -> Added:
            return line.added(of, schema_id=self._schema_id, filters=self._filters)

        def if_readable(of: LineageSnapshot) -> Added | None:
            try:
                return added(of)
            except (PwcError, OSError):
                # An error when it is its turn.
                return None

        return [partial(added, snapshot), *(partial(if_readable, each) for each in later)]

    def _keep(self, snapshot: LineageSnapshot, found: Added, *, whole: bool) -> None:
        key = snapshot.mark, whole
        if key not in self._known:
            self._known[key] = found
            self.weight += _weight(found)
        self._known.move_to_end(key)
        while len(self._known) > 1 and self.weight > _MOST_FILES:
            self.weight -= _weight(self._known.popitem(last=False)[1])

    # ------------------------------------------------------------ up to a limit

    def admit(self, files: Sequence[FollowedFile], start: Place, admission: Admission) -> Place:
        """As far as the batch may go in a snapshot. A file that alone is too much for one is taken by row groups."""
        number, group = start
        while number < len(files):
            file = files[number]
            if file.may_hold:
                figures = {"size_bytes": file.size_bytes, "rows": file.rows}
                if group or (admission.is_empty and admission.exceeds(**figures)):
                    groups = self._groups(file)
                    group = self._admit_groups(groups, group, admission)
                    if group < len(groups):
                        return number, group
                elif not admission.take(**figures):
                    return number, 0
            number, group = number + 1, 0
        return number, 0

    def _admit_groups(self, groups: Sequence[Split], start: int, admission: Admission) -> int:
        position = start
        while position < len(groups):
            group = groups[position]
            if not admission.take(size_bytes=group.size_bytes, rows=group.rows):
                break
            position += 1
        return position

    # ------------------------------------------------------------ between two places

    def between(self, files: Sequence[FollowedFile], start: Place, end: Place) -> list[Split]:
        """The pieces from one place to another. What filters rule out is left out, and counts all the same."""
        splits: list[Split] = []
        for number in range(start[0], min(end[0] + 1, len(files))):
            first = start[1] if number == start[0] else 0
            last = end[1] if number == end[0] else None
            file = files[number]
            if last == 0 or not file.may_hold:
                continue
            splits.append(self._part(file, first, last) if first or last is not None else file.split())
        return splits

    def _part(self, file: FollowedFile, first: int, last: int | None) -> Split:
        groups = self._groups(file)
        taken = groups[first:last]
        if not taken or (last is not None and last > len(groups)):
            raise CorruptTableError(
                f"The checkpoint names row groups {first} to {last} of a file that has {len(groups)}: it is not the "
                "file that was there when the batch was planned. Restore it, or start with a new checkpoint."
            )
        if len(groups) == 1:
            return groups[0]
        return replace(
            taken[0],
            rows=sum(split.rows for split in taken),
            size_bytes=sum(split.size_bytes for split in taken),
            row_groups=tuple(group for split in taken for group in split.row_groups or ()),
        )

    def _groups(self, file: FollowedFile) -> list[Split]:
        """A file that cannot be cut is one group."""
        return self._scans.cut(file.split())


def _weight(added: Added) -> int:
    """One for the snapshot itself, which may have none."""
    return 1 + len(added.files)
