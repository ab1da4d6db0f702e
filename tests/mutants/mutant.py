"""One protection switched off."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """One change to one file. ``old`` stands there exactly once; at least one of ``tests`` must fail with ``new``."""

    name: str
    protection: str
    """What is switched off, in plain words."""
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def mutated(self, source: str) -> str:
        """The source with the change. Raises ``ValueError`` when the code has moved on."""
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: its text is in {self.file} {found} times, not once. Mend the catalogue.")
        return source.replace(self.old, self.new)
