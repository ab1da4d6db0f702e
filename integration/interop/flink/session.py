"""Asks the process of statements.py."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

__all__ = ["Flink", "FlinkError"]

_MARK = "answer: "


class FlinkError(Exception):
    """A statement that Flink did not run."""


@dataclass(frozen=True)
class Flink:
    """A Flink that looks at one warehouse."""

    process: subprocess.Popen[str]
    warehouse: str

    def run(self, *statements: str) -> list[list[list[Any]]]:
        """The rows of each statement."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        job = {"warehouse": self.warehouse, "statements": statements}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(_MARK):
                answer = json.loads(line.removeprefix(_MARK))
                break
        else:
            raise AssertionError("Flink ended without an answer; its log is in the directory of the run.")
        if "error" in answer:
            raise FlinkError(answer["error"])
        rows: list[list[list[Any]]] = answer["rows"]
        return rows

    def read(self, table: str, columns: str = "*") -> list[list[Any]]:
        (rows,) = self.run(f"SELECT {columns} FROM {table}")
        return rows
