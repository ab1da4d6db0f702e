"""The listener ``metrics``: what each batch cost, in a file, in a log and for Prometheus. Counted once each."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from paimon_sink.commit.dispatch import current_journal
from paimon_sink.core.events import CommitEvent
from paimon_sink.core.steps import Step, listening
from paimon_sink.errors import OptionError
from paimon_sink.listen.loading import check_listeners
from paimon_sink.listen.metrics import Metrics
from paimon_sink.listeners import ListenerContext
from tests.support.batches import sink_options
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.victims import Batch, killed_driver

HOSTILE = 'back\\slash "quoted"\nnext line {x="y"} ü'


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def collected(tmp_path: Path) -> Path:
    """The directory that node_exporter reads."""
    found = tmp_path / "collected"
    found.mkdir()
    return found


def measured(lake: Lake, **settings: Path | str) -> Lake:
    own = {f"listener.metrics.{key}": str(value) for key, value in settings.items()}
    return Lake(lake.options, lake.table, {**lake.extra, "listeners": "metrics", **own})


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def families(collected: Path) -> list[Metric]:
    """All that the collector would give, by a parser that is not ours."""
    return [
        family
        for path in sorted(collected.glob("*.prom"))
        for family in text_string_to_metric_families(path.read_text())
    ]


def value(collected: Path, name: str, **labels: str) -> float:
    """The one sample of that name with those labels."""
    found = [
        sample.value
        for family in families(collected)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return float(found[0])


def an_event(**changes: Any) -> CommitEvent:
    said: dict[str, Any] = {
        "table": "sales.orders",
        "location": "/lake/sales.db/orders",
        "commit_user": "nightly",
        "query_id": "q",
        "batch_id": 7,
        "first_batch_id": 7,
        "commit_id": "c7",
        "snapshot_id": 12,
        "at_ms": 1_700_000_000_500,
        "rows": 100,
        "files": 4,
        "size_bytes": 4096,
        "small_files": 3,
        "attempts": 3,
        "replays": 1,
        "watermark_ms": 1_699_999_999_000,
        "timings_ms": {"look": 1, "build": 20, "put": 300, "all": 321},
    }
    return CommitEvent(**{**said, **changes})


def listener(**settings: Path | str) -> Metrics:
    return Metrics(ListenerContext("metrics", {key: str(found) for key, found in settings.items()}))


# ---------------------------------------------------------------- the line


def test_each_batch_is_a_line_with_what_it_brought_and_cost(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "pwc.jsonl"
    told = measured(lake, file=file)
    for batch in range(3):
        told.append(batch, rows(batch, 100 + batch))

    found, history = lines(file), lake.history()
    assert [line["batch"] for line in found] == [0, 1, 2]
    assert [line["snapshot"] for line in found] == lake.snapshot_ids()
    assert [line["commit"] for line in found] == [snapshot.commit_id for snapshot in history]
    for line, snapshot in zip(found, history, strict=True):
        said = {key: int(snapshot.properties[f"pwc.{key}"]) for key in ("rows", "files", "bytes", "attempts")}
        assert {key: line[key] for key in said} == said
        assert (line["table"], line["user"], line["conflicts"]) == ("sales.orders", "test", 0)
        assert (line["small_files"], line["small_share"]) == (1, 1.0)
        assert set(line["commit_ms"]) == {"look", "build", "put", "all"}
    assert found[0]["seconds_since_commit_before"] is None
    # By the listener's clock, which is the ledger's; an Iceberg snapshot has a time of its own.
    assert found[2]["seconds_since_commit_before"] == (found[2]["at_ms"] - found[1]["at_ms"]) / 1000


def test_the_figures_of_a_line_follow_from_the_event(tmp_path: Path) -> None:
    file = tmp_path / "pwc.jsonl"
    first = listener(file=file).on_commit(an_event(), None)
    listener(file=file).on_commit(an_event(commit_id="c8", batch_id=8, at_ms=1_700_000_002_000, files=0), first)

    one, two = lines(file)
    assert (one["attempts"], one["conflicts"], one["replays"]) == (3, 2, 1)
    assert (one["watermark_ms"], one["watermark_lag_ms"]) == (1_699_999_999_000, 1500)
    assert (one["small_files"], one["small_share"]) == (3, 0.75)
    assert one["commit_ms"] == {"look": 1, "build": 20, "put": 300, "all": 321}
    assert two["seconds_since_commit_before"] == 1.5
    assert two["small_share"] is None


def test_what_is_not_known_is_null(tmp_path: Path) -> None:
    file = tmp_path / "pwc.jsonl"
    listener(file=file).on_commit(an_event(watermark_ms=None, small_files=None, timings_ms={}), None)

    (line,) = lines(file)
    unknown = ("watermark_ms", "watermark_lag_ms", "small_files", "small_share", "seconds_since_commit_before")
    assert {line[key] for key in unknown} == {None}
    assert set(line["commit_ms"].values()) == {None}


def test_a_rotated_file_is_left_alone_and_a_line_that_was_cut_off_takes_no_other_with_it(tmp_path: Path) -> None:
    file, rotated = tmp_path / "pwc.jsonl", tmp_path / "pwc.jsonl.1"
    state = listener(file=file).on_commit(an_event(), None)
    file.rename(rotated)
    file.write_text('{"table": "sales.or')

    listener(file=file).on_commit(an_event(commit_id="c8", batch_id=8), state)

    assert [line["batch"] for line in lines(rotated)] == [7]
    assert [json.loads(line)["batch"] for line in file.read_text().splitlines()[1:]] == [8]


def test_the_line_goes_to_a_logger_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lake.metrics"):
        listener(logger="lake.metrics").on_commit(an_event(), None)

    (record,) = caplog.records
    assert (record.name, record.levelname) == ("lake.metrics", "INFO")
    assert json.loads(record.getMessage())["batch"] == 7


def test_where_nobody_set_logging_up_the_line_goes_to_the_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely = logging.getLogger("lonely")
    monkeypatch.setattr(lonely, "propagate", False)
    try:
        state = listener(logger="lonely").on_commit(an_event(), None)
        listener(logger="lonely").on_commit(an_event(commit_id="c8", batch_id=8), state)
    finally:
        lonely.handlers.clear()

    assert [json.loads(line)["batch"] for line in capsys.readouterr().err.splitlines()] == [7, 8]


# ---------------------------------------------------------------- told twice


def test_telling_a_batch_twice_counts_it_once(lake: Lake, tmp_path: Path, collected: Path) -> None:
    told = measured(lake, file=tmp_path / "pwc.jsonl", prometheus=collected / "pwc.prom")
    told.append(0, rows(1, 2))
    killed_driver(told, Batch(1, (3,)), Step.NOTIFIED)
    # Whoever loses the memo is told again.
    table = told.open()
    for path in told.files("told"):
        table.store.delete(table.store.join(table.location, path))
    told.append(1, rows(3))
    told.append(1, rows(3))
    told.append(2, rows(4))

    assert value(collected, "pwc_batches_total") == 3
    assert value(collected, "pwc_rows_total") == 4
    assert len(lines(tmp_path / "pwc.jsonl")) > len({line["commit"] for line in lines(tmp_path / "pwc.jsonl")}) == 3
    assert told.ids() == [1, 2, 3, 4]


def test_a_batch_whose_commit_is_in_the_state_is_not_counted_again(tmp_path: Path, collected: Path) -> None:
    settings = {"file": tmp_path / "pwc.jsonl", "prometheus": collected / "pwc.prom"}
    state = listener(**settings).on_commit(an_event(), None)

    assert listener(**settings).on_commit(an_event(), state) == state
    assert len(lines(tmp_path / "pwc.jsonl")) == 1
    assert value(collected, "pwc_rows_total") == 100


def test_replays_and_lost_rounds_are_counted(lake: Lake, tmp_path: Path, collected: Path) -> None:
    told = measured(lake, file=tmp_path / "pwc.jsonl", prometheus=collected / "pwc.prom")
    rival = lake.with_options(commitUser="rival")
    told.append(0, rows(1))
    told.append(0, rows(1))
    with listening(once_at(Step.BEFORE_PUT, lambda: rival.append(0, rows(10)))):
        told.append(1, rows(2))

    last = lines(tmp_path / "pwc.jsonl")[-1]
    assert (last["attempts"], last["conflicts"], last["replays"]) == (2, 1, 1)
    assert value(collected, "pwc_conflicts_total", user="test") == 1
    assert value(collected, "pwc_replays_total", user="test") == 1


@pytest.mark.parametrize("state", [{"commit": "c"}, {"rows": -1}, [], "x", 3], ids=repr)
def test_totals_that_cannot_be_read_begin_anew_with_a_warning(
    state: object, collected: Path, caplog: pytest.LogCaptureFixture
) -> None:
    after = listener(prometheus=collected / "pwc.prom").on_commit(an_event(), state)

    assert after["rows"] == value(collected, "pwc_rows_total") == 100
    assert "start again at zero" in caplog.text


def test_batches_that_are_told_as_one_are_all_counted(collected: Path) -> None:
    listener(prometheus=collected / "pwc.prom").on_commit(an_event(first_batch_id=3, batch_id=7, batches=5), None)

    assert value(collected, "pwc_batches_total") == 5


# ---------------------------------------------------------------- Prometheus


def test_prometheus_reads_counters_and_gauges_with_help_and_type(collected: Path) -> None:
    listener(prometheus=collected / "pwc.prom").on_commit(an_event(), None)

    found = {family.name: family for family in families(collected)}
    assert {name: family.type for name, family in found.items()} == {
        **dict.fromkeys(
            ["pwc_batches", "pwc_rows", "pwc_files", "pwc_bytes", "pwc_conflicts", "pwc_replays"], "counter"
        ),
        **dict.fromkeys(["pwc_last_batch", "pwc_last_commit_timestamp_seconds"], "gauge"),
        **dict.fromkeys(["pwc_commit_duration_seconds", "pwc_small_files_ratio"], "gauge"),
        **dict.fromkeys(["pwc_watermark_timestamp_seconds", "pwc_watermark_lag_seconds"], "gauge"),
    }
    assert all(family.documentation for family in found.values())
    assert "time() - pwc_last_commit_timestamp_seconds" in found["pwc_last_commit_timestamp_seconds"].documentation
    assert value(collected, "pwc_last_commit_timestamp_seconds") == 1_700_000_000.5
    assert value(collected, "pwc_last_batch") == 7
    assert value(collected, "pwc_commit_duration_seconds", phase="put") == 0.3
    assert value(collected, "pwc_watermark_lag_seconds") == 1.5
    assert value(collected, "pwc_small_files_ratio") == 0.75


def test_what_is_not_known_is_left_out(collected: Path) -> None:
    listener(prometheus=collected / "pwc.prom").on_commit(
        an_event(watermark_ms=None, small_files=None, timings_ms={}), None
    )

    names = {family.name for family in families(collected)}
    assert "pwc_rows" in names
    assert not {name for name in names if "watermark" in name or "small" in name or "duration" in name}


def test_labels_are_escaped(collected: Path) -> None:
    said = {"table": HOSTILE, "commit_user": HOSTILE + "!", "location": HOSTILE + "?"}
    listener(prometheus=collected / "pwc.prom").on_commit(an_event(**said), None)

    labels = [sample.labels for family in families(collected) for sample in family.samples]
    assert {(found["table"], found["user"], found["location"]) for found in labels} == {tuple(said.values())}


def test_several_streams_share_one_path_and_none_writes_over_another(
    lake: Lake, tmp_path: Path, collected: Path
) -> None:
    path = collected / "pwc.prom"
    one, two = lake.with_options(commitUser="one"), lake.with_options(commitUser="two")
    elsewhere = Lake({"warehouse": str(tmp_path / "elsewhere")}, lake.table, {"commitUser": "one"})
    for stream, number in ((one, 1), (two, 2), (elsewhere, 3), (one, 4)):
        measured(stream, prometheus=path).append(number, rows(number))

    assert len(list(collected.iterdir())) == 3
    assert value(collected, "pwc_last_batch", user="one", location=lake.open().location) == 4
    assert value(collected, "pwc_last_batch", user="two") == 2
    assert value(collected, "pwc_last_batch", user="one", location=elsewhere.open().location) == 3


def test_the_collector_sees_whole_files_that_it_may_read(collected: Path) -> None:
    """Also where a process died on the way: what it left has a name that is passed by."""
    before = os.umask(0o022)
    try:
        listener(prometheus=collected / "pwc.prom").on_commit(an_event(), None)
    finally:
        os.umask(before)

    (file,) = collected.iterdir()
    assert file.name.startswith("pwc-sales.orders-")
    assert file.stat().st_mode & 0o777 == 0o644
    assert file.read_text().endswith("\n")


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({}, "say where figures go", id="none"),
        pytest.param(
            {"file": "{tmp}/no/such/pwc.jsonl"}, r"is in .*/no/such, which is no directory", id="no directory"
        ),
        pytest.param({"file": "pwc.jsonl"}, "must be an absolute path", id="relative"),
        pytest.param({"file": "{tmp}"}, "is the directory", id="a directory"),
        pytest.param({"prometheus": "{tmp}/pwc.txt"}, r"must end in \.prom", id="a suffix that nobody reads"),
        pytest.param({"prometheus": "{tmp}/no/pwc.prom"}, "is no directory", id="no directory for prometheus"),
        pytest.param({"fiel": "{tmp}/pwc.jsonl"}, "did you mean file", id="a typing error"),
        pytest.param({"logger": ""}, "logger is empty", id="an empty name"),
    ],
)
def test_wrong_settings_are_said_before_the_first_row(
    settings: dict[str, str], problem: str, lake: Lake, tmp_path: Path
) -> None:
    told = measured(lake, **{key: found.replace("{tmp}", str(tmp_path)) for key, found in settings.items()})

    options = sink_options(told)

    with pytest.raises(OptionError, match=problem):
        check_listeners(options.listeners, options.table)


def test_a_directory_that_goes_later_fails_the_listener_and_no_batch(lake: Lake, collected: Path) -> None:
    told = measured(lake, prometheus=collected / "pwc.prom")
    told.append(0, rows(1))
    for file in collected.iterdir():
        file.unlink()
    collected.rmdir()
    told.append(1, rows(2))

    table = told.open()
    progress = current_journal(
        table, "test", table.commits.load_head(commit_user="test").ledger.entries["test"]
    ).listeners["metrics"]
    assert "is no directory here" in (progress.error or "")
    collected.mkdir()
    told.append(2, rows(3))

    assert told.ids() == [1, 2, 3]
    assert value(collected, "pwc_rows_total") == 3
