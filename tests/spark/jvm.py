"""How the JVMs of tests are started. They live for seconds: compiling well is not worth it, nor is finding classes."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["QUICKLY_COMPILED", "SHORT_LIVED"]

QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""One compiler and one collector. An archive of classes is for one collector: it is made with the same."""

_ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""Made with the environment (scripts/spark_classes.py). Without it tests are slower, and the same."""

SHORT_LIVED = " ".join(
    [
        QUICKLY_COMPILED,
        *([f"-XX:SharedArchiveFile={_ARCHIVE}", "-Xlog:disable"] if _ARCHIVE.is_file() else []),
    ]
)
