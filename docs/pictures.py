"""The pictures of the page: ``python docs/pictures.py`` plays the demo and takes them, light and dark.

Needs chromium, chromedriver, selenium and Pillow.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

FOLDER = Path(__file__).parent / "pictures"

#: Width and height of a window, and seconds for something to come about.
WIDE, NARROW = (1440, 1010), (420, 900)
PATIENCE = 180.0

MISTAKE = "FILTER(?p2 < PREV(?p3x))"


def main() -> None:
    """Writes one picture after the other."""
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-c", "import spaseq.cli; spaseq.cli.main()", "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().split()[-1]
            browser = started()
            try:
                taken(browser, url)
            finally:
                browser.quit()
        finally:
            server.terminate()


def started() -> Chrome:
    """The browser."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    return Chrome(options=options, service=Service(shutil.which("chromedriver")))


def taken(browser: Chrome, url: str) -> None:
    """All pictures."""
    run = browser.execute_script
    size(browser, WIDE)
    browser.get(url)
    click(browser, "#queries a", "stocks")
    until(lambda: len(run("return document.querySelectorAll('.matches tbody tr')")) > 15, "matches")
    until(lambda: run("return document.querySelectorAll('.automaton .taken').length") > 3, "the automaton")
    themed(browser, "query")
    click(browser, ".matches tbody button", "")
    until(lambda: run("return document.querySelectorAll('.detail .graph').length") > 2, "graphs")
    run("scrollTo(0, document.querySelector('.detail').offsetTop - 450)")
    themed(browser, "match")
    click(browser, ".title button", "Copy to editor")
    run(
        "const area = document.getElementById('text');"
        "area.value = area.value.replace('FILTER(?p2 < PREV(?p2))', arguments[0]);"
        "area.dispatchEvent(new Event('input'))",
        MISTAKE,
    )
    until(lambda: run("return !!document.querySelector('.bubble')"), "the mistake")
    themed(browser, "editor")
    click(browser, "#letters-link", "")
    until(lambda: run("return document.querySelectorAll('.letters li').length") > 1, "dead letters")
    themed(browser, "letters")
    size(browser, NARROW)
    click(browser, "#queries a", "stocks")
    until(lambda: len(run("return document.querySelectorAll('.automaton')")) > 0, "the automaton")
    themed(browser, "narrow")


def size(browser: Chrome, of: tuple[int, int]) -> None:
    """The size of what is shown."""
    width, height = of
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def themed(browser: Chrome, name: str) -> None:
    """The same twice, light and dark, in few colours: that is enough, and small."""
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        time.sleep(1)  # for the canvas to be drawn in its colours
        picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
        path = FOLDER / f"page-{name}-{scheme}.png"
        picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        print(path, path.stat().st_size)


def click(browser: Chrome, selector: str, text: str) -> None:
    """Clicks on the first element that has a text, as soon as there is one."""
    script = (
        "const one = [...document.querySelectorAll(arguments[0])].find((each) => "
        "each.textContent.trim().startsWith(arguments[1])); one?.click(); return !!one"
    )
    until(lambda: bool(browser.execute_script(script, selector, text)), f"{text or selector}")


def until(seen: Callable[[], bool], what: str) -> None:
    """Waits for something."""
    end = time.monotonic() + PATIENCE
    while not seen():
        if time.monotonic() > end:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
