"""Runs SQL in Flink, in an environment of Flink's own: its Python packages do not go together with ours.

Reads one JSON line a job (the warehouse and its statements) and answers each with one line: a mark, then as JSON the
rows of each statement or what went wrong. Imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

MARK = "answer: "


def main() -> None:
    flink = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    flink.get_config().set("parallelism.default", "1")
    flink.get_config().set("table.local-time-zone", "UTC")
    # A procedure that starts a job would answer before the job is done.
    flink.get_config().set("table.dml-sync", "true")
    numbers = count()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": answers(flink, f"lake{next(numbers)}", json.loads(line))}
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            answer = {"error": str(error)}
        print(MARK + json.dumps(answer), flush=True)


def answers(flink: TableEnvironment, catalog: str, job: dict[str, Any]) -> list[list[list[Any]]]:
    """Each job has a catalog of its own, which has cached nothing."""
    flink.execute_sql(
        f"CREATE CATALOG {catalog} WITH "
        f"('type' = 'paimon', 'warehouse' = '{job['warehouse']}', 'cache-enabled' = 'false')"
    )
    flink.execute_sql(f"USE CATALOG {catalog}")
    return [rows(flink, statement) for statement in job["statements"]]


def rows(flink: TableEnvironment, statement: str) -> list[list[Any]]:
    result = flink.execute_sql(statement)
    if statement.startswith("INSERT"):
        # Its cluster ends with it, and collecting what is not there fails at that.
        result.wait()
        return []
    with result.collect() as found:
        return [[plain(cell) for cell in row] for row in found]


def plain(cell: Any) -> Any:
    if isinstance(cell, (bytes, bytearray)):
        return cell.hex()
    return cell if cell is None or isinstance(cell, (bool, int, float, str)) else str(cell)


if __name__ == "__main__":
    main()
