"""An overwrite with ``replaceWhere``: new rows in the place of those that meet a condition, in one snapshot.

Tasks refuse new rows that do not meet it. Which files hold old ones is looked up when the batch is committed; those
with others beside them are written anew there. The look and the put are of one snapshot: when somebody committed in
between, it looks again, so two jobs that replace the same rows never leave the rows of both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from paimon_sink.commit.coordinator import Coordinator, Outcome
from paimon_sink.commit.decide import Publish, decide_attempt
from paimon_sink.commit.fold import with_replaced
from paimon_sink.core.condition_rows import met_by
from paimon_sink.core.errors import CommitConflictError, FilesReplacedError, OptionError, RefusedError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import NOWHERE, Plan
from paimon_sink.maintain.choosing import Answer, Conditions, choose_files, in_threads
from paimon_sink.maintain.groups import Group
from paimon_sink.read.where import check_session, where_conditions

__all__ = ["Replacement", "Replacing", "check_only_overwrites", "only_such_rows", "replaced_rows"]

log = logging.getLogger(__name__)

_LOOKS = 50
_WRITE = "overwrite"


def check_only_overwrites(where: str | None, *, overwrite: bool, table: str) -> None:
    if where is not None and not overwrite:
        raise OptionError(
            f"Cannot append to {table} with replaceWhere: it says which rows an overwrite replaces. Use "
            'mode("overwrite") or INSERT OVERWRITE, or leave the option out.'
        )


@dataclass(frozen=True)
class Replacement:
    """The condition of a write, against the table's columns."""

    text: str
    conditions: Conditions

    @classmethod
    def of(cls, table: Table, text: str, columns: pa.Schema | None = None) -> Replacement:
        """``columns`` are those that the table will have when the first row comes, where they are not its own."""
        return cls(text, tuple(where_conditions(table, text, what=_WRITE, option="replaceWhere", columns=columns)))


def replaced_rows(table: Table, text: str, setting_of: Callable[[str], str | None]) -> Replacement:
    """The replacement, in a session in which its condition means what Spark's own WHERE would mean."""
    found = Replacement.of(table, text)
    check_session(found.conditions, setting_of, table=table.label, what=_WRITE)
    return found


def only_such_rows(
    batches: Iterator[pa.RecordBatch], replacement: Replacement, *, table: str
) -> Iterator[pa.RecordBatch]:
    """The batches of a task, as long as all rows meet the condition. Else it counts on, and says how many do not."""
    outside = 0
    for batch in batches:
        outside += batch.num_rows - met_by(replacement.conditions, batch).true_count
        if not outside:
            yield batch
    if outside:
        rows = "row of a task does" if outside == 1 else "rows of a task do"
        raise RefusedError(
            f"Cannot overwrite {table}: {outside:,} {rows} not meet "
            f"replaceWhere ({replacement.text}), or it is null for them. Another run would not replace them. Nothing "
            "was committed. Filter the rows, or widen the condition."
        )


# ---------------------------------------------------------------- commit


@dataclass
class Replacing:
    """One commit of new rows in the place of others."""

    coordinator: Coordinator
    replacement: Replacement
    target_bytes: int
    clean: set[str] = field(default_factory=set)
    """Files that were read and hold no row to replace."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """What was written in the place of files, by path. Files never change, so it is good for the next try, too."""

    def commit(self, plan: Plan) -> Outcome:
        """Publish the new rows, and take those out that they replace. A batch that is in is left as it is."""
        coordinator, table = self.coordinator, self.coordinator.table
        if self._is_decided(plan):
            return coordinator.commit(self._on_no_snapshot(plan))
        for number in range(1, _LOOKS + 1):
            chosen = choose_files(table, self.replacement.conditions, without=self.clean)
            groups = [Group((file,), max(self.target_bytes, file.size_bytes)) for file in chosen.doubtful]
            new = [group for group in groups if group.files[0].path not in self.answers]
            for answer in in_threads(table, new, self.replacement.conditions, write=True, to=_WRITE):
                if answer.rows:
                    self.answers[answer.path] = answer
                elif not answer.is_overtaken:
                    self.clean.add(answer.path)
            files = {file.path: file.rows for file in chosen.doubtful if file.path in self.answers}
            messages = [message for path in files if (message := self.answers[path].message) is not None]
            if all(group.files[0].path in self.clean | self.answers.keys() for group in groups):
                try:
                    return coordinator.commit(
                        with_replaced(
                            plan,
                            messages,
                            table=table,
                            removed=files | {file.path: file.rows for file in chosen.whole},
                            planned_on=chosen.planned_on,
                        )
                    )
                except FilesReplacedError as error:
                    log.info("%s", error)
            coordinator.backoff.wait(coordinator.clock, number)
        raise CommitConflictError(
            f"Cannot overwrite {table.label} where {self.replacement.text}: others committed between each of {_LOOKS} "
            "looks at the rows to replace and the put. Nothing was committed, and the data files are kept. Run the job "
            "again when fewer jobs commit to this table at once."
        )

    def _is_decided(self, plan: Plan) -> bool:
        """Whether it need not be looked which rows to replace: the batch is in. Raises what refuses it."""
        coordinator = self.coordinator
        if plan.batch_id is None:
            return False
        head = coordinator.table.commits.load_head(commit_user=plan.commit_user)
        decision = decide_attempt(
            self._on_no_snapshot(plan),
            head,
            watermark_ms=head.watermark_ms,
            table=coordinator.table.label,
            policy=coordinator.policy,
        )
        return not isinstance(decision, Publish)

    def _on_no_snapshot(self, plan: Plan) -> Plan:
        """The plan before it was looked what it replaces. Should the batch turn out not to be in, it is refused."""
        return with_replaced(plan, [], table=self.coordinator.table, removed={}, planned_on=NOWHERE)
