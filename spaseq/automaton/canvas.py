"""What drawings as SVG share: arrows, labels, the document around them. All lengths are in pixels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

CHARACTER: Final = 7.9
"""The width of a character of 13 px monospace text."""
LINE: Final = 16.0
"""The height of a line of text."""
LOOP_HALF: Final = 30.0
"""Half of the width of a loop."""
_MARGIN: Final = 24.0

_STYLE: Final = """<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" \
markerHeight="8" orient="auto-start-reverse"><path d="M0 1 10 5 0 9z" fill="#475569"/></marker></defs>
<style>
  .ground { fill: #ffffff }
  .state { fill: #f8fafc; stroke: #334155; stroke-width: 1.6 }
  .accept { fill: #ecfdf5; stroke: #047857 }
  .edge { fill: none; stroke: #475569; stroke-width: 1.4; marker-end: url(#head) }
  text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #0f172a;
         text-anchor: middle }
  .number { fill: #334155 }
  .ending { fill: #047857 }
</style>"""

#: Text that begins where it stands.
_CAPTION: Final = "<style>.caption { text-anchor: start }</style>"
_SIZE: Final = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')

#: x to the right, y downwards.
Point = tuple[float, float]
#: Left, top, right, bottom.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Drawn:
    """SVG of one thing: its lines, the texts above all lines, and the boxes they fill."""

    lines: str
    texts: str
    boxes: tuple[Box, ...]


def document(title: str, arrows: Sequence[Drawn], places: Sequence[Drawn]) -> str:
    """An SVG document as large as what is drawn; places cover arrows, and texts everything."""
    boxes = [box for drawn in (*arrows, *places) for box in drawn.boxes]
    left = min(box[0] for box in boxes) - _MARGIN
    top = min(box[1] for box in boxes) - _MARGIN
    width = max(box[2] for box in boxes) + _MARGIN - left
    height = max(box[3] for box in boxes) + _MARGIN - top
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" role="img">',
            f"<title>{escape(title)}</title>",
            _STYLE,
            _ground(left, top, width, height),
            *(drawn.lines for drawn in arrows),
            *(drawn.lines for drawn in places),
            *(drawn.texts for drawn in (*arrows, *places)),
            "</svg>",
            "",
        ]
    )


def below(drawings: Sequence[tuple[Sequence[str], str]]) -> str:
    """Documents that ``document`` made, one below the other, each under some lines of text."""
    parts: list[str] = []
    top = width = 0.0
    for lines, drawing in drawings:
        found = _SIZE.search(drawing)
        assert found is not None  # as ``document`` writes it
        for line in lines:
            top += LINE
            text = escape(line).replace(" ", "\u00a0")  # columns stay columns
            parts.append(f'<text class="caption" x="{_MARGIN:.0f}" y="{top + 4:.1f}">{text}</text>')
            width = max(width, len(line) * CHARACTER + 2 * _MARGIN)
        # One style and one arrow's head are for all.
        inner = drawing.replace(_STYLE, "").replace("<svg ", f'<svg y="{top + 8:.1f}" ', 1)
        parts.append(inner.rstrip())
        top += float(found[2]) + LINE
        width = max(width, float(found[1]))
    size = f'width="{width:.0f}" height="{top:.0f}" viewBox="0 0 {width:.0f} {top:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, _STYLE, _CAPTION, _ground(0, 0, width, top), *parts, "</svg>", ""])


def loop(place: Point, top: float, lines: Sequence[str]) -> Drawn:
    """An arrow from a place to itself, above it: ``top`` is half of the place's height."""
    x, y = place
    away = f"{x - LOOP_HALF:.1f} {y - top - 42:.1f} {x + LOOP_HALF:.1f} {y - top - 42:.1f}"
    path = f"M{x - 11:.1f} {y - top + 3:.1f}C{away} {x + 11:.1f} {y - top + 3:.1f}"
    return labelled(path, lines, (x, y - top - 38), (x - LOOP_HALF, y - top - 32, x + LOOP_HALF, y))


def labelled(path: str, lines: Sequence[str], bottom: Point, box: Box) -> Drawn:
    """A curve with its labels stacked upwards from ``bottom``."""
    x, y = bottom
    texts = [
        f'<text x="{x:.1f}" y="{y - LINE * (len(lines) - 1 - i):.1f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    half = max(map(len, lines)) * CHARACTER / 2
    height = LINE * len(lines)
    written = (x - half, y - height, x + half, y)
    # A patch of ground, so that a curve behind the text does not cross it out.
    patch = _ground(x - half, y - height + 3, 2 * half, height)
    return Drawn(f'<path class="edge" d="{path}"/>', "\n".join([patch, *texts]), (box, written))


def _ground(x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="ground" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
