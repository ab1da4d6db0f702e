"""``pwc watch`` in a real terminal: batches arrive, the window changes, Ctrl-C ends it and leaves all as it was."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.cells import cell_len

from tests.support.lake import Lake, rows

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 60
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
NEW_FRAME = "\x1b[H"


def command(lake: Lake, *arguments: str) -> list[str]:
    where = ["--warehouse", lake.options["warehouse"], "--table", lake.table]
    return [sys.executable, "-m", "paimon_sink.cli.main", "watch", *where, *arguments]


def environment() -> dict[str, str]:
    # The size is to come from the terminal.
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return kept | {"TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}


class Terminal:
    """What a person sees, without the person."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.seen = ""
        self._master = master

    def resize(self, *, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def ctrl_c(self) -> None:
        """As the terminal of a shell does it: this one is nobody's own."""
        self.process.send_signal(signal.SIGINT)

    def wait_for(self, text: str, *, since: int = 0) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen[since:]:
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.seen[-3000:]!r}"
            self._read()

    def wait_for_end(self) -> int:
        """Read to the end: a process that nobody reads from cannot end."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def frames(self, *, since: int) -> list[list[str]]:
        """Whole ones: the last may not be all there yet."""
        found = self.seen[since:].split(NEW_FRAME)[1:-1]
        return [ESCAPE.sub("", frame).replace("\r", "").split("\n") for frame in found]

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 1)
        try:
            data = os.read(self._master, 1 << 16) if ready else None
        except OSError:
            # Linux says so when the other end is closed.
            return False
        self.seen += "" if data is None else data.decode("utf-8", "replace")
        return data != b""


@contextmanager
def terminal(*arguments: str, columns: int, lines: int) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(arguments, stdin=slave, stdout=slave, stderr=slave, env=environment())
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_it_shows_what_arrives_follows_the_window_and_ends_cleanly(local_lake: Lake) -> None:
    local_lake.append(0, rows(*range(1234)))

    with terminal(*command(local_lake, "--every", "200ms"), columns=80, lines=24) as screen:
        screen.wait_for("1,234")
        local_lake.append(1, rows(*range(4321)))
        screen.wait_for("4,321")

        before = len(screen.seen)
        screen.resize(columns=60, lines=16)
        screen.wait_for("every 200 ms\x1b[0m\r\n", since=before)
        for _ in range(4):
            screen.wait_for(NEW_FRAME, since=len(screen.seen))
        narrow = screen.frames(since=before)[-1]

        screen.ctrl_c()
        status = screen.wait_for_end()

    assert max(map(cell_len, narrow)) <= 60
    assert len(narrow) <= 16
    assert status == 0
    left = screen.seen.rpartition("\x1b[?1049l")[2]
    assert "Traceback" not in screen.seen
    assert "\x1b[?25h" in screen.seen[screen.seen.rindex("\x1b[?25l") :], "the cursor is shown again"
    assert "4,321" in left, "what was seen last stays on the screen"


def test_for_machines_there_is_a_line_for_each_reading_until_ctrl_c(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    arguments = command(local_lake, "--json", "--every", "100ms")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        local_lake.append(1, rows(2, 3))
        found = first
        while len(found["snapshots"]) < 2:
            found = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE_S)

    assert [entry["batch"] for entry in first["snapshots"]] == [0]
    assert [entry["rows"] for entry in found["snapshots"]] == [1, 2]
    assert all(json.loads(line)["table"] == "sales.orders" for line in rest.splitlines())
    assert (process.returncode, errors) == (0, b"")
