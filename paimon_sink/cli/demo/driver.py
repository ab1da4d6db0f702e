"""The demo's driver process: ``python -m paimon_sink.cli.demo.driver DIRECTORY FORMAT``, started by ``pwc demo``.

It leads a session of its own. Its JVM and its Python workers are in that session, so that the kills hit them and nobody
else, and so that afterwards one can see that nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from paimon_sink.cli.demo.place import Place
from paimon_sink.cli.demo.query import drive

__all__ = ["main"]


def main() -> None:
    if os.getsid(0) != os.getpid():
        sys.exit("This is the driver process of `pwc demo`, which starts it in a session of its own. Run that instead.")
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    drive(Place(Path(sys.argv[1]), sys.argv[2]))


def _die_with_the_parent() -> None:
    """Standard input is a pipe that only the parent holds: when it ends, so does everything here."""
    os.read(0, 1)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
