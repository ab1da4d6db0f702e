"""What ``pwc schema`` prints, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from paimon_sink.cli.columns import Column, fitted, lines
from paimon_sink.cli.figures import clock_time
from paimon_sink.cli.printable import printable
from paimon_sink.core.evolve import Change, dotted, in_words
from paimon_sink.formats.evolution import ColumnInfo
from paimon_sink.maintain.schema import SchemaReport, VersionReport

__all__ = ["change_json", "schema_json", "show_changes", "show_schema"]

_INDENT = "  "
_SHORT_TYPE, _SHORT_COMMENT, _SHORT_CHANGES = 16, 12, 20


def show_schema(console: Console, report: SchemaReport) -> None:
    console.print(Text(f"Columns of {report.table}", style="bold"), soft_wrap=True)
    columns = report.today.columns
    has_comments = any(column.comment for column in columns)
    has_roles = any(column.role for column in columns)
    _show(
        console,
        [
            Column("id", ["" if column.field_id is None else str(column.field_id) for column in columns]),
            Column("column", [printable(dotted(column.path)) for column in columns], is_text=True),
            Column("type", [printable(column.type_name) for column in columns], is_text=True, shortest=_SHORT_TYPE),
            Column("", ["" if column.nullable else "not null" for column in columns], is_text=True),
            *([Column("role", [column.role for column in columns], is_text=True)] if has_roles else []),
            *([_comments(columns)] if has_comments else []),
        ],
    )
    console.print()
    console.print(Text("History", style="bold").append("   the newest last", style="dim"), soft_wrap=True)
    versions = report.versions
    made = [version.version.at_ms for version in versions]
    _show(
        console,
        [
            Column("schema", [str(version.version.schema_id) for version in versions]),
            *([Column("made", [_time(at_ms) for at_ms in made], is_text=True)] if any(made) else []),
            Column("first snapshot", [_first(version) for version in versions]),
            Column("at", [_first_time(version) for version in versions], is_text=True, leaves=1),
            Column("change", [_differences(version) for version in versions], is_text=True, shortest=_SHORT_CHANGES),
        ],
    )


def show_changes(console: Console, table: str, changes: Sequence[Change], *, dry_run: bool) -> None:
    for change in changes:
        console.print(Text(_INDENT + in_words(change)), soft_wrap=True)
    if not changes:
        said = f"{table} has all that already. Nothing was changed."
    elif dry_run:
        said = f"{table} can be changed so. Nothing was changed: add --yes."
    else:
        said = f"Changed {table}."
    console.print(Text(said, style="bold"), soft_wrap=True)


def schema_json(report: SchemaReport) -> dict[str, Any]:
    return {
        "table": report.table,
        "location": report.location,
        "schema_id": report.today.schema_id,
        "columns": list(map(_column, report.today.columns)),
        "history": [
            {
                "schema_id": each.version.schema_id,
                "made_ms": each.version.at_ms,
                "first_snapshot_id": None if each.first is None else each.first.snapshot_id,
                "first_used_ms": None if each.first is None else each.first.at_ms,
                "changes": list(each.differences),
                "columns": list(map(_column, each.version.columns)),
            }
            for each in report.versions
        ],
    }


def change_json(table: str, changes: Sequence[Change], *, dry_run: bool) -> dict[str, Any]:
    return {"table": table, "dry_run": dry_run, "changes": list(map(in_words, changes))}


def _column(column: ColumnInfo) -> dict[str, Any]:
    return {
        "name": dotted(column.path),
        "path": list(column.path),
        "id": column.field_id,
        "type": column.type_name,
        "nullable": column.nullable,
        "comment": column.comment,
        "role": column.role or None,
    }


def _comments(columns: Sequence[ColumnInfo]) -> Column:
    texts = [printable(column.comment or "") for column in columns]
    return Column("comment", texts, is_text=True, shortest=_SHORT_COMMENT)


def _differences(version: VersionReport) -> str:
    return printable("; ".join(version.differences))


def _first(version: VersionReport) -> str:
    return "-" if version.first is None else str(version.first.snapshot_id)


def _first_time(version: VersionReport) -> str:
    return "" if version.first is None else _time(version.first.at_ms)


def _time(at_ms: int | None) -> str:
    return "" if at_ms is None else clock_time(at_ms)


def _show(console: Console, columns: Sequence[Column]) -> None:
    shown, _ = fitted(columns, width=console.width - len(_INDENT))
    for number, line in enumerate(lines(shown)):
        console.print(Text(_INDENT + line, style="" if number else "dim"), soft_wrap=True)
