"""Protections of watermarks and of what listeners know."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["LISTENING_MUTANTS"]

LISTENERS = "tests/faults/test_listeners.py"
WATERMARK = "tests/formats/test_watermark.py"
COORDINATOR = "paimon_sink/commit/coordinator.py"
FOLDING = "paimon_sink/commit/fold.py"
JOURNAL = "paimon_sink/commit/journal.py"
DISPATCH = "paimon_sink/commit/dispatch.py"
EVENT_TIME = "paimon_sink/write/event_time.py"

LISTENING_MUTANTS = (
    Mutant(
        "watermark-of-the-fastest-task",
        "the watermark is the least over the tasks",
        FOLDING,
        "    return min((mark for mark in marks",
        "    return max((mark for mark in marks",
        (f"{WATERMARK}::test_it_is_the_least_over_the_tasks_that_saw_a_time",),
    ),
    Mutant(
        "watermark-goes-back",
        "the watermark never goes back",
        "paimon_sink/commit/decide.py",
        "    return max((mark for mark in (reached_ms, head.watermark_ms) if mark is not None), default=None)\n",
        "    return reached_ms if reached_ms is not None else head.watermark_ms\n",
        (f"{WATERMARK}::test_null_then_1024_then_600_stays_1024_null_stays_then_2048",),
    ),
    Mutant(
        "far-future-counts",
        "a time in the far future does not count",
        EVENT_TIME,
        "in_ms > most_ms:",
        "in_ms > 2**63:",
        (f"{WATERMARK}::test_a_time_in_the_far_future_is_written_and_does_not_count",),
    ),
    Mutant(
        "any-memo-is-believed",
        "a memo counts only for the snapshot_info it was written after",
        DISPATCH,
        'if body["commit"] != entry.commit_id:',
        'if not body["commit"]:',
        (f"{LISTENERS}::test_a_driver_that_dies_after_the_put_leaves_nobody_untold",),
    ),
    Mutant(
        "a-replay-tells-nobody",
        "what a dead driver did not tell is told with the replay",
        COORDINATOR,
        "            self._dispatch.notify(\n",
        "            outcome.already_committed or self._dispatch.notify(\n",
        (f"{LISTENERS}::test_a_driver_that_dies_after_the_put_leaves_nobody_untold",),
    ),
    Mutant(
        "a-failing-listener-is-done-with",
        "a listener that failed is told again",
        JOURNAL,
        "replace(progress, failures=progress.failures + 1, error=shortened, failed_ms=now_ms)",
        "replace(progress, owed=progress.owed - 1, failures=progress.failures + 1, error=shortened, failed_ms=now_ms)",
        (f"{LISTENERS}::test_a_failing_listener_fails_no_batch_and_is_told_with_the_next",),
    ),
)
