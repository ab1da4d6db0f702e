"""``pwc report`` on the command line: what is on the page, and what never is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli
from paimon_sink.cli.report.page import page
from paimon_sink.cli.report.series import MOST_POINTS
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind
from paimon_sink.maintain.history import history
from tests.support.command_line import named
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.listeners import RECORDER, with_recorder
from tests.support.places import Place, places

PLOTS = [
    "Rows a batch",
    "Rows a second",
    "Commit time",
    "Time between batches",
    "Watermark lag",
    "Files a batch",
    "Share of small files",
    "Rows in the table",
    "Users",
]


@pytest.fixture(params=places("local", "s3", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@dataclass
class Read(HTMLParser):
    """A page as a browser takes it apart."""

    html: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def reported(lake: Lake, directory: Path, *arguments: str) -> Read:
    out = directory / "report.html"
    result = pwc("report", "-o", str(out), *arguments, *named(lake))
    assert result.exit_code == 0, result.output
    return Read(out.read_text(encoding="utf-8"))


def test_the_page_has_totals_plots_users_and_snapshots(lake: Lake, tmp_path: Path) -> None:
    timed = lake.with_options(watermarkColumn="id")
    for batch in range(3):
        timed.append(batch, rows(*range(1000 * (batch + 1))))
    lake.with_options(commitUser="nightly").append(20261116, rows(1))

    found = reported(lake, tmp_path)

    text = "|".join(found.texts)
    assert "Rows|6,001|" in text
    assert "Snapshots|4|" in text
    assert "nightly|20261116|" in text
    assert [str(svg["aria-label"]).split(" over time")[0] for svg in found.of("svg")][:-1] == PLOTS[:-1]
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in found.of("svg"))
    assert {table["id"] for table in found.of("table")} == {"totals", "users", "snapshots"}
    assert re.search(r"Made at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", text)
    assert found.html.count('class="bar ') == 8, "a bar of rows and one of files for each snapshot"


def test_the_page_asks_nobody_for_anything(lake: Lake, tmp_path: Path) -> None:
    lake.append(0, rows(1))

    found = reported(lake, tmp_path)

    assert not {"script", "img", "iframe", "object", "embed", "form"} & {tag for tag, _ in found.tags}
    assert [link["href"] for link in found.of("link")] == ["data:,"]
    location = lake.open().location
    outside = re.findall(r"(?:https?:|url\(|@import|//)[^\s<]*", found.html.replace(location, ""))
    assert outside == []
    policy = next(meta["content"] for meta in found.of("meta") if "http-equiv" in meta)
    assert str(policy).startswith("default-src 'none';")


@pytest.mark.s3
def test_no_option_gets_onto_the_page(s3_lake: Lake, tmp_path: Path) -> None:
    s3_lake.append(0, rows(1))
    secrets = [value for key, value in s3_lake.options.items() if "key" in key]

    found = reported(s3_lake, tmp_path)

    assert len(secrets) >= 2
    assert not any(secret in found.html for secret in secrets)


HOSTILE = """<script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;\x1b[2J"""


def test_a_hostile_commit_user_is_text(local_lake: Lake, tmp_path: Path) -> None:
    other_engine(local_lake).create(rows(1).schema)
    for _ in range(2):
        other_engine(local_lake).append(rows(1), commit_user=HOSTILE)

    found = reported(local_lake, tmp_path)

    assert not {"script", "img"} & {tag for tag, _ in found.tags}
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert HOSTILE.replace("\x1b", "\N{REPLACEMENT CHARACTER}") in found.texts
    assert "\x1b" not in found.html


def test_a_failing_listener_is_on_the_page_with_its_error(lake: Lake, tmp_path: Path) -> None:
    heard = with_recorder(lake, tmp_path / "notes.jsonl")
    (tmp_path / "broken").touch()
    heard.append(0, rows(1))

    found = reported(lake, tmp_path)

    text = "".join(found.texts)
    assert f"{RECORDER}of testfailing since 20" in text
    assert "1 event owed" in text
    assert "RuntimeError: nobody home" in text


def test_what_no_snapshot_says_is_said_in_place_of_its_plot(local_lake: Lake, tmp_path: Path) -> None:
    other_engine(local_lake).create(rows(1).schema)
    other_engine(local_lake).append(rows(1))

    text = "|".join(reported(local_lake, tmp_path).texts)

    assert "Watermark lag|No snapshot has a watermark" in text
    assert "Rows a second|It takes two batches of the same user to tell." in text


def test_an_empty_table_has_a_page_too(lake: Lake, tmp_path: Path) -> None:
    lake.write()

    found = reported(lake, tmp_path)

    assert "There is no snapshot." in found.texts
    assert found.of("svg") == []


def test_only_the_last_or_one_users_are_on_the_page(local_lake: Lake, tmp_path: Path) -> None:
    for batch in range(4):
        local_lake.append(batch, rows(batch))
    local_lake.with_options(commitUser="b").append(9, rows(1))

    last, user = reported(local_lake, tmp_path, "--last", "2"), reported(local_lake, tmp_path, "--user", "b")

    assert "Snapshots|2|" in "|".join(last.texts)
    assert "Snapshots|1|" in "|".join(user.texts)
    assert "Only what b did." in user.texts
    assert pwc("report", "--user", "c", "-o", str(tmp_path / "x"), *named(local_lake)).exit_code == 2


def test_the_page_can_go_to_the_standard_output(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))

    result = pwc("report", "-o", "-", *named(local_lake))

    assert result.stdout.startswith("<!DOCTYPE html>")
    assert result.stdout.endswith("</html>\n")


def test_a_page_that_cannot_be_written_is_a_sentence_and_leaves_nothing(local_lake: Lake, tmp_path: Path) -> None:
    local_lake.append(0, rows(1))
    (tmp_path / "there").mkdir()

    nowhere = pwc("report", "-o", str(tmp_path / "nowhere" / "report.html"), *named(local_lake))
    directory = pwc("report", "-o", str(tmp_path / "there"), *named(local_lake))

    assert nowhere.exit_code == 1
    assert "report.html: No such file or directory. Name another file with -o." in nowhere.stderr
    assert directory.exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "warehouse"]


# ---------------------------------------------------------------- large tables


def many(count: int) -> list[SnapshotInfo]:
    figures = {"rows": "5", "files": "1", "small-files": "0", "attempts": "1", "commit-ms": "7"}
    properties = {f"pwc.{name}": text for name, text in figures.items()}
    return [
        SnapshotInfo(
            number, "append", SnapshotKind.APPEND, f"user {number % 12}", number, None, f"c{number}", 1000 * number,
            number, 1,
            properties | ({"pwc.commit-ms": "9000"} if number == 777 else {}),
        )
        for number in range(1, count + 1)
    ]  # fmt: skip


def test_of_a_large_table_no_more_points_are_drawn_than_can_be_seen() -> None:
    found = history(many(5000), ledger={}, now_ms=6_000_000)

    read = Read(page(found, label="big", location="big", user=None))

    assert MOST_POINTS == 500
    assert any("5,000 snapshots in 500 points" in text for text in read.texts)
    assert read.html.count('class="bar ') == 2 * MOST_POINTS
    assert "9.0 s (1970-01-01 00:12:57, user 9, batch 777)" in read.texts, "the slowest commit is not left out"
    assert len(read.html) < 2_000_000


def test_a_compaction_is_no_bar_among_the_rows_of_batches() -> None:
    first, second, third = many(3)
    published = [first, replace(second, kind="compact", effect=SnapshotKind.REWRITE), third]

    read = Read(page(history(published, ledger={}, now_ms=6_000), label="t", location="t", user=None))

    about = [figure["aria-label"] or "" for figure in read.of("svg")]
    assert [text for text in about if text.startswith("Rows a batch over time") and "2 points" in text]


def test_of_many_users_the_last_lane_is_all_others() -> None:
    read = Read(page(history(many(60), ledger={}, now_ms=60_000), label="t", location="t", user=None))

    assert "2 others" in read.texts
    assert "6 others" in read.texts, "six have a colour of their own"


@pytest.mark.parametrize("at_ms", [-(2**62), 0, 2**62], ids=["long ago", "in 1970", "far ahead"])
def test_a_time_that_no_clock_has_does_not_stop_the_page(at_ms: int) -> None:
    odd = [
        SnapshotInfo(1, "append", SnapshotKind.APPEND, "a", 0, None, None, at_ms, None, None, {}),
        SnapshotInfo(2, "append", SnapshotKind.APPEND, "a", 1, None, None, 1_800_000_000_000, None, None, {}),
    ]

    read = Read(page(history(odd, ledger={}, now_ms=1_800_000_000_000), label="t", location="t", user=None))

    assert len(read.of("svg")) == len(PLOTS)
