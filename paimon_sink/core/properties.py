"""Names of the properties that this package writes into snapshots and tables. Each stands here and nowhere else.

They are on disk in every table that was ever written to, and other programs read them: none may change.
"""

from __future__ import annotations

__all__ = [
    "ATTEMPTS",
    "BASE",
    "BATCH_ID",
    "BYTES",
    "CARRIED",
    "CARRIED_TABLES",
    "COMMIT_ID",
    "COMMIT_MS",
    "COMMIT_USER",
    "CONSUMER_OF",
    "FILES",
    "IDENTIFIERS",
    "LEDGER",
    "LISTENERS",
    "NEWEST_FOREIGN",
    "OUTBOX",
    "OUTBOX_NUMBER",
    "OUTBOX_OF",
    "PREFIX",
    "QUARANTINE",
    "QUARANTINED",
    "QUERY_ID",
    "ROUTED",
    "ROUTED_TABLES",
    "ROUTE_BATCH",
    "ROUTE_COLUMN",
    "ROUTE_HOME",
    "ROUTE_USER",
    "ROWS",
    "ROWS_SENT",
    "SILENT_USERS_OF",
    "SMALL_FILES",
    "USERS_OF",
    "WATERMARK",
    "WATERMARK_OF",
]

PREFIX = "pwc."
"""Names that begin like this are ours; users choose others."""

# ---------------------------------------------------------------- of a snapshot: who wrote it, and what

COMMIT_USER = f"{PREFIX}commit-user"
BATCH_ID = f"{PREFIX}batch-id"
QUERY_ID = f"{PREFIX}query-id"
COMMIT_ID = f"{PREFIX}commit-id"
ROWS = f"{PREFIX}rows"
FILES = f"{PREFIX}files"
BYTES = f"{PREFIX}bytes"
SMALL_FILES = f"{PREFIX}small-files"
ATTEMPTS = f"{PREFIX}attempts"
COMMIT_MS = f"{PREFIX}commit-ms"
ROWS_SENT = f"{PREFIX}rows-sent"
"""All rows of a batch that had bad ones."""
QUARANTINE = f"{PREFIX}quarantine"
"""Where its bad rows are."""
QUARANTINED = f"{PREFIX}quarantined"
"""How many; and with a rule after a dot, how many broke that."""
OUTBOX_OF = f"{PREFIX}outbox-of"
OUTBOX_NUMBER = f"{PREFIX}outbox-number"
"""Of a snapshot that brought in what a commit of another table owed: the id of that commit, and the outbox."""

ROUTED = f"{PREFIX}routed"
ROUTED_TABLES = f"{PREFIX}routed-tables"
"""Of a home: the rows that chose other tables, and how many tables."""
CARRIED = f"{PREFIX}carried"
CARRIED_TABLES = f"{PREFIX}carried-tables"
"""Of a home: rows of batches before that tables could not be given yet, and how many tables."""
ROUTE_HOME = f"{PREFIX}route-home"
ROUTE_USER = f"{PREFIX}route-user"
ROUTE_BATCH = f"{PREFIX}route-batch"
ROUTE_COLUMN = f"{PREFIX}route-column"
"""Of a snapshot with rows that chose its table: the home, the commit user and batch there, and the column."""

# ---------------------------------------------------------------- of a snapshot: what the next commit needs

LEDGER = f"{PREFIX}ledger"
BASE = f"{PREFIX}base"
NEWEST_FOREIGN = f"{PREFIX}newest-foreign"
LISTENERS = f"{PREFIX}listeners"
WATERMARK = f"{PREFIX}watermark"
IDENTIFIERS = f"{PREFIX}identifiers"
OUTBOX = f"{PREFIX}outbox"

# ---------------------------------------------------------------- of a table: prefixes, a branch or user after each

USERS_OF = f"{LEDGER}."
SILENT_USERS_OF = f"{PREFIX}ledger-dropped."
"""Those that left the ledger of a branch."""
CONSUMER_OF = f"{PREFIX}consumer."
"""Who follows the table, by name, where the format has no place of its own for that."""
WATERMARK_OF = f"{WATERMARK}."
"""The watermark of a branch, for when the snapshots that say it have expired: other engines do not say it again."""
