"""A real browser, without a window: the one that is installed, driven by playwright. None is ever downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

__all__ = ["browser", "find_browser"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """PWC_BROWSER, or the first on PATH; scripts/check-browser looks in the same places."""
    named = os.environ.get("PWC_BROWSER")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        missing = f"PWC_BROWSER names {named}, which is not there" if named else "There is no chromium on PATH"
        raise RuntimeError(f"{missing}: run scripts/check-browser, which installs it or says how.")
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_browser(), args=["--disable-dev-shm-usage"])
        try:
            yield running
        finally:
            running.close()
