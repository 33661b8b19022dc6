"""The page to watch in a real browser, over a server that says what it is told, fast or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("selenium", reason="selenium drives the browser: pip install 'spaseq[test]'")

from selenium.webdriver import ActionChains, Keys

from tests.serve.browser import Page, chromium, until
from tests.serve.canned import Canned


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as driver:
        yield Page(driver)


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """The page, which has said nothing in the console in the end."""
    browser.browser.set_window_size(1440, 1000)
    browser.errors()
    yield browser
    errors = browser.errors()
    browser.browser.get("about:blank")
    assert errors == []


@pytest.mark.slow
def test_ten_thousand_matches_a_second_leave_the_page_at_work(page: Page) -> None:
    with Canned(rate=10_000) as server:
        page.open(server.url)
        until(lambda: page.received() > 5_000, "the first matches")
        page.run("window.frames_ = 0; (function count() { frames_++; requestAnimationFrame(count) })()")
        before = page.received()
        until(lambda: page.run("return frames_") > 40, "frames")
        until(lambda: page.received() > before + 20_000, "20,000 more matches")
        seen = page.run("return frames_")
        until(lambda: page.run("return frames_") > seen + 20, "further frames")
        assert page.run("return document.querySelectorAll('*').length") < 1_500
        assert page.run("return document.querySelectorAll('.matches tbody tr').length") <= 40
        assert "20,000" in page.one(".timeline-box p", "20,000").text  # bounded, and drawn by the pixel
        # And it can be used meanwhile.
        page.click("button[title='Pause (p)']")
        page.click(".matches tbody button")
        assert page.one(".detail h3", "1 event")
        page.click("a#new-query")
        assert page.one("textarea")


@pytest.mark.slow
def test_a_lost_connection_resumes_by_number_without_loss_or_doubling(page: Page) -> None:
    with Canned(rate=100, total=3_000) as server:
        page.open(server.url)
        until(lambda: page.received() >= 20, "matches")
        port, started, first = server.port, server.started, server.asked[0]
    banner = page.one("#banner", "Connection lost")
    assert "Nothing is lost" in banner.text
    assert page.texts("#link") == ["lost"]
    before = page.received()
    assert before < 3_000 - first
    with Canned(rate=100, total=3_000, port=port, started=started) as server:
        until(lambda: page.received() >= 3_000 - first, "all matches")
        until(lambda: page.texts("#link") == ["live"], "the connection")
        assert server.asked[0] >= first + before - 1  # it went on where it stopped
        assert page.received() == 3_000 - first
        assert not page.all("#banner")


@pytest.mark.slow
def test_a_server_that_was_started_anew_begins_anew(page: Page) -> None:
    with Canned(rate=100, total=200) as server:
        page.open(server.url)
        until(lambda: page.received() == 200 - server.asked[0], "all matches")
        port = server.port
    page.one("#banner", "Connection lost")
    with Canned(rate=100, total=30, port=port, run="second"):
        until(lambda: page.received() == 30, "the matches of the other run")


def test_a_token_is_asked_once_and_kept_for_the_tab(page: Page) -> None:
    with Canned(rate=1, token="sesame") as server:
        page.open(server.url)
        page.one("#token-field").send_keys("wrong", Keys.ENTER)
        assert page.one("#token-wrong", "not the token")
        page.one("#token-field").send_keys("sesame", Keys.ENTER)
        assert page.one("#queries li", "flood")
        assert "sesame" not in page.browser.current_url
        page.browser.refresh()
        assert page.one("#queries li", "flood")
        assert not page.all("#token")
        page.run("sessionStorage.clear()")


def test_shedding_and_its_recall_are_said(page: Page) -> None:
    with Canned(rate=5) as server:
        page.open(server.url)
        assert page.one(".tiles div", "1,234").text.startswith("Shedding")
        assert "87 %" in page.one(".tiles div", "Recall").text


def test_the_automaton_has_its_counts(page: Page) -> None:
    with Canned(rate=5) as server:
        page.open(server.url)
        until(lambda: len(page.texts(".automaton .state")) == 3, "the states")
        until(lambda: any("×" in text for text in page.texts(".automaton .taken")), "the counts of edges")
        assert page.texts(".automaton .accepting .number") == ["2"]


def test_light_and_dark(page: Page) -> None:
    def paper() -> int:
        colour: str = page.run("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgba()").split(",")[:3])

    def system(scheme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    with Canned(rate=1) as server:
        system("dark")
        page.open(server.url)
        until(lambda: paper() < 200, "the system's dark")
        system("light")
        until(lambda: paper() > 600, "the system's light")
        page.click("#theme")
        page.click("#theme")
        until(lambda: paper() < 200, "dark by choice")
        page.browser.refresh()
        until(lambda: page.run("return document.documentElement.dataset.theme") == "dark", "the kept choice")
        assert paper() < 200
        page.click("#theme")
        until(lambda: paper() > 600, "the system's again")
        system("")


def test_by_keyboard_alone(page: Page) -> None:
    def press(*keys: str) -> None:
        ActionChains(page.browser).send_keys(*keys).perform()

    def focused() -> str:
        script = "const one = document.activeElement; return one.id || one.className || one.tagName"
        text: str = page.run(script)
        return text

    with Canned(rate=20) as server:
        page.open(server.url)
        until(lambda: page.received() > 3, "matches")
        press(Keys.TAB)
        assert focused() == "skip"
        press(Keys.TAB)
        assert focused() == "brand"
        press("m")
        until(
            lambda: page.run("return document.activeElement.matches('.matches button')"), "focus in the list"
        )
        press(Keys.ENTER)
        assert page.one(".detail h3", "1 event")
        press(Keys.ESCAPE)
        until(lambda: not page.all(".detail"), "the match closed")
        press("?")
        assert page.one("dialog#help", "Keyboard")
        press(Keys.ESCAPE)
        until(lambda: not page.all("dialog#help"), "the help closed")
        press("p")
        until(
            lambda: page.texts(".matches") and "Go on" in page.texts("button[title='Pause (p)']"), "a pause"
        )
        press("d")
        assert page.one("h1", "Dead letters")
        press("j")
        assert page.one("h1", "flood")
        press("n")
        until(lambda: focused() == "text", "focus in the editor")
        press("n")  # is a letter there
        until(lambda: page.run("return document.activeElement.value.includes('n')"), "the letter")
