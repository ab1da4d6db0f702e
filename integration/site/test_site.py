"""The built site: every link leads somewhere, nothing is asked of another server, and it can be read on a phone.

``make site`` builds it into site/ and runs this. PWC_SCREENSHOTS names a directory for pictures of three pages.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import browser

SITE = Path(__file__).parents[2] / "site"
PHONE, DESK = 360, 1280
SHOWN = ("index.html", "errors.html", "api.html")
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Read(HTMLParser):
    """What a page links to, what it loads, and the places in it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.places.add(str(given["id"]))
        if tag == "a" and given.get("href") is not None:
            self.links.append(str(given["href"]))
        # A canonical address or the next page is named and not fetched.
        if tag in LOADS and given.get(LOADS[tag]) and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(str(given[LOADS[tag]]))


@pytest.fixture(scope="module")
def pages() -> dict[Path, Read]:
    found = {}
    for path in sorted(SITE.rglob("*.html")):
        found[path] = Read()
        found[path].feed(path.read_text(encoding="utf-8"))
    assert len(found) > 40, "build it first: make site"
    return found


def broken(page: Path, links: list[str], pages: dict[Path, Read]) -> Iterator[str]:
    for link in links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            yield f"{page.name}: {link}"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in {*pages[target].places, "__top"}:
            yield f"{page.name}: {link}: no such place"


def test_every_link_within_the_site_leads_to_a_page_and_a_place(pages: dict[Path, Read]) -> None:
    inside = {path: read for path, read in pages.items() if path.name != "404.html"}

    assert [link for path, read in inside.items() for link in broken(path, read.links + read.loads, pages)] == []
    start = SITE / "start.html"
    assert list(broken(start, ["no.html", "#no"], pages)) == ["start.html: no.html", "start.html: #no: no such place"]


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Read]) -> None:
    outside = {load for read in pages.values() for load in read.loads if urlsplit(load).netloc}

    assert outside == set()


# ---------------------------------------------------------------- in a browser


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    with browser() as found:
        yield found


def opened(running: Browser, address: str, width: int) -> tuple[Page, list[str], list[str]]:
    page = running.new_page(viewport={"width": width, "height": 800})
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address, wait_until="networkidle")
    return page, complaints, requests


@pytest.mark.browser
@pytest.mark.parametrize("width", [DESK, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", [*SHOWN, "options.html", "start.html", "capabilities.html"])
def test_a_page_fits_its_width_and_asks_no_other_server(running: Browser, served: str, name: str, width: int) -> None:
    page, complaints, requests = opened(running, f"{served}/{name}", width)

    # Wide tables and code scroll by themselves; the page does not.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    assert [request for request in requests if not request.startswith((served, "data:", "blob:"))] == []
    if "PWC_SCREENSHOTS" in os.environ and name in SHOWN:
        page.screenshot(path=str(Path(os.environ["PWC_SCREENSHOTS"]) / f"{Path(name).stem}-{width}.png"))
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [DESK, PHONE], ids=["desktop", "phone"])
def test_a_search_finds_the_page_of_an_error(running: Browser, served: str, width: int) -> None:
    page, complaints, requests = opened(running, f"{served}/index.html", width)

    if width == PHONE:
        page.locator("label[for=__search]").first.click()
    page.locator("input[name=query]").click()
    page.locator("input[name=query]").press_sequentially("StaleBatchError")
    page.wait_for_function("document.querySelectorAll('.md-search-result__link').length > 0", timeout=30_000)
    found = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")

    assert any(re.search(r"/errors\.html", link) for link in found)
    assert complaints == []
    assert [request for request in requests if not request.startswith((served, "data:", "blob:"))] == []
    page.close()
