"""The door to the terminal: names, paths and messages are anybody's, and nothing of them may move it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

__all__ = ["Terminal", "printable", "printable_lines"]

_STANDS_IN = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """On one line, without what a terminal acts upon: controls of either set, marks of direction, half characters."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _STANDS_IN for character in text)


def printable_lines(text: str) -> str:
    """The same for what may have several lines, such as the problems of an error."""
    return "\n".join(map(printable, text.split("\n")))


class Terminal(Console):
    """Where every command prints for people. Of what is printed, each :class:`~rich.text.Text` is on one line."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and not renderable.plain.isprintable():
            renderable = renderable.copy()
            # As long as it was, so that styles stay where they are.
            renderable.plain = printable(renderable.plain)
        for segment in super().render(renderable, options):
            # What rich itself sends to move the cursor or to colour is no text.
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))
