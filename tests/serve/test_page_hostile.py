"""The page in a real browser, over a server that has what outsiders sent: long, large, and oddly named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("selenium", reason="selenium drives the browser: pip install 'spaseq[test]'")

from tests.serve.browser import Page, chromium, until
from tests.serve.running import running

QUERY = """SELECT ?x ?constructor ?__proto__ WITHIN 5 SECONDS SLIDING FROM STREAM S <http://example.org/S>
WHERE { SEQ(A) DEFINE GPM A ON S {
  ?x <urn:p> ?__proto__ OPTIONAL { ?x <urn:constructor> ?constructor } } }"""

#: 2^53 + 1, which is no double.
TICK = 9007199254740993

#: A script that puts a text into the editor.
TYPED = """
    const area = document.querySelector("textarea"), mirror = document.querySelector(".mirror");
    area.value = arguments[0];
    area.dispatchEvent(new Event("input"));
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as driver:
        yield Page(driver)


@pytest.mark.slow
def test_what_others_sent_is_shown(page: Page) -> None:
    with running() as server:
        odd, large = server.register(QUERY, "odd"), server.register(QUERY.replace("/S>", "/L>"), "large")
        body = "<urn:a> <urn:p> 1 ; <urn:constructor> 2 . <urn:b> <urn:p> 3 ."
        for tick in (TICK, TICK + 2):
            sent = server.http.post(
                "/streams/http%3A%2F%2Fexample.org%2FS",
                content=body,
                params={"time": tick},
                headers={"Content-Type": "text/turtle"},
            )
            assert sent.status_code == 200, sent.text

        # A name that is no UTF-8.
        page.open(f"{server.url}/#/query/%E0")
        assert page.one(".welcome", "no such query")
        until(lambda: page.texts("#link") == ["live"], "the connection")

        # Ticks beyond 2^53.
        page.open(f"{server.url}/#/query/{odd}")
        until(lambda: page.received() == 2, "the matches")
        until(lambda: len(page.texts(".matches tbody time")) == 2, "their lines")
        assert page.texts(".matches tbody time") == [f"tick {TICK + 2}", f"tick {TICK}"]
        assert page.one(".timeline-box p", f"tick {TICK} to tick {TICK + 2}")
        assert page.one(".tiles div", f"tick {TICK + 2}")

        # Names of properties that every object has.
        page.click(".matches tbody button")
        assert page.one(".detail h3", "1 event")
        names, cells = page.texts(".detail thead th"), page.texts(".detail tbody td")
        shown = [dict(zip(names, cells[at : at + 3], strict=True)) for at in (0, 3)]
        assert sorted(shown, key=lambda row: row["?x"]) == [
            {"?x": "a", "?__proto__": "1", "?constructor": "2"},
            {"?x": "b", "?__proto__": "3", "?constructor": ""},
        ]
        assert f"tick {TICK + 2}" in page.one(".detail .facts").text

        # Matches of a megabyte each.
        literal = "x" * 1_000_000
        for tick in range(40):
            sent = server.http.post(
                "/streams/http%3A%2F%2Fexample.org%2FL",
                content=f"<urn:a> <urn:p> '{literal}' .",
                params={"time": tick},
                headers={"Content-Type": "text/turtle"},
            )
            assert sent.status_code == 200, sent.text
        page.open(f"{server.url}/#/query/{large}")
        until(lambda: page.received() == 40, "the large matches")
        until(lambda: len(page.texts(".matches tbody tr")) == 40, "a line each")
        assert page.run("return document.querySelector('.matches').textContent.length") < 40 * 400
        page.click(".matches tbody button")
        assert page.one(".detail h3", "1 event")
        assert page.run("return document.querySelector('.detail').textContent.length") < 300_000

        # A word of 300,000 letters, and what begins many strings that do not end.
        page.click("a#new-query")
        for text in ("a" * 300_000, "a" * 90_000, '\\"' * 45_000, "1" * 90_000 + "a"):
            assert page.run(f"{TYPED} return mirror.textContent.trimEnd() === arguments[0]", text)
        words = """return [...mirror.querySelectorAll('.line > *')]
            .map((one) => `${one.className} ${one.textContent}`)"""
        assert page.run(f"{TYPED} {words}", "SELECT ?a-5 :b c:d-e within 1.5 # f\n<urn:g> 'h' \"i") == [
            "t-keyword SELECT",
            "t-variable ?a",
            "t-figure 5",
            "t-name :b",
            "t-name c:d-e",
            "t-keyword within",
            "t-figure 1.5",
            "t-comment # f",
            "t-iri <urn:g>",
            "t-string 'h'",
            't-string "i',
        ]
        page.run("sessionStorage.clear()")
        assert page.errors() == []

        # A drawing has its style.
        page.browser.get(f"{server.url}/queries/{odd}/explain?format=svg")
        assert page.run("return document.styleSheets.length") > 0
        assert page.errors() == []
