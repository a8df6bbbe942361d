"""Take the pictures of a report and of TensorBoard that the documentation shows: `make screenshots FOLDER=runs/table`.

Needs the extra `browser` and a Chromium: the system's, or that of `playwright install chromium`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from kernel_gym.experiments.reports.report import write_report

PICTURES = Path(__file__).resolve().parent / "pictures"
DESK, PHONE, WIDE = {"width": 1100, "height": 900}, {"width": 375, "height": 760}, {"width": 1400, "height": 900}
#: High enough for the curves and their names.
HIGH = {"width": 1100, "height": 1290}
PORT = 6098
#: Names that a Chromium goes by; without one, that of `playwright install chromium` is started.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Seconds that TensorBoard has to answer, and to draw a tab.
PATIENCE, DRAWING = 120, 8
#: Tabs of TensorBoard that have pictures.
TABS = {"tensorboard": "custom_scalars&_smoothingWeight=0", "hparams": "hparams"}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium, or playwright's."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def shoot_report(browser: Browser, folder: Path) -> None:
    """Take the top of the report, its episode browser, and the latter on a phone."""
    file = write_report(folder, folder / "report.html")
    for name, size, place in (
        ("report", HIGH, ""),
        ("report-episode", DESK, "#episodes"),
        ("report-phone", PHONE, "#episodes"),
    ):
        page = browser.new_page(viewport=size)
        page.goto(f"{file.resolve().as_uri()}{place}")
        page.wait_for_selector("#episodes[data-ready]")
        if place:
            choose_attempt(page)
            page.locator(place).evaluate("section => section.scrollIntoView()")
        page.screenshot(path=PICTURES / f"{name}.png")
        page.close()


def choose_attempt(page: Page) -> None:
    """Open the first attempt that is faster than any before, of any run and task; the first one if there is none."""
    for run in page.locator("select[name=run] option").all_text_contents():
        page.select_option("select[name=run]", label=run)
        for task in page.locator("select[name=task] option").all_text_contents():
            page.select_option("select[name=task]", label=task)
            if page.locator(".strip .grade-3").count():
                page.locator(".strip .grade-3").first.click()
                return
    page.locator(".strip button").first.click()


@contextmanager
def tensorboard(folder: Path) -> Iterator[str]:
    """Serve TensorBoard; yields its address."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder.name, "--port", str(PORT)]
    process = subprocess.Popen(command, cwd=folder.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{PORT}/"
    try:
        for _ in range(PATIENCE):
            try:
                urlopen(f"{address}data/runs").close()
                break
            except URLError:
                sleep(1)
        yield address
    finally:
        process.terminate()
        process.wait()


def shoot_tensorboard(browser: Browser, folder: Path) -> None:
    """Take the tabs that compare agents."""
    with tensorboard(folder) as address:
        for name, tab in TABS.items():
            page: Any = browser.new_page(viewport=WIDE)
            page.goto(f"{address}#{tab}")
            page.wait_for_timeout(DRAWING * 1000)
            page.screenshot(path=PICTURES / f"{name}.png")
            page.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with chromium() as started:
        shoot_report(started, folder)
        shoot_tensorboard(started, folder)
