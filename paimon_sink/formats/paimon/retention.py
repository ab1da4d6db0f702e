"""How long a Paimon table keeps its snapshots, as its own options say it to every engine."""

from __future__ import annotations

from collections.abc import Mapping

from pypaimon.common.time_utils import parse_duration

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.formats.expiry import TableRetention

__all__ = ["table_retention"]

_TIME, _LEAST, _MOST = "snapshot.time-retained", "snapshot.num-retained.min", "snapshot.num-retained.max"
_LIMIT, _WRITE_ONLY = "snapshot.expire.limit", "write-only"
_CHANGELOGS = ("changelog.time-retained", "changelog.num-retained.min", "changelog.num-retained.max")
_HOUR_MS = 3_600_000
_LONGEST = 2**31 - 1


def table_retention(options: Mapping[str, str], *, table: str) -> TableRetention | None:
    """With Java's defaults where the table says nothing. None where its writers leave expiry to others."""
    if options.get(_WRITE_ONLY, "false").strip().lower() == "true" or any(key in options for key in _CHANGELOGS):
        return None
    try:
        keep_ms = parse_duration(options[_TIME]) if _TIME in options else _HOUR_MS
        least, limit = int(options.get(_LEAST, "10")), int(options.get(_LIMIT, "50"))
        most = int(options.get(_MOST, str(_LONGEST)))
        if not 1 <= least <= most or limit < 1:
            raise ValueError(f"{_LEAST}={least}, {_MOST}={most}, {_LIMIT}={limit}")
    except ValueError as error:
        raise CorruptTableError(
            f"Cannot tell how long {table} keeps its snapshots ({error}). None was removed. Mend the options "
            "snapshot.* of the table, or set expire.olderThan for this writer."
        ) from error
    return TableRetention(keep_ms=keep_ms, keep_least=least, keep_most=None if most == _LONGEST else most, limit=limit)
