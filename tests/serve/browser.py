"""A headless Chromium for the tests of the page, and waiting for what it shows."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import pytest
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement

T = TypeVar("T")

#: Seconds until a test gives up waiting: machines may be slow, and kernels compiled first.
PATIENCE = 120.0


#: A drawn graph may be scrolled; what only screen readers see may be cut.
_OVERFLOWING = """
const found = [];
const say = (one, what) =>
  found.push(`${one.tagName}.${one.getAttribute("class")} ${what}: ${one.textContent.slice(0, 60)}`);
const inside = (one, box) =>
  Math.min(one.left - box.left, box.right - one.right, one.top - box.top, box.bottom - one.bottom) > -1;
const page = document.documentElement;
if (page.scrollWidth > innerWidth) say(page, `${page.scrollWidth} px`);
for (const one of document.querySelectorAll("body *:not(svg *)")) {
  if (!one.checkVisibility() || one.matches(".sr, .skip, .drawn")) continue;
  const { overflowY, textOverflow, webkitLineClamp } = getComputedStyle(one);
  const { clientWidth, scrollWidth, clientHeight, scrollHeight } = one;
  if (clientWidth && scrollWidth > clientWidth) say(one, `${scrollWidth} > ${clientWidth} px`);
  if (overflowY === "hidden" && scrollHeight > clientHeight) say(one, `${scrollHeight} px high`);
  if (textOverflow === "ellipsis" || webkitLineClamp !== "none") say(one, "has an ellipsis");
}
for (const drawing of document.querySelectorAll("svg.automaton, svg.graph")) {
  const box = drawing.getBoundingClientRect();
  const around = drawing.parentElement.getBoundingClientRect();
  if (!drawing.closest(".drawn") && !inside(box, around)) say(drawing, "is outside");
  for (const text of drawing.querySelectorAll("text")) {
    const own = text.getBoundingClientRect();
    if (own.width && !inside(own, box)) say(text, "is outside");
  }
}
return found;
"""


@contextmanager
def chromium() -> Iterator[Chrome]:
    """The browser; skips where Debian's Chromium or its driver is not installed, or does not start.

    There is one at a time, whichever process of the tests has it: it takes all cores itself.
    """
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("there is no chromium and chromedriver here: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-gpu",
        "--window-size=1440,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with Path(tempfile.gettempdir(), "spaseq-tests-browser").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        try:
            browser = Chrome(options=options, service=Service(driver))
        except WebDriverException as error:
            pytest.skip(f"the chromium that is here does not start: {error.msg}")
        try:
            browser.set_page_load_timeout(PATIENCE)
            browser.set_script_timeout(PATIENCE)
            yield browser
        finally:
            browser.quit()


def until(seen: Callable[[], T], what: str) -> T:
    """What ``seen`` returns as soon as that is true."""
    end = monotonic() + PATIENCE
    last: object = None
    while True:
        try:
            last = found = seen()
            if found:
                return found
        except (StaleElementReferenceException, IndexError) as error:  # it is drawn anew just now
            last = error
        if monotonic() > end:
            raise AssertionError(f"waited {PATIENCE:.0f} s in vain for {what}; last: {last!r}")
        sleep(0.1)


class Page:
    """The page in a browser, as somebody sees and uses it."""

    def __init__(self, browser: Chrome) -> None:
        self.browser = browser

    def open(self, url: str) -> None:
        """Loads it anew, without what it kept."""
        self.browser.get("about:blank")
        self.browser.get(url)

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a script."""
        return self.browser.execute_script(script, *arguments)

    def all(self, selector: str, having: str = "") -> list[WebElement]:
        """The elements that are shown and have a text, found all at one time."""
        found: list[WebElement] = self.run(
            "return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility() "
            "&& one.innerText.includes(arguments[1]))",
            selector,
            having,
        )
        return found

    def one(self, selector: str, having: str = "") -> WebElement:
        """The first of them, as soon as there is one."""
        return until(lambda: next(iter(self.all(selector, having)), None), f"{selector} with {having!r}")

    def texts(self, selector: str) -> list[str]:
        """What elements say, all at one time."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        found: list[str] = self.run(script, selector)
        return found

    def click(self, selector: str, having: str = "") -> None:
        """A click on what may still be moving."""

        def clicked() -> bool:
            try:
                self.one(selector, having).click()
            except StaleElementReferenceException:
                raise
            except WebDriverException as error:
                if "intercepted" in str(error) or "interactable" in str(error):
                    return False
                raise
            return True

        until(clicked, f"a click on {selector}")

    def number(self, selector: str) -> int:
        """The first number in what an element says; 0 if there is none yet."""
        text = next(iter(self.texts(selector)), "").replace(",", "")
        digits = text.split(" ", 1)[0]
        if digits.endswith("K"):
            return int(float(digits[:-1]) * 1000)
        return int(digits) if digits.isdecimal() else 0

    def received(self) -> int:
        """How many matches the page has had of the query that it shows."""
        return int(self.run("return document.querySelector('.matches')?.dataset.received ?? 0"))

    def overflowing(self) -> list[str]:
        """What is wider than its box, or cut by it; of drawings also what is outside."""
        found: list[str] = self.run(_OVERFLOWING)
        return found

    def size(self, width: int, height: int = 900) -> None:
        """Gives the page a size; a window is never as narrow as a phone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def errors(self) -> list[str]:
        """What the console has of errors since it was last asked; answers that refuse something are none."""
        return [
            str(entry["message"])
            for entry in self.browser.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING") and entry["source"] != "network"
        ]
