"""How much a batch takes: soft limits, which one piece may exceed, so that every batch gets on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_LIMITS", "Admission", "Limits"]


@dataclass(frozen=True)
class Limits:
    """Of one batch. None: as much as there is."""

    files: int | None = None
    size_bytes: int | None = None
    rows: int | None = None

    def allow(self, files: int, size_bytes: int, rows: int) -> bool:
        bounds = ((self.files, files), (self.size_bytes, size_bytes), (self.rows, rows))
        return all(most is None or taken <= most for most, taken in bounds)


NO_LIMITS = Limits()


@dataclass
class Admission:
    """What a batch has taken so far. ``take`` says whether it may have one piece more, and notes it."""

    limits: Limits
    files: int = 0
    size_bytes: int = 0
    rows: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.files or self.rows or self.size_bytes)

    def take(self, *, size_bytes: int, rows: int) -> bool:
        """The first piece is taken whatever it is."""
        after = (self.files + 1, self.size_bytes + size_bytes, self.rows + rows)
        if not self.is_empty and not self.limits.allow(*after):
            return False
        self.files, self.size_bytes, self.rows = after
        return True

    def exceeds(self, *, size_bytes: int, rows: int) -> bool:
        """Whether a file alone is more than a batch may have."""
        return not self.limits.allow(1, size_bytes, rows)
