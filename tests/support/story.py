"""A table with a past: any mix of what writers, other engines and people do to it, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from paimon_sink.commit.decide import CommitRequest, Policy, decide
from paimon_sink.core.errors import RefusedError
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.time_travel import time_travel

__all__ = ["Story"]

USERS = ("test", "other", "third")
BATCHES = 12
_MERGES_SOON = {"table__manifest__merge-min-count": "3", "table__commit__manifest__min-count-to-merge": "3"}
"""So that short stories have merged manifests too."""


@dataclass
class Story:
    """Plays on a lake's table. What it did stands in ``told``."""

    lake: Lake
    seed: int
    can_roll_back: bool = True
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.branches: list[str] = []
        self._batch = dict.fromkeys(USERS, 0)
        self._row = 0

    def play(self, length: int) -> None:
        self.append()
        for _ in range(length):
            deed = self.random.choices([deed for deed, _ in self._deeds()], [often for _, often in self._deeds()])[0]
            self.told.append(deed.__name__)
            deed()
        # A rolled back ledger is gone from the line; the user goes on.
        self.append()

    def _deeds(self) -> list[tuple[Callable[[], None], int]]:
        deeds = [
            (self.append, 8),
            (self.overwrite, 2),
            (self.overwrite_partition, 2),
            (self.others_append, 2),
            (self.others_compact, 2),
            (self.others_merge, 1),
            (self.tag, 2),
            (self.branch, 1),
        ]
        return [*deeds, (self.roll_back, 1)] if self.can_roll_back else deeds

    # ------------------------------------------------------------ deeds

    def append(self) -> None:
        self._commit(self._writer())

    def overwrite(self) -> None:
        self._commit(self._writer(), overwrite=True)

    def overwrite_partition(self) -> None:
        self._commit(self._writer().with_options(partitionOverwriteMode="dynamic"), overwrite=True)

    def others_append(self) -> None:
        other_engine(self.lake).append(self._rows())

    def others_compact(self) -> None:
        if self.lake.ids():
            other_engine(self.lake).compact()

    def others_merge(self) -> None:
        other_engine(self.lake).merge_metadata()

    def tag(self) -> None:
        time_travel(self.lake).tag(f"t{len(self.told)}", self.random.choice(self.lake.snapshot_ids()))

    def branch(self) -> None:
        name = f"b{len(self.told)}"
        time_travel(self.lake).branch(name, self.random.choice(self.lake.snapshot_ids()))
        self.branches.append(name)

    def roll_back(self) -> None:
        other_engine(self.lake).roll_back(self.random.choice(self.lake.snapshot_ids()[-4:]))

    # ------------------------------------------------------------ what must not change

    def verdicts(self) -> dict[tuple[str, str, int], str]:
        """What would become of every batch of every user, on every branch that we write to."""
        found = {}
        lakes = {"": self.lake}
        if self.lake.format == "iceberg":
            lakes |= {name: self.lake.with_options(branch=name) for name in self.branches}
        for title, lake in lakes.items():
            for user in USERS:
                ledger = lake.open().commits.load_head(commit_user=user).ledger
                for batch in range(BATCHES):
                    try:
                        verdict = decide(ledger, CommitRequest("t", user, batch, None), Policy()).name
                    except RefusedError as refusal:
                        verdict = type(refusal).__name__
                    found[title, user, batch] = verdict
        return found

    def changed(self, before: dict[tuple[str, str, int], str]) -> dict[tuple[str, str, int], tuple[str, str]]:
        """Verdicts that are others now. A user of another branch only may be refused where history has expired."""
        now = self.verdicts()
        refused = {key[:2] for key in now if (before[key], now[key]) == ("COMMIT", "LedgerLostError")}
        strangers = {
            (title, user)
            for title, user in refused
            if len({title for title in ("", *self.branches) if (title, user, 0) in now}) > 1
            and all(before[title, user, batch] == "COMMIT" for batch in range(BATCHES))
        }
        return {key: (before[key], now[key]) for key in now if before[key] != now[key] and key[:2] not in strangers}

    # ------------------------------------------------------------ inside

    def _writer(self) -> Lake:
        """Any user, on any branch that the sink can write to."""
        lake = self.lake.with_options(
            commitUser=self.random.choice(USERS), partitionBy="day", onLedgerLost="commit", **_MERGES_SOON
        )
        if self.lake.format == "iceberg" and self.branches and self.random.random() < 0.3:
            return lake.with_options(branch=self.random.choice(self.branches))
        return lake

    def _commit(self, lake: Lake, *, overwrite: bool = False) -> None:
        user = lake.all_options()["commitUser"]
        message = lake.write(self._rows())
        lake.commit(self._batch[user], message, overwrite=overwrite)
        self._batch[user] += 1

    def _rows(self) -> pa.RecordBatch:
        self._row += 2
        return rows(self._row, self._row + 1, day=self.random.choice(["monday", "tuesday", "sunday"]))
