"""`make test-browser`: the report of real runs in a real browser, on a phone, on a desk, in print, light and dark."""

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_gym.config import resolve
from kernel_gym.experiments.reports.report import write_report
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.kernel import Kernel

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'kernel_gym[browser]'")
pytestmark = pytest.mark.browser

#: Names that a Chromium goes by; without one, that of `playwright install chromium` is tried.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE, DESK, PAPER = (375, 812), (1280, 900), (794, 1123)
TASKS = ("relu", "sigmoid", "sum_reduction_over_a_dimension")
#: What every report of real runs has, with how many pictures at least; categories and kernels have one each.
SECTIONS = {"contrasts": 0, "results": 1, "tasks": 0, "tiers": 2, "speedups": 1, "timeline": 1, "episodes": 0,
            "transfer": 0, "memories": 0, "kernels": 1, "configuration": 0}  # fmt: skip
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
        self.page.wait_for_selector("#episodes[data-ready]")

    def open_all(self) -> None:
        """Unfold everything that can be unfolded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_report_fits_the_window_and_loads_nothing(
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


def test_every_section_is_there_and_has_content(browser: Any, report: Path) -> None:
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
    assert page.locator("section.results table").count() == 3
    assert "attempts to solve" in page.locator("section.results table").nth(1).inner_text()
    assert "No contrast was named before these runs" in page.locator("section.contrasts").inner_text()
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


def column(table: Any, number: int) -> list[str]:
    """Return the texts of a table's column as they are shown, counted from 1."""
    cells: list[str] = table.locator(f"tbody tr > :nth-child({number})").all_inner_texts()
    return cells


def test_the_page_begins_with_the_answer_and_the_contents_lead_to_every_section(browser: Any, report: Path) -> None:
    page = Opened(browser, report, DESK, "light").page
    sentence = page.locator("p.answer").inner_text()
    assert "2 seeds" in sentence
    assert page.locator("p.answer").bounding_box()["y"] < 200
    targets = [link.get_attribute("href") for link in page.query_selector_all("nav a")]
    assert targets == [f"#{section.get_attribute('id')}" for section in page.query_selector_all("section")]
    page.click("nav a[href='#kernels']")
    assert -1 < page.locator("#kernels").bounding_box()["y"] < DESK[1]
    page.close()


def test_tables_sort_with_mouse_and_keyboard(browser: Any, report: Path) -> None:
    page = Opened(browser, report, DESK, "light").page
    table = page.locator("section.results table").nth(0)
    agents, header = column(table, 1), table.locator("th").nth(0)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert column(table, 1) == sorted(agents)
    header.locator("button").focus()
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "descending"
    assert column(table, 1) == sorted(agents, reverse=True)
    area = table.locator("th").nth(3)
    area.locator("button").click()
    means = [float(cell.split()[0]) for cell in column(table, 4)]
    assert means == sorted(means)
    assert header.get_attribute("aria-sort") is None
    page.close()


def test_curves_are_switched_off_and_on(browser: Any, report: Path) -> None:
    page = Opened(browser, report, DESK, "light").page
    curves, button = page.locator("figure.curves polyline"), page.locator("figure.curves .key button").nth(0)
    assert [curves.nth(i).is_visible() for i in range(2)] == [True, True]
    button.click()
    assert [curves.nth(i).is_visible() for i in range(2)] == [False, True]
    assert button.get_attribute("aria-pressed") == "false"
    button.focus()
    page.keyboard.press("Space")
    assert [curves.nth(i).is_visible() for i in range(2)] == [True, True]
    page.close()


def records(report: Path, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (report.parent / run / "results.jsonl").read_text().splitlines()]


def test_the_matrix_shows_every_task_of_every_agent_and_leads_to_its_fastest_attempt(
    browser: Any, report: Path
) -> None:
    page = Opened(browser, report, DESK, "light").page
    table = page.locator("table.matrix")
    names = [head.inner_text().split()[0] for head in table.locator("th").all()]
    assert names[0] == "task"
    tasks = column(table, 1)
    assert [task.rpartition("/")[2] for task in tasks] == sorted(TASKS)
    at = names.index("value")
    solved, latency = column(table, at + 1), None
    for task, cell in zip(tasks, solved, strict=True):
        seeds = [[r for r in records(report, f"value/seed-{seed}") if r["task"] == task] for seed in range(2)]
        assert cell == f"{sum(any(r['verdict']['feasible'] for r in seed) for seed in seeds)}/2"
    page.check("input[value=latency]")
    for task, cell in zip(tasks, column(table, at + 1), strict=True):
        known = [
            r["verdict"]["latency_us"]
            for seed in range(2)
            for r in records(report, f"value/seed-{seed}")
            if r["task"] == task and r["verdict"]["feasible"]
        ]
        assert cell == (f"{min(known):.2f}" if known else "-")
        latency = latency or (cell if known else None)
    row = column(table, at + 1).index(latency)
    table.locator("tbody tr").nth(row).locator("td").nth(at).locator("a").click()
    page.wait_for_function("document.querySelector('.attempt dl').innerText.includes('us')")
    assert page.locator("select[name=task]").input_value() == tasks[row]
    assert f"{latency} us" in page.locator(".attempt dl").inner_text()
    page.close()


def test_any_attempt_shows_its_context_kernel_verdict_and_changes(browser: Any, report: Path) -> None:
    opened = Opened(browser, report, DESK, "light")
    page, run = opened.page, "value/seed-1"
    history: dict[str, list[dict[str, Any]]] = {}
    for record in records(report, run):
        history.setdefault(record["task"], []).append(record)
    with RunFolder(report.parent / run).open_bank() as bank:
        items = {item.id: item for item in bank.items()}
    page.select_option("select[name=run]", "value, seed 1")
    refined = 0
    for task, attempts in history.items():
        page.select_option("select[name=task]", task)
        assert page.locator(".strip button").count() == len(attempts)
        for number, record in enumerate(attempts, 1):
            page.locator(".strip button").nth(number - 1).click()
            assert page.locator(".attempt h3").inner_text().startswith(f"Attempt {number} of {len(attempts)}")
            feedback = record["verdict"]["feedback"]
            assert page.locator(".attempt .verdict").text_content().endswith(feedback)
            source = items[record["produced"][0]].code
            assert page.locator(".attempt details.source pre").text_content().rstrip("\n") == source.rstrip("\n")
            shown = page.locator(".attempt .context > details.note > summary").all_text_contents()
            titles = [f"{items[id].kind.value}: {items[id].title}" for id in record["context"]]
            start = [] if record["start"] is None else [f"start point: {items[record['start']].title}"]
            assert shown == [*start, *titles]
            texts = page.locator(".attempt .context > details.note > pre").all_text_contents()
            assert texts[len(start) :] == [items[id].text for id in record["context"]]
            if record["start"] is not None and source != items[record["start"]].code:
                refined += 1
                changes = page.locator(".attempt details.changes")
                assert changes.locator("summary").inner_text().startswith("Changes to the start point")
                added, removed = (
                    Counter(line[2:].rstrip("\n") for line in changes.locator(kind).all_text_contents())
                    for kind in (".added", ".removed")
                )
                before = Counter(items[record["start"]].code.split("\n"))
                assert before - removed + added == Counter(source.split("\n"))
    assert refined, "no attempt refined a kernel: the test shows nothing"
    page.locator(".strip button").nth(0).click()
    page.keyboard.press("ArrowRight")
    assert page.locator(".attempt h3").inner_text().startswith("Attempt 2")
    page.keyboard.press("End")
    address = page.url
    page.close()
    assert opened.said == []
    again = browser.new_page()
    again.goto(address)
    again.wait_for_selector("#episodes[data-ready]")
    last = list(history.values())[-1]
    assert again.locator(".attempt h3").inner_text().startswith(f"Attempt {len(last)} of")
    assert again.locator("select[name=run]").input_value() == "value, seed 1"
    again.close()


#: What a kernel could contain to get a script into the page.
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> <!-- {{ 7*7 }}"


def test_a_kernel_cannot_put_markup_into_the_page(browser: Any, report: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(report.parent / "value", folder / "value")
    evil = Kernel(f"// {EVIL}\nint main;")
    for run in (folder / "value").iterdir():
        rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
        for row in rows:
            row["kernel"], row["verdict"]["feedback"] = evil.digest, EVIL
        (run / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        RunFolder(run).keep_kernel(evil)
        for best in (run / "best").glob("*.cpp"):
            best.write_text(evil.source)
        with sqlite3.connect(run / "bank.sqlite") as bank:
            for id, data in bank.execute("SELECT id, data FROM items").fetchall():
                item = json.loads(data)
                item |= {"title": EVIL, "text": EVIL}
                bank.execute("UPDATE items SET data = ? WHERE id = ?", (json.dumps(item), id))
    made = write_report(folder, tmp_path / "report.html", traces=False)
    opened = Opened(browser, made, DESK, "light")
    opened.open_all()
    page = opened.page
    assert page.title() == "study: kernel_gym report"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2  # the page's own and its data
    assert EVIL in page.locator(".attempt .verdict").text_content()
    assert EVIL in page.locator(".attempt details.source").text_content()
    assert EVIL in page.locator(".attempt .context").text_content()
    assert EVIL in page.locator("section.kernels pre").nth(0).text_content()
    assert (opened.said, opened.asked) == ([], [made.as_uri()])
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert page.title() == "study: kernel_gym report", "the page runs scripts that are not its own"
    page.close()
