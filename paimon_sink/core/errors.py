"""Everything this package raises on purpose.

    PwcError
    ├── OptionError              the options are wrong; nothing was touched
    ├── SchemaMismatchError      the rows do not fit the table, or what is read does not fit what was asked for
    ├── TableNotFoundError       there is no such table, and we may not create it
    ├── UnsupportedTableError    the table uses a feature we cannot write safely
    ├── CorruptTableError        a file of the table cannot be read
    ├── StorageError             the store failed, or lacks what we need
    │   └── PutReplacedError         another engine renamed its file over one that we had put
    ├── MessageError             a commit message is missing, foreign or of another version
    ├── BrokenOffError           the rows of a task ended too early; the task has failed already
    ├── CommitError
    │   ├── CommitConflictError      not applied: other writers won every attempt
    │   │   └── FoldAnewError            some of the batches of one plan are in by now
    │   └── CommitUnknownError       may be applied: its files must be kept
    └── RefusedError             not applied, and a retry will not help
        ├── StaleBatchError          older than the last batch of this commit user
        ├── CommitUserConflictError  the commit user belongs to another query
        ├── LedgerLostError          whether the batch is in can no longer be found out
        ├── FilesReplacedError       files that were to be replaced are no longer in the table
        ├── SnapshotExpiredError     a snapshot that a read asks for is gone
        ├── SourceChangedError       a snapshot in the range of a read took rows out
        ├── SourceSchemaChangedError a table that a stream follows has other columns from here on
        ├── TableRolledBackError     the snapshot that a stream had come to is no longer part of the table
        ├── ConsumerConflictError    the consumer belongs to another query
        ├── QuarantineAheadError     a table was rolled back, and its quarantine was not
        ├── TablesBehindError      tables of a stream fail for longer than they may be carried
        └── TableChangedError        dropped, recreated or evolved under the batch

The type is the policy: callers decide by type, never by reading the text. Each error holds one argument, its message,
so that it survives pickling between Spark's processes.
"""

from __future__ import annotations

__all__ = [
    "BrokenOffError",
    "CommitConflictError",
    "CommitError",
    "CommitUnknownError",
    "CommitUserConflictError",
    "ConsumerConflictError",
    "CorruptTableError",
    "FilesReplacedError",
    "FoldAnewError",
    "LedgerLostError",
    "MessageError",
    "OptionError",
    "PutReplacedError",
    "PwcError",
    "QuarantineAheadError",
    "RefusedError",
    "SchemaMismatchError",
    "SnapshotExpiredError",
    "SourceChangedError",
    "SourceSchemaChangedError",
    "StaleBatchError",
    "StorageError",
    "TableChangedError",
    "TableNotFoundError",
    "TableRolledBackError",
    "TablesBehindError",
    "UnsupportedTableError",
]


class PwcError(Exception):
    """Base of every error of this package. The message says what happened, to what, and the cure."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class OptionError(PwcError):
    """One or more options are missing, unknown, malformed or contradict each other."""


class SchemaMismatchError(PwcError):
    """The rows cannot be written into the table's columns, or the columns cannot be read as those asked for."""


class TableNotFoundError(PwcError):
    """The table does not exist."""


class UnsupportedTableError(PwcError):
    """The table uses a feature this sink cannot write safely yet."""


class CorruptTableError(PwcError):
    """A file of the table is unreadable. The message names it."""


class StorageError(PwcError):
    """The store failed after all retries, or does not offer what exactly-once needs."""


class PutReplacedError(StorageError):
    """A file that was put only if absent was created, and another engine renamed its own over it."""


class MessageError(PwcError):
    """The commit messages of a batch are incomplete or cannot be understood."""


class BrokenOffError(PwcError):
    """The rows of a task ended too early, because what computes them failed. Spark reports that failure."""


class CommitError(PwcError):
    """A commit that is not known to have succeeded."""


class CommitConflictError(CommitError):
    """Not applied: another writer won every attempt."""


class FoldAnewError(CommitConflictError):
    """Not applied: some of the batches that were folded into one plan are in by now. Only the others may go in."""


class CommitUnknownError(CommitError):
    """May be applied. Its files must be kept; the replay of the batch resolves it."""


class RefusedError(PwcError):
    """Not applied, by rule. A retry gives the same result until somebody acts."""


class StaleBatchError(RefusedError):
    """A batch older than the last one of this commit user: a zombie or a rewound checkpoint."""


class CommitUserConflictError(RefusedError):
    """This commit user was last used by another query."""


class LedgerLostError(RefusedError):
    """The history that would show whether the batch is already in has expired."""


class FilesReplacedError(RefusedError):
    """Files that were to be replaced are no longer in the table, or others committed since it was looked which.

    Their rows are where other writers put them.

    A refusal, not a conflict: a conflict is retried with the same plan, and this plan can never be committed.
    """


class SnapshotExpiredError(RefusedError):
    """A snapshot that a read asks for has expired."""


class SourceChangedError(RefusedError):
    """A snapshot in the range that a read asks for took rows out of the table."""


class SourceSchemaChangedError(RefusedError):
    """The next snapshot of a table that a stream follows has columns that the stream's DataFrame does not know."""


class TableRolledBackError(RefusedError):
    """A table that a stream follows was rolled back to before what the stream has read."""


class ConsumerConflictError(RefusedError):
    """The name under which a stream would hold expiry back is that of another query."""


class QuarantineAheadError(RefusedError):
    """The quarantine has bad rows of batches that are not in its table any more: that was rolled back alone."""


class TablesBehindError(RefusedError):
    """Tables that rows chose lack batches, for longer or more of them than the bounds allow, or at the end of a run."""


class TableChangedError(RefusedError):
    """The table was dropped, recreated or evolved while the batch was being written."""

    @classmethod
    def dropped(cls, table: str) -> TableChangedError:
        return cls(
            f"Cannot commit to {table}: the table was dropped after its tasks had written. Nothing was committed. "
            "Restart the query, or run the job again, to write into a new table."
        )
