"""The live view: a thread reads, the terminal is drawn again and again, so that time goes on while a store is slow."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from paimon_sink.cli.figures import duration
from paimon_sink.cli.watch.frame import Room, frame
from paimon_sink.cli.watch.state import View, Watcher

__all__ = ["Picture", "watch_live"]

_DRAW_EVERY_S = 0.25
_SLOW_MS = 3_000
_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Picture:
    """A view as rich draws it: anew for the room that there is each time."""

    view: View
    now_ms: int
    last: int
    user: str | None
    note: str = ""
    is_slow: bool = False
    """Whether the reading under way takes long."""
    fits_screen: bool = False
    """Whether it is cut to the lines of the terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Not the height in the options: rich forgets it on the way through a screen.
        room = Room(options.max_width, console.height if self.fits_screen else None, self.last)
        yield from frame(self.view, now_ms=self.now_ms, room=room, user=self.user, note=self.note, is_slow=self.is_slow)


@dataclass
class _Reader:
    """Reads in the background. What it last saw is one value, which is replaced and never changed."""

    watcher: Watcher
    every_ms: int
    view: View
    begun_ms: int | None = None
    """When the reading began that is under way."""
    _ended: threading.Event = field(default_factory=threading.Event)

    def slow_ms(self, now_ms: int) -> int | None:
        """How long the reading under way has taken, once that is worth a word."""
        begun_ms = self.begun_ms
        return None if begun_ms is None or now_ms - begun_ms < _SLOW_MS else now_ms - begun_ms

    def start(self) -> None:
        # A daemon: a store that does not answer must not keep the command from ending.
        threading.Thread(target=self._run, name="pwc-watch", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self.every_ms / 1000):
            self.begun_ms = self.watcher.clock.now_ms()
            self.view = self.watcher.again(self.view)
            self.begun_ms = None


def watch_live(console: Console, watcher: Watcher, first: View, *, every_ms: int, last: int) -> None:
    """Until Ctrl-C. The last frame stays on the screen."""
    reader = _Reader(watcher, every_ms, first)
    picture = Picture(first, watcher.clock.now_ms(), last, watcher.user, fits_screen=True)
    with _ended_by_a_signal():
        try:
            with Live(picture, console=console, screen=True, auto_refresh=False) as live:
                reader.start()
                while True:
                    now_ms = watcher.clock.now_ms()
                    slow_ms = reader.slow_ms(now_ms)
                    note = f", every {duration(every_ms)}" if slow_ms is None else f", reading for {duration(slow_ms)}"
                    picture = replace(picture, view=reader.view, now_ms=now_ms, note=note, is_slow=slow_ms is not None)
                    live.update(picture, refresh=True)
                    watcher.clock.sleep(_DRAW_EVERY_S)
        except KeyboardInterrupt:
            # The screen of before is back. What was seen last is worth keeping.
            console.print(replace(picture, note="", is_slow=False, fits_screen=False))
        finally:
            reader.stop()


@contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """A terminal that is left as the live view has it shows no cursor: SIGTERM has to pass by here."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
