"""How the JVMs of tests are started. They live for seconds: compiling well is not worth it, nor is finding classes."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["SHORT_LIVED"]

_ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""Made with the environment (scripts/spark_classes.py). Without it tests are slower, and the same."""

SHORT_LIVED = " ".join(
    [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        *([f"-XX:SharedArchiveFile={_ARCHIVE}", "-Xlog:disable"] if _ARCHIVE.is_file() else []),
    ]
)
