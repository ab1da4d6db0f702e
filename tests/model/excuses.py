"""When a commit may fail. On a store that told the truth, with nobody expiring anything, it may not."""

from __future__ import annotations

from paimon_sink.core.errors import (
    CommitUnknownError,
    FilesReplacedError,
    LedgerLostError,
    PwcError,
    StaleBatchError,
    StorageError,
    TableChangedError,
)
from tests.model.stage import Stage, Try

__all__ = ["unexcused"]


def unexcused(error: BaseException, one: Try, stage: Stage, *, is_superseded: bool) -> str | None:
    """Why this end of a try is not acceptable, or None."""
    was_lied_to = stage.files.lies_told > one.lies_before
    saw_expiry = stage.expiries > one.expiries_before
    match error:
        case StaleBatchError():
            return None if is_superseded else "no later batch was acknowledged"
        case LedgerLostError():
            return None if stage.expiries else "nothing ever expired"
        case TableChangedError():
            return None if was_lied_to else "nobody changed the table"
        case FilesReplacedError():
            return None if was_lied_to or stage.compactions > one.compactions_before else "nobody replaced a file"
        case StorageError() | CommitUnknownError():
            return None if was_lied_to or saw_expiry else "the store told the truth"
        case PwcError():
            return "it never has to end like that"
        case _:
            return "it is no error of this package"
