"""A time in large characters, for whoever looks from the other end of the room."""

from __future__ import annotations

__all__ = ["large", "short_time"]

_PIXELS = {
    "0": ("###", "# #", "# #", "# #", "###"),
    "1": (" # ", "## ", " # ", " # ", "###"),
    "2": ("###", "  #", "###", "#  ", "###"),
    "3": ("###", "  #", " ##", "  #", "###"),
    "4": ("# #", "# #", "###", "  #", "  #"),
    "5": ("###", "#  ", "###", "  #", "###"),
    "6": ("###", "#  ", "###", "# #", "###"),
    "7": ("###", "  #", "  #", " # ", " # "),
    "8": ("###", "# #", "###", "# #", "###"),
    "9": ("###", "# #", "###", "  #", "###"),
    "-": ("   ", "   ", "###", "   ", "   "),
    "s": ("   ", " ##", "#  ", "  #", "## "),
    "m": ("     ", "## # ", "# # #", "# # #", "# # #"),
    "h": ("#  ", "#  ", "## ", "# #", "# #"),
    "d": ("  #", "  #", " ##", "# #", " ##"),
    " ": (" ", " ", " ", " ", " "),
}
_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def large(text: str, *, lines: int) -> list[str]:
    """The text in five lines, or in three where there is less room. Digits, units and blanks only."""
    pixels = [" ".join(_PIXELS[character][row] for character in text) for row in range(5)]
    if lines >= 5:
        return ["".join("██" if pixel == "#" else "  " for pixel in row).rstrip() for row in pixels]
    blank = " " * len(pixels[0])
    pairs = zip(pixels[::2], [*pixels[1::2], blank], strict=True)
    return ["".join(_HALVES[up == "#", down == "#"] for up, down in zip(*pair, strict=True)).rstrip() for pair in pairs]


def short_time(milliseconds: int) -> str:
    """Whole seconds that have passed, so that it ticks: ``7s``, ``3m 20s``, ``5h 07m``, ``12d 04h``."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if seconds < 24 * 3600:
        return f"{seconds // 3600}h {seconds % 3600 // 60:02}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600:02}h"
