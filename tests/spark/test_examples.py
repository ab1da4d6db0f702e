"""The recipes of examples/ run as they stand, in the session of the tests."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.lake import Lake, rows
from tests.support.s3 import S3Server

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """As ``python examples/name directory``."""
    monkeypatch.setattr(sys, "argv", [name, str(directory)])
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def count(spark: SparkSession, directory: Path, table: str) -> int:
    return spark.read.format("pwc").options(warehouse=f"{directory}/lake", table=table).load().count()


@pytest.mark.spark
def test_for_each_batch_has_each_batch_once_in_each_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("foreach_batch.py", tmp_path, monkeypatch)

    assert [count(spark, tmp_path, table) for table in ("sales.large", "sales.small")] == [333, 667]


@pytest.mark.spark
def test_a_day_that_is_retried_or_backfilled_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("retry_and_backfill.py", tmp_path, monkeypatch)

    assert re.findall(r"2026-11-(\d\d)\|\s*(\d+)", capsys.readouterr().out) == [
        (day, "100") for day in ("14", "15", "16", "17")
    ]


@pytest.mark.spark
def test_a_job_retries_what_may_go_away_and_nothing_else(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import date

    from paimon_sink.errors import CommitConflictError, SchemaMismatchError

    names = run("retry_and_backfill.py", tmp_path, monkeypatch)
    with_retries = names["with_retries"]
    tried: list[Exception] = []

    def failing(kinds: list[type[Exception]]) -> Any:
        def load_day(_: SparkSession, __: date) -> None:
            if len(tried) < len(kinds):
                tried.append(kinds[len(tried)]("of this test"))
                raise tried[-1]

        return load_day

    with_retries.__globals__["load_day"] = failing([CommitConflictError, CommitConflictError])
    with_retries(spark, date(2026, 11, 16))
    assert len(tried) == 2

    tried.clear()
    with_retries.__globals__["load_day"] = failing([SchemaMismatchError])
    with pytest.raises(SchemaMismatchError):
        with_retries(spark, date(2026, 11, 16))


@pytest.mark.spark
def test_the_newest_change_of_each_key_is_its_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("cdc_log.py", tmp_path, monkeypatch)

    shown = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [[cell.strip() for cell in row] for row in shown] == [["id", "name"], ["1", "Ada Lovelace"], ["3", "Cyd"]]
    assert count(spark, tmp_path, "crm.customer_changes") == 5


@pytest.mark.spark
def test_a_pipeline_from_table_to_table_keeps_every_row_in_one_of_two_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("table_to_table.py", tmp_path, monkeypatch)

    tables = ("raw.orders", "clean.orders", "clean.bad_orders")
    assert [count(spark, tmp_path, table) for table in tables] == [20, 18, 2]


@pytest.mark.spark
@pytest.mark.s3
def test_the_recipe_on_s3_runs_on_the_server_that_the_environment_names(
    spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PWC_S3_ENDPOINT", s3.endpoint)
    monkeypatch.setenv("PWC_S3_BUCKET", s3.bucket)
    monkeypatch.setenv("PWC_S3_ACCESS_KEY", s3.access_key)
    monkeypatch.setenv("PWC_S3_SECRET_KEY", s3.secret_key)

    run("on_s3.py", Path(), monkeypatch)

    assert capsys.readouterr().out.split()[-2:] == ["100", "rows"]


def test_the_dashboard_and_the_alerts_name_metrics_that_the_listener_writes(local_lake: Lake, tmp_path: Path) -> None:
    written = {"listeners": "metrics", "listener.metrics.prometheus": str(tmp_path / "pwc.prom")}
    timed = {"watermarkColumn": "id", "quarantine": "sales.bad", "check.low": "id < 10", "quarantine.maxShare": "0.9"}
    lake = Lake({**local_lake.options, **written, **timed})
    lake.append(0, rows(1, 2, 30))
    [file] = tmp_path.glob("*.prom")
    there = set(re.findall(r"^(pwc_\w+)\{", file.read_text(), flags=re.MULTILINE))

    for name in ("dashboard.json", "alerts.yml"):
        text = (EXAMPLES / "grafana" / name).read_text(encoding="utf-8")
        asked = set(re.findall(r"pwc_\w+", text))
        assert asked
        assert asked - there == set(), name


def test_each_panel_has_an_expression_a_place_and_a_title_of_its_own() -> None:
    dashboard = json.loads((EXAMPLES / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]

    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


def test_every_recipe_is_listed_and_every_one_that_retries_asks_for_the_cause() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")

    for recipe in (path for path in EXAMPLES.rglob("*") if path.is_file() and path.name != "README.md"):
        assert f"]({recipe.relative_to(EXAMPLES).as_posix()})" in listed
        text = recipe.read_text(encoding="utf-8")
        assert "except" not in text or "cause_of(error)" in text
