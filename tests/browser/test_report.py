"""`make test-browser`: the report of real runs in a real browser, on a phone, on a desk, in print, light and dark."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_gym.config import resolve
from kernel_gym.experiments.reports.report import write_report
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'kernel_gym[browser]'")
pytestmark = pytest.mark.browser

#: Names that a Chromium goes by; without one, that of `playwright install chromium` is tried.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE, DESK, PAPER = (390, 844), (1280, 900), (794, 1123)
TASKS = ("relu", "sigmoid", "sum_reduction_over_a_dimension")
#: What every report of real runs has, with how many pictures at least; categories and kernels have one each.
SECTIONS = {"results": 1, "tiers": 2, "speedups": 1, "timeline": 1, "transfer": 0, "memories": 0, "kernels": 1,
            "configuration": 0}  # fmt: skip
#: Elements that reach beyond the window and don't lie in something that scrolls.
OVERHANGING = """() => [...document.querySelectorAll('body *')].filter(element =>
    !element.closest('.scroll, pre') && element.getBoundingClientRect().right > innerWidth + 1
).map(element => element.outerHTML.slice(0, 120))"""
#: Height in pixels of the smallest words in pictures.
SMALLEST = """() => Math.min(...[...document.querySelectorAll('svg text')].map(
    text => parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a))"""
CONTRAST = """() => { const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * (r / 255) ** 2.2 + 0.7152 * (g / 255) ** 2.2 + 0.0722 * (b / 255) ** 2.2; };
    const style = getComputedStyle(document.body), [a, b] = [light(style.color), light(style.backgroundColor)];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), b]; }"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents, two seeds, three tasks, everything real."""
    folder = tmp_path_factory.mktemp("study")
    for agent in ("value", "random"):
        for seed in range(2):
            settings = resolve(
                overrides={"agent": agent, "seed": seed, "tasks": TASKS, "budget": 5, "workers": 1},
                sets=["env.author_options.profile=strong"],
            )
            train(settings, RunFolder.open(folder / agent / f"seed-{seed}", settings))
    return write_report(folder, folder / "report.html", reference="random")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    executable = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    # Chromium's own sandbox refuses to run as root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=executable, args=arguments)
        except playwright.Error as error:
            pytest.skip(f"needs Chromium (apt install chromium, or playwright install chromium): {error}")
        yield browser
        browser.close()


class Opened:
    """A report in a window, with everything that the browser said about it."""

    def __init__(self, browser: Any, report: Path, size: tuple[int, int], scheme: str) -> None:
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(report.as_uri())

    def open_all(self) -> None:
        """Unfold everything that can be unfolded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_report_fits_the_window_and_asks_for_nothing(
    browser: Any, report: Path, size: tuple[int, int], scheme: str
) -> None:
    opened = Opened(browser, report, size, scheme)
    opened.open_all()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert opened.page.evaluate(OVERHANGING) == []
    assert opened.page.evaluate(SMALLEST) >= 8.0
    contrast, background = opened.page.evaluate(CONTRAST)
    assert contrast >= 7.0
    assert (background < 0.1) == (scheme == "dark")
    assert (opened.said, opened.asked) == ([], [report.as_uri()])
    opened.page.screenshot(path=str(report.parent / f"{size[0]}-{scheme}.png"), full_page=True)
    opened.page.close()


def test_everything_is_there_with_something_in_it(browser: Any, report: Path) -> None:
    page = Opened(browser, report, DESK, "light").page
    assert [one.get_attribute("class") for one in page.query_selector_all("section")] == list(SECTIONS)
    for name, least in SECTIONS.items():
        pictures = page.query_selector_all(f"section.{name} svg")
        assert len(pictures) >= least, name
        for picture in pictures:
            box = picture.bounding_box()
            assert box["width"] > 200
            assert box["height"] > 20
            assert picture.query_selector("rect, path, polyline, circle"), name
    assert page.locator("section.results polyline").count() == 2  # a curve an agent
    assert page.locator("section.results polygon").count() == 2  # with its interval
    assert page.locator("section.results table").count() == 3  # figures, differences in area and in correct
    assert "effect" in page.locator("section.results table").nth(1).inner_text()
    kernels = page.locator("section.kernels > figure")
    assert kernels.count() >= 1
    for i in range(kernels.count()):
        assert "no trace" not in kernels.nth(i).inner_text()
        assert kernels.nth(i).locator("svg[aria-label='what every pipe did when'] rect").count() > 10
        assert "KERNEL" in kernels.nth(i).locator("pre").text_content() or "__aicore__" in kernels.nth(i).inner_html()
    texts = page.locator("section.memories pre").all_text_contents()
    assert texts
    assert all(len(text) > 40 for text in texts)
    assert "profile: strong" in page.locator("section.configuration").inner_text()
    page.close()


def test_a_printed_report_is_dark_on_white_and_nothing_is_cut_off(browser: Any, report: Path) -> None:
    opened = Opened(browser, report, PAPER, "dark")
    opened.open_all()
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate(CONTRAST)[1] > 0.9
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PAPER[0]
    cut = "() => [...document.querySelectorAll('.scroll, pre')].filter(one => one.scrollWidth > one.clientWidth + 1)"
    assert opened.page.evaluate(f"({cut})().length") == 0
    opened.page.screenshot(path=str(report.parent / "print.png"), full_page=True)
    pages = opened.page.pdf(path=str(report.parent / "report.pdf"), format="A4")
    assert pages.startswith(b"%PDF")
    opened.page.close()
