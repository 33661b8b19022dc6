"""``spaseq serve --demo`` and the page on it, as somebody sees it who starts it for the first time."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium drives the browser: pip install 'spaseq[test]'")
pytest.importorskip("fastapi", reason="the server is an extra: pip install 'spaseq[serve]'")

from selenium.webdriver import ActionChains, Keys

from spaseq.samples import USE_CASES, use_case
from tests.serve.browser import PATIENCE, Page, chromium, until

MAIN = "import spaseq.cli; spaseq.cli.main()"

TRADES = "https://w3id.org/spaseq/example/stock/stream/trades"

QUERY = f"""\
PREFIX schema: <https://schema.org/>
PREFIX stock: <https://w3id.org/spaseq/example/stock#>
SELECT ?company ?price WITHIN 1 MINUTE SLIDING
FROM STREAM S <{TRADES}>
WHERE {{
  SEQ(A)
  DEFINE GPM A ON S {{ ?trade stock:company ?company ; schema:price ?price . FILTER(?price > 1) }}
}}
"""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as driver:
        yield Page(driver)


@pytest.fixture(scope="module")
def demo(browser: Page, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a demo listens, which ends well when it is told to; not started without a browser."""
    said = tmp_path_factory.mktemp("demo") / "stderr"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", "--demo", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode()
            assert line.startswith("spaseq serves http://127.0.0.1:"), said.read_text()
            yield line.split()[-1]
            browser.browser.get("about:blank")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                status = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    assert status == 0
    assert "Traceback" not in Path(said).read_text()


@pytest.fixture
def page(browser: Page, demo: str) -> Iterator[Page]:
    """The page of the demo, which has said nothing in the console in the end."""
    browser.errors()
    browser.open(demo)
    browser.one("#queries li")
    yield browser
    assert browser.errors() == []


def show(page: Page, query: str) -> None:
    """Goes to a query of the demo."""
    page.click("#queries a", query)
    assert page.one("h1", query)


def test_the_five_samples_are_alive(page: Page) -> None:
    cases = [use_case(name) for name in USE_CASES]
    shown = set(page.texts("#queries .name"))
    assert shown == {name for case in cases for name in case.queries}
    streams = {stream.iri for case in cases for stream in case.streams}

    def flowing() -> set[str]:
        script = """return [...document.querySelectorAll('#streams li')]
            .filter((one) => !one.querySelector('.state').textContent.startsWith('0 '))
            .map((one) => one.dataset.key)"""
        return set(page.run(script))

    until(lambda: flowing() >= streams, "events of all streams")

    def found() -> bool:
        counts = dict(zip(page.texts("#queries .name"), page.texts("#queries .count"), strict=True))
        return all(any(counts[name] != "0" for name in case.queries) for case in cases)

    until(found, "a match of each sample")


def test_a_match_opens_to_its_events_as_graphs_and_as_turtle(page: Page) -> None:
    show(page, "stocks-sector")
    until(lambda: page.received() > 0, "a match")
    until(lambda: len(page.texts(".automaton .state")) == 3, "the automaton")
    page.click("button[title='Pause (p)']")
    page.click(".matches tbody button")
    page.one(".detail h3", "A 1 event")
    page.one(".detail h3", "B 1 event")
    verbs = set(page.texts(".detail .event:first-of-type .graph .verb title"))
    assert "<https://w3id.org/spaseq/example/stock#change>" in verbs
    page.click(".detail .event button", "Turtle")
    assert "stock:change" in page.one(".detail .turtle").text
    page.click(".detail button[aria-label='Close the match']")
    until(lambda: not page.all(".detail"), "the match closed")


def test_a_typo_is_said_under_the_caret_and_goes_when_it_is_put_right(page: Page) -> None:
    page.click("#new-query")
    area = page.one("#text")
    area.send_keys(Keys.CONTROL, "a")
    area.send_keys(QUERY.replace("(?price", "(?prise"))
    bubble = page.one(".bubble", "?prise")
    assert "did you mean ?price?" in bubble.text
    where = page.run(
        "const of = (one) => one.getBoundingClientRect();"
        "const line = parseFloat(getComputedStyle(arguments[0]).lineHeight);"
        "return (of(document.querySelector('.mark')).bottom - of(arguments[0]).top) / line",
        area,
    )
    assert 7 < where < 8.5  # under line 7, and above the next
    column = QUERY.splitlines()[6].index("(?price") + 2
    assert page.texts("#verdict")[0].startswith(f"line 7, column {column}: ")
    script = "const at = arguments[0].value.indexOf('?prise') + 5; arguments[0].setSelectionRange(at, at)"
    page.run(script, area)
    area.send_keys(Keys.BACKSPACE, "c")
    assert page.one("#verdict", "Valid: SELECT ?company ?price over stock / trades")
    assert not page.all(".bubble")


def test_a_query_is_tried_registered_and_deleted_by_keyboard(page: Page) -> None:
    def press(*keys: str) -> None:
        ActionChains(page.browser).send_keys(*keys).perform()

    press("n")
    until(lambda: page.run("return document.activeElement.id") == "text", "the editor")
    ActionChains(page.browser).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    press(QUERY)
    press(Keys.TAB)
    assert page.run("return document.activeElement.textContent") == "Try it"
    press(Keys.ENTER)
    assert page.one(".trial h2", "The first 5 matches in the last ")
    assert page.one(".trial p", " of stock / trades")
    press(Keys.TAB)
    assert page.run("return document.activeElement.textContent") == "Register"
    press(Keys.ENTER)
    assert page.one("h1", "query q")
    until(lambda: page.received() > 3, "its matches")
    name = page.one("h1").text.split(" running")[0]
    page.click("button", "Delete")
    page.click("button", "Really delete?")
    until(lambda: name not in page.texts("#queries .name"), "the query gone")


def test_a_trial_without_a_match_says_why(page: Page) -> None:
    page.click("#new-query")
    area = page.one("#text")
    area.send_keys(Keys.CONTROL, "a")
    area.send_keys(QUERY.replace("> 1)", "> 100000)"))
    until(lambda: page.number("#streams li[data-key*='stock'] .state") > 50, "events")
    page.click("button", "Try it")
    assert page.one(".trial h2", "No match in the last ")
    assert page.one(".trial .why", "FILTER")


def test_dead_letters_say_their_reasons(page: Page) -> None:
    page.click("#letters-link")
    assert page.one(".letters li", "Parser error")
    late = page.one(".letters li", "is before the watermark")
    assert "stock / trades" in late.text
    assert int(page.texts("#letters-count")[0]) >= 2
