"""The tables of events and matches in language.md → docs/traces/*.svg: a drawing of each section's rows.

python docs/traces.py      draws them; each match is a line below the events, with a dot on those it has
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
PAGE: Final = FOLDER / "language.md"
PICTURES: Final = FOLDER / "traces"

_ROW: Final = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| ([^|]+) \|$", re.MULTILINE)
_EVENT: Final = re.compile(r"([a-z])(\d+)")

LEFT, TICK, RIGHT = 16, 52, 30
PAGE_WIDTH = 800
#: From a row's top: to its sequence, to its events, to its first match, and from one match to the next.
TITLE, EVENTS, MATCHES, MATCH = 16, 44, 74, 15

_HEAD: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>{title}</title>
<style>
svg {{ background: #fff }}
text {{ font: 12px system-ui, sans-serif; fill: #4a5568; text-anchor: middle }}
.seq {{ font: 600 14px monospace; fill: #1a2233; text-anchor: start }}
.none {{ text-anchor: start; font-style: italic }}
.time {{ stroke: #c3cad6; stroke-width: 1.5 }}
.cut {{ stroke: #c0392b; stroke-width: 1.5; stroke-dasharray: 4 3 }}
.match {{ stroke: #2b6cb0; stroke-width: 2 }}
.dot {{ fill: #2b6cb0 }}
circle {{ stroke: #5b6b86; fill: #f4f6fa }}
.a {{ fill: #cfe3f7 }}
.b {{ fill: #fde2c4 }}
.c {{ fill: #d5edcf }}
.d {{ fill: #eadcf4 }}
</style>"""


def sections(text: str) -> dict[str, list[tuple[str, str, str]]]:
    """The rows of each section that has some: events, sequence, matches."""
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        if rows := _ROW.findall(body.replace("\\|", "¦")):
            found[title] = [tuple(cell.replace("¦", "|").strip() for cell in row) for row in rows]
    return found


def name(title: str) -> str:
    """The file of a section's drawing."""
    return re.sub(r"\W+", "-", title.lower()) + ".svg"


def drawing(title: str, rows: list[tuple[str, str, str]]) -> str:
    """A section's rows: as many beside each other as a page has room for."""
    last = max(int(tick) for events, _, _ in rows for _, tick in _EVENT.findall(events))
    longest = max(len(sequence) for _, sequence, _ in rows)
    width = max(LEFT + last * TICK, LEFT + 9 * longest) + RIGHT
    columns = min(max(1, PAGE_WIDTH // width), len(rows))
    parts, top = list[str](), 0
    for first in range(0, len(rows), columns):
        most = 1
        for column, (events, sequence, matches) in enumerate(rows[first : first + columns]):
            told = [] if matches == "none" else matches.split(", ")
            inner = "\n".join(_row(events, sequence, told, width))
            parts.append(f'<g transform="translate({column * width},{top})">\n{inner}\n</g>')
            most = max(most, len(told))
        top += MATCHES + MATCH * most + 14
    return "\n".join(
        [_HEAD.format(width=columns * width, height=top, title=escape(title)), *parts, "</svg>", ""]
    )


def _row(events: str, sequence: str, matches: list[str], width: int) -> list[str]:
    axis, y = EVENTS, MATCHES
    parts = [
        f'<text class="seq" x="{LEFT}" y="{TITLE}">{escape(sequence)}</text>',
        f'<line class="time" x1="{LEFT}" x2="{width - 10}" y1="{axis}" y2="{axis}"/>',
    ]
    for x in _cuts(events, sequence):
        parts.append(f'<line class="cut" x1="{x}" x2="{x}" y1="{axis - 18}" y2="{axis + 18}"/>')
    for kind, tick in _EVENT.findall(events):
        x = _x(tick)
        parts += [
            f'<circle class="{kind}" cx="{x}" cy="{axis}" r="11"/>',
            f'<text x="{x}" y="{axis + 4}">{kind}{tick}</text>',
        ]
    if not matches:
        parts.append(f'<text class="none" x="{LEFT}" y="{y + 4}">no match</text>')
    for match in matches:
        places = [_x(tick) for _, tick in _EVENT.findall(match)]
        parts.append(f'<line class="match" x1="{places[0]}" x2="{places[-1]}" y1="{y}" y2="{y}"/>')
        parts += [f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>' for x in places]
        y += MATCH
    return parts


def _cuts(events: str, sequence: str) -> list[int]:
    """Where tumbling windows end, halfway between two ticks or two events."""
    if not (window := re.search(r"WITHIN (\d+) (SECONDS|EVENTS) TUMBLING", sequence)):
        return []
    size, ticks = int(window[1]), [int(tick) for _, tick in _EVENT.findall(events)]
    if window[2] == "SECONDS":
        return [_x(tick) - TICK // 2 for tick in range(ticks[0] + size, ticks[-1] + 1, size)]
    return [(_x(ticks[i - 1]) + _x(ticks[i])) // 2 for i in range(size, len(ticks), size)]


def _x(tick: str | int) -> int:
    return LEFT + int(tick) * TICK - TICK // 2


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for title, rows in sections(PAGE.read_text(encoding="utf-8")).items():
        (PICTURES / name(title)).write_text(drawing(title, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
