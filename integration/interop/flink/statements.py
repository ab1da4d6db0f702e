"""Runs SQL in Flink, in an environment of Flink's own: its Python packages do not go together with ours.

Takes one JSON argument with the warehouse and the statements, prints one JSON line: of each statement its rows, as lists.
Imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    job = json.loads(sys.argv[1])
    flink = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in job["settings"].items():
        flink.get_config().set(key, value)
    flink.execute_sql(f"CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = '{job['warehouse']}')")
    flink.execute_sql("USE CATALOG lake")
    print(json.dumps([rows(flink, statement) for statement in job["statements"]]))


def rows(flink: TableEnvironment, statement: str) -> list[list[Any]]:
    with flink.execute_sql(statement).collect() as found:
        return [[plain(cell) for cell in row] for row in found]


def plain(cell: Any) -> Any:
    if isinstance(cell, (bytes, bytearray)):
        return cell.hex()
    return cell if cell is None or isinstance(cell, (bool, int, float, str)) else str(cell)


if __name__ == "__main__":
    main()
