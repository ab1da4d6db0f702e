"""Users that left the ledger: a few characters of each, so that it is known again whenever it comes back.

They stand in one table property a branch: a fingerprint of the name, the highest batch that was tried, and the query.
Without them a batch of a user that was silent for long could not be told from one that is new.
"""

from __future__ import annotations

import base64
import hashlib
import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from paimon_sink.formats.ledger import Claim, LedgerEntry

MOST_SILENT = 10_000
"""About fifteen characters each. Whoever left first is forgotten beyond."""
_FORGOTTEN = "true"
"""The first word where somebody was forgotten. Older versions wrote nothing else."""
_LINE = re.compile(r"([A-Za-z0-9_-]{12}):([0-9]{1,19}):(=|[^ :]*)", re.ASCII)
_SAME = "="
"""In place of a query id that is the user's own name, as it is for every stream without ``commitUser``."""


@dataclass(frozen=True)
class SilentUsers:
    """Those of one branch, in the order in which they left."""

    lines: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By fingerprint: the highest batch, and the query as it is written."""
    forgot_some: bool = False

    @classmethod
    def from_text(cls, text: str | None) -> SilentUsers:
        """Read them, or raise ``ValueError``: guessing here would double a batch."""
        words = [] if text is None else text.split(" ")
        forgot_some = words[:1] == [_FORGOTTEN]
        lines: dict[str, tuple[int, str]] = {}
        for word in words[1:] if forgot_some else words:
            line = _LINE.fullmatch(word)
            if line is None:
                raise ValueError(f"a silent user reads {reprlib.repr(word)}")
            lines[line[1]] = (int(line[2]), line[3])
        return cls(lines, forgot_some)

    def to_text(self) -> str:
        words = [f"{user}:{batch}:{query}" for user, (batch, query) in self.lines.items()]
        return " ".join([_FORGOTTEN, *words] if self.forgot_some else words)

    def claim_of(self, commit_user: str) -> Claim | None:
        """What was tried before the user fell silent. None for one that is not among them."""
        line = self.lines.get(_fingerprint(commit_user))
        if line is None:
            return None
        batch_id, query = line
        return Claim(commit_user, batch_id, commit_user if query == _SAME else unquote(query) or None, "")

    def changed(self, *, left: Mapping[str, LedgerEntry], came_back: Iterable[str]) -> SilentUsers:
        lines = dict(self.lines)
        for user in (*came_back, *left):
            lines.pop(_fingerprint(user), None)
        for user, entry in left.items():
            query = _SAME if entry.query_id == user else quote(entry.query_id or "", safe="")
            lines[_fingerprint(user)] = (entry.highest, query)
        forgotten = len(lines) - MOST_SILENT
        kept = dict(list(lines.items())[max(0, forgotten) :])
        return SilentUsers(kept, self.forgot_some or forgotten > 0)


def _fingerprint(commit_user: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(commit_user.encode("utf-8")).digest()[:9]).decode("ascii")
