"""The newest snapshot of a Paimon table with its ledger: what a commit is decided on, and built on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pypaimon.snapshot.snapshot import Snapshot

from paimon_sink.core.errors import TableChangedError
from paimon_sink.core.together import together
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.snapshots import watermark_of
from paimon_sink.formats.values import Head


@dataclass(frozen=True, kw_only=True)
class PaimonHead(Head):
    """A head with what the next snapshot is made of."""

    snapshot: Snapshot | None
    """The newest, None where there is none."""
    schema_id: int
    """Of the newest schema."""
    identity_is_older: bool
    """Whether the table may have become another one between the look at who it is and that at its snapshots."""


def load_head(handle: PaimonHandle, *, commit_user: str) -> PaimonHead:
    schema_ids, identity, newest = _seen_at_once(handle) if handle.store.is_far else _seen_in_order(handle)
    ledger = handle.chain.ledger(newest)
    if not ledger.complete and commit_user not in ledger.entries:
        claims = handle.claims.that_may_be_in(commit_user, newest, handle.snapshots.read)
        ledger = replace(ledger, claims=claims, register=handle.claims.register())
    return PaimonHead(
        table_identity=identity or handle.schemas.identity(schema_ids),
        snapshot_id=None if newest is None else newest.id,
        next_snapshot_id=1 if newest is None else newest.id + 1,
        ledger=ledger,
        watermark_ms=None if newest is None else watermark_of(newest),
        snapshot=newest,
        schema_id=max(schema_ids),
        identity_is_older=identity is not None,
    )


_Seen = tuple[list[int], str | None, Snapshot | None]
"""The schemas, who the table is, and its newest snapshot. Not who it is where that is to be asked last."""


def _seen_in_order(handle: PaimonHandle) -> _Seen:
    schema_ids = handle.schemas.ids()
    if not schema_ids:
        raise TableChangedError.dropped(handle.label)
    return schema_ids, None, handle.snapshots.newest()


def _seen_at_once(handle: PaimonHandle) -> _Seen:
    """By one round trip. Whoever acts on it has to ask again who the table is: ``PaimonCommit.confirm_head``."""
    (schema_ids, identity), newest = together(handle.schemas.look, handle.snapshots.newest, far=True)
    if identity is None:
        raise TableChangedError.dropped(handle.label)
    return schema_ids, identity, newest
