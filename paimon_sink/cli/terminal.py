"""The door to the terminal: names, paths and messages are anybody's, and nothing of them may move it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from paimon_sink.cli.printable import printable, printable_lines

__all__ = ["Terminal", "grid", "show_figure", "show_left_out"]


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


def show_figure(console: Console, name: str, value: int | str | None, note: str = "", *, wrong: bool = False) -> None:
    # Not a rich table: that pads every line with blanks, which stay when it is piped.
    shown = "?" if value is None else format(value, ",") if isinstance(value, int) else value
    figure = Text(f"  {name:<20}{shown:>13}", style="bold red" if wrong else "")
    console.print(figure.append(f"   {note}", style="dim") if note else figure, soft_wrap=True)


def show_left_out(console: Console, count: int, *, indent: str = "") -> None:
    """How many lines of a list are not printed, if any."""
    if count > 0:
        console.print(f"{indent}… and {count:,} more; --json lists all", style="dim")


def grid(headings: Sequence[str], *, numbers: Sequence[str]) -> Grid:
    """A table without lines. The columns of these ``numbers`` are set flush right."""
    empty = Grid(box=None, header_style="bold")
    for heading in headings:
        empty.add_column(heading, justify="right" if heading in numbers else "left")
    return empty
