"""The layout of the page in a real browser: nothing is cut or too wide, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium drives the browser: pip install 'spaseq[test]'")

from selenium.webdriver import Keys

from tests.serve.browser import Page, chromium, until
from tests.serve.canned import Canned
from tests.serve.running import running
from tests.streams import NS

WIDTHS = (1_280, 420)

#: A word and an IRI without a place to break.
WORD = "w" * 200
IRI = "http://example.org/" + "x" * 5_000

#: Its automaton is wider than half a desk, and has a loop.
QUERY = f"""# {WORD}
SELECT ?x ?value WITHIN 50 SECONDS SLIDING FROM STREAM S <{NS}{WORD}>
WHERE {{ SEQ(A ; B+ ; C ; D ; E)
{"".join(f"  DEFINE GPM {name} ON S {{ ?x <{IRI}> ?value . }}" + chr(10) for name in "ABCDE")}}}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as driver:
        yield Page(driver)


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """The page, which has said nothing in the console in the end."""
    browser.errors()
    yield browser
    browser.run("sessionStorage.clear()")
    browser.browser.get("about:blank")
    assert browser.errors() == []


def of_drawing(page: Page) -> bool:
    return any("×" in text for text in page.texts(".automaton .taken"))


def box(page: Page, selector: str) -> dict[str, float]:
    found: dict[str, float] = page.run(
        "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector
    )
    return found


def test_long_names_and_values_are_in_their_boxes(page: Page) -> None:
    with Canned(rate=100, total=50, word=WORD) as server:
        page.size(WIDTHS[0])
        page.open(server.url)
        until(lambda: page.received() >= 50 and of_drawing(page), "matches and the automaton")
        page.run("document.querySelector('.matches button').click()")
        assert page.one(".detail h3", "7 events")
        for width in WIDTHS:
            page.size(width)
            assert page.overflowing() == []
        until(lambda: page.texts(".automaton.down"), "the automaton drawn downwards")
        assert page.overflowing() == []


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_a_real_query_of_long_words_is_in_its_boxes(page: Page, width: int) -> None:
    page.size(width)
    with running() as server:
        key = server.register(QUERY, WORD)
        for second in range(9):
            body = f"<{IRI}> <{IRI}> '{WORD}', '{second}' ."
            answer = server.post(body, WORD, time=f"2026-01-01T00:00:0{second}Z")
            assert answer.status_code == 200, answer.text
        server.post(f"<{IRI}> {WORD}", WORD)
        page.open(f"{server.url}/#/query/{key}")
        until(lambda: page.received() > 3 and of_drawing(page), "matches and the automaton")
        assert page.overflowing() == []
        page.run("document.querySelector('.matches button').click()")
        assert page.one(".detail h3", "1 event")
        assert page.overflowing() == []

        page.run("document.querySelector('.title button').click()")
        assert page.one("#verdict", "Valid")
        page.click("button", "Try it")
        assert page.one(".trial h2", "The first 5 matches in the last 9 events")
        rows = page.texts(".trial > .card:first-of-type td")
        assert WORD in rows  # without a click
        page.click(".trial summary")
        assert page.one(".trial .detail, .trial .event")
        assert page.overflowing() == []

        # The text area has its lines where their coloured copies are, and a mistake is marked in its word.
        area, mirror = box(page, "#text"), box(page, ".mirror")
        assert (area["left"], area["right"]) == (mirror["left"], mirror["right"])
        page.run(
            "const area = document.getElementById('text');"
            "area.value = area.value.replace('SELECT ?x', 'SELECT ?y');"
            "area.dispatchEvent(new Event('input'))"
        )
        assert page.one(".bubble", "?y")
        assert page.texts(".mark") == ["?y"]
        assert page.overflowing() == []

        page.run("document.getElementById('letters-link').click()")
        page.click(".letters summary")
        assert page.overflowing() == []


@pytest.mark.slow
def test_what_is_typed_in_a_long_text_stays_in_sight(page: Page) -> None:
    with Canned(rate=1) as server:
        page.size(WIDTHS[1])
        page.open(f"{server.url}#/new")
        page.run("document.getElementById('text').value = '# a long line of many words\\n'.repeat(60)")
        page.one("#text").send_keys(Keys.CONTROL, Keys.END, Keys.NULL, "x")
        assert page.run("return document.querySelector('.editor').scrollTop") > 500
        assert page.overflowing() == []


@pytest.mark.slow
def test_there_is_one_count_and_lists_say_what_they_leave_out(page: Page) -> None:
    with Canned(rate=50) as server:
        page.size(WIDTHS[0])
        page.open(server.url)
        until(lambda: page.received() > 60, "matches")
        counts = (
            "return ['#queries .count', '.tiles dd'].map((one) => document.querySelector(one).textContent)"
        )
        for _ in range(40):
            side, tile = page.run(counts)
            assert side == tile
        page.click("button[title='Pause (p)']")
        last = int(page.texts(".matches tbody button")[-1].replace(",", ""))
        older = until(lambda: page.texts(".scroll:has(.matches) + p")[0], "older matches")
        assert older == f"and {last - 1:,} older match{'es' if last > 2 else ''}"
    with Canned(rate=5, word="w") as server:
        page.open(server.url)
        before = until(lambda: page.texts(".matches tbody tr") and box(page, ".matches")["width"], "matches")
        page.click("button[title='Pause (p)']")
        page.click(".matches tbody button")
        assert page.one(".detail .pattern > .button").text == "1 more event"
        assert box(page, ".matches")["width"] == before


@pytest.mark.slow
def test_on_a_phone_the_content_comes_first_and_the_side_is_a_button_away(page: Page) -> None:
    with Canned(rate=5) as server:
        page.size(WIDTHS[1])
        page.open(server.url)
        assert page.one("h1", "flood")
        assert box(page, "main")["bottom"] <= box(page, "#side")["top"]
        assert page.one("#totals", "Matches/s")
        page.click("#side-button")
        until(lambda: box(page, "#side")["top"] < 900, "the side in sight")
        assert page.run("return document.activeElement.id") == "new-query"
        size = "return parseFloat(getComputedStyle(document.querySelector(arguments[0])).fontSize)"
        assert page.run(size, "h1") > page.run(size, "main h2") > page.run(size, "main .quiet")
        page.size(WIDTHS[0])
        assert not page.all("#side-button")


TIMELINE = """
const done = arguments[arguments.length - 1];
(async () => {
  const { Kept } = await import("/page/kept.js");
  const { Timeline } = await import("/page/timeline.js");
  const kept = new Kept();
  for (const [number, [start, end]] of arguments[0].entries()) {
    kept.add(number + 1, JSON.stringify({ start, end }));
  }
  const timeline = new Timeline(kept, () => {});
  document.querySelector("main").append(timeline.element);
  const said = [], pen = CanvasRenderingContext2D.prototype, fill = pen.fillText;
  pen.fillText = function (text, ...at) { said.push(text); fill.call(this, text, ...at); };
  timeline.draw();
  pen.fillText = fill;
  const { boxes } = timeline;
  const height = timeline.canvas.clientHeight;
  const words = timeline.element.querySelector("p").textContent;
  timeline.close();
  timeline.element.remove();
  done({ boxes, said, height, words });
})();
"""


@pytest.mark.slow
def test_the_timeline_stacks_without_overlap_and_has_round_times(page: Page) -> None:
    def drawn(spans: list[tuple[Any, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = page.browser.execute_async_script(TIMELINE, spans)
        return found

    def clock(second: int) -> str:
        return (datetime(2026, 6, 4) + timedelta(seconds=second)).isoformat() + "Z"

    with Canned(rate=1) as server:
        page.size(WIDTHS[0])
        page.open(server.url)
        page.one("h1", "flood")

        # Eighty matches, all at one time.
        found = drawn([(clock(number), clock(100 + number)) for number in range(80)])
        boxes = found["boxes"]
        assert len(boxes) == 80
        for at, one in enumerate(boxes):
            for other in boxes[:at]:
                apart = one["left"] >= other["right"] or other["left"] >= one["right"]
                assert apart or one["top"] >= other["bottom"] or other["top"] >= one["bottom"]
        assert min(one["top"] for one in boxes) >= 0
        assert found["words"] == "All matches, 2026-06-04 00:00:00 to 00:02:59 UTC"
        assert all(text.endswith(("0", "5")) and len(text) == 8 for text in found["said"]), found["said"]
        assert len(found["said"]) > 4

        # Over midnight the date is where it changes.
        found = drawn([(clock(82_800), clock(82_801)), (clock(90_000), clock(90_001))])
        assert found["said"].count("2026-06-05") == 1
        assert {len(text) for text in found["said"]} == {5, 10}

        # Ticks are round numbers, as they are.
        first = 9_007_199_254_740_001
        found = drawn([(first, first + 1), (first + 30, first + 31)])
        assert found["said"] == [f"90071992547400{ten:02}" for ten in range(5, 35, 5)]
        assert "UTC" not in found["words"]
