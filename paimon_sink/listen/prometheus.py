"""Figures in Prometheus' text format, version 0.0.4, for node_exporter's textfile collector."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SUFFIX", "Sample", "exposition", "own_file"]

SUFFIX = ".prom"
"""The collector reads no other files."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.]+")
_MOST_OF_A_NAME = 60


@dataclass(frozen=True)
class Sample:
    """One figure. Samples of one name must be adjacent; they share its help."""

    name: str
    kind: str
    """counter or gauge."""
    help: str
    value: float
    labels: Mapping[str, str]


def exposition(samples: Iterable[Sample]) -> str:
    lines: list[str] = []
    before = ""
    for sample in samples:
        if sample.name != before:
            lines.append(f"# HELP {sample.name} {_help(sample.help)}")
            lines.append(f"# TYPE {sample.name} {sample.kind}")
            before = sample.name
        labels = ",".join(f'{name}="{_label(value)}"' for name, value in sample.labels.items())
        lines.append(f"{sample.name}{{{labels}}} {_number(sample.value)}")
    return "".join(f"{line}\n" for line in lines)


def own_file(path: Path, *, table: str, location: str, commit_user: str) -> Path:
    """The file of one user of one table: streams that share a path must not overwrite each other's figures."""
    whole = "\n".join((table, location, commit_user))
    short = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    readable = _NOT_IN_A_NAME.sub("-", table)[-_MOST_OF_A_NAME:].strip("-.")
    return path.with_name("-".join(filter(None, (path.name.removesuffix(SUFFIX), readable, short))) + SUFFIX)


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _label(text: str) -> str:
    return _help(text).replace('"', r"\"")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
