"""The page of ``pwc report`` in a real browser: on a desk, on a phone, by day and by night, and with hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page

from paimon_sink.cli.main import cli
from tests.cli.test_report_command import PLOTS
from tests.support.browser import browser
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.listeners import with_recorder

# One browser for all of them.
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOSTILE = """<script>document.title='mine'</script><img src="https://evil.example/x" onerror="document.title='mine'">"""
LONG = "1f0c9d9e-1c7b-4a5c-9d35-6b0e3f1a7c55-" * 4
PHONE, DESK = 360, 1280
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that has everything: three users, one of them hostile and one long, a watermark, a failing listener."""
    directory = tmp_path_factory.mktemp("report")
    lake = Lake({"warehouse": str(directory / "lake")})
    heard = with_recorder(lake, directory / "notes.jsonl", commitUser=LONG, watermarkColumn="id")
    (directory / "broken").touch()
    for batch in range(6):
        heard.append(batch, rows(*range(100 * (batch + 1))))
        lake.append(batch, rows(batch))
    other_engine(lake).append(rows(1), commit_user=HOSTILE)
    out = directory / "report.html"
    named = ["--warehouse", lake.options["warehouse"], "--table", lake.table]
    result = CliRunner().invoke(cli, ["report", "-o", str(out), *named])
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    with browser() as found:
        yield found


@dataclass
class Shown:
    """A page that is open, and all that it said and asked for meanwhile."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(running: Browser, report: Path, *, width: int, scheme: Scheme) -> Iterator[Shown]:
    page = running.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    found = Shown(page)
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    try:
        page.goto(report.as_uri(), wait_until="networkidle")
        yield found
    finally:
        page.close()


@pytest.fixture
def shown(running: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    chosen: tuple[int, Scheme] = getattr(request, "param", (DESK, "light"))
    with opened(running, report, width=chosen[0], scheme=chosen[1]) as found:
        yield found


BOTH = pytest.mark.parametrize("shown", [(DESK, "light"), (PHONE, "dark")], indirect=True, ids=["desk", "phone"])


@BOTH
def test_it_loads_without_a_complaint_and_asks_for_nothing_else(shown: Shown, report: Path) -> None:
    asked = [url for url in shown.requests if not url.startswith("data:")]

    assert shown.complaints == []
    assert asked == [report.as_uri()]
    assert shown.page.title() == "sales.orders: report"


@BOTH
def test_nothing_is_wider_than_the_screen(shown: Shown) -> None:
    page = shown.page
    width = page.evaluate("innerWidth")

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("scrollTo(1000, 0)")
    assert page.evaluate("scrollX") == 0
    sticking_out = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(found => !found.closest('svg'))"
        ".filter(found => found.getBoundingClientRect().right > innerWidth + 0.5).map(found => found.outerHTML)"
    )
    assert sticking_out == []
    overflowing = page.evaluate(
        "[...document.querySelectorAll('.card, figure')].filter(found => found.scrollWidth > found.clientWidth)"
        ".map(found => found.textContent.slice(0, 40))"
    )
    assert overflowing == []


@BOTH
def test_every_plot_is_seen_and_has_points_in_it(shown: Shown) -> None:
    plots = shown.page.get_by_role("img")

    assert plots.count() == len(PLOTS)
    for number, name in enumerate(PLOTS):
        plot = plots.nth(number)
        box = plot.bounding_box()
        assert plot.is_visible(), name
        assert box is not None
        assert box["width"] > 150, name
        assert box["height"] > 40, name
        assert plot.locator("path.bar, path.dot, path.mark").count() > 0, name


@BOTH
def test_labels_can_be_read_and_do_not_lie_on_each_other(shown: Shown) -> None:
    sizes = shown.page.evaluate(
        "[...document.querySelectorAll('.x span, .y span, td, th, p')]"
        ".map(found => parseFloat(getComputedStyle(found).fontSize))"
    )
    crossing = shown.page.evaluate(
        """[...document.querySelectorAll('.x, .y')].flatMap(axis => {
            const boxes = [...axis.children].map(found => found.getBoundingClientRect());
            const cross = (one, other) => one.left < other.right && other.left < one.right
                && one.top < other.bottom - 2 && other.top < one.bottom - 2;
            return boxes.flatMap((one, at) => boxes.slice(at + 1).filter(other => cross(one, other)));
        }).length"""
    )

    assert min(sizes) >= 12
    assert crossing == 0


def test_dark_is_dark_and_light_is_light(running: Browser, report: Path) -> None:
    def lightness(scheme: Scheme) -> tuple[int, int]:
        with opened(running, report, width=DESK, scheme=scheme) as found:
            colours = found.page.evaluate(
                "['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])"
                ".map(colour => colour.match(/\\d+/g).slice(0, 3).map(Number))"
            )
        return sum(colours[0]), sum(colours[1])

    (day, ink_of_day), (night, ink_of_night) = lightness("light"), lightness("dark")

    assert min(day, ink_of_night) > 600
    assert max(night, ink_of_day) < 150


def test_a_hostile_commit_user_is_shown_as_text(shown: Shown) -> None:
    page = shown.page

    assert page.locator("#users th", has_text="<script>").inner_text() == HOSTILE
    assert page.locator("script, img").count() == 0
    assert page.title() == "sales.orders: report"


def test_a_failing_listener_is_seen(shown: Shown) -> None:
    row = shown.page.locator("#listeners tbody tr").first

    assert "failing since" in row.inner_text()
    assert "RuntimeError: nobody home" in row.inner_text()
