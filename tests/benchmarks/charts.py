"""Measurements of ``sharp`` as SVG: a panel for each query and kind of bound, a line for each policy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from tests.benchmarks.measure import Measurement

_CASE: Final = re.compile(r"(?P<what>.+), (?P<x>[\d%,]+) of the (?P<bound>\w+), (?P<policy>[\w-]+)$")
_COLOURS: Final = ("#1b6ca8", "#c8553d", "#588157", "#7a5c99")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BESIDE = 300, 210, 40, 28, 3
_PLOT_WIDTH, _PLOT_HEIGHT = 240, 130


@dataclass(slots=True)
class Panel:
    """One chart: of each line, the height from 0 to 1 at each place of ``places``."""

    title: str
    places: list[str] = field(default_factory=list)
    lines: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, line: str, place: str, height: float) -> None:
        """A point of a line."""
        if place not in self.places:
            self.places.append(place)
        self.lines.setdefault(line, {})[place] = height


def panels(measured: Iterable[Measurement]) -> list[Panel]:
    """The panels, in the order of what was measured first."""
    found: dict[str, Panel] = {}
    for one in measured:
        case = _CASE.fullmatch(one.case)
        if case is None:
            continue
        for name in ("recall", "accuracy"):
            if name in one.facts:
                title = f"{case['what']}: {name} by {case['bound']}"
                found.setdefault(title, Panel(title)).add(case["policy"], case["x"], one.facts[name])
    return list(found.values())


def svg(charts: Sequence[Panel]) -> str:
    """Panels beside each other, some in a row."""
    width, height = _BESIDE * _WIDTH, -(-len(charts) // _BESIDE) * _HEIGHT
    drawn = [_drawn(panel, i % _BESIDE * _WIDTH, i // _BESIDE * _HEIGHT) for i, panel in enumerate(charts)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _drawn(panel: Panel, left: int, top: int) -> str:
    said = [f'<g transform="translate({left + _LEFT},{top + _TOP})">', _text(0, -12, panel.title)]
    for part in (0.0, 0.5, 1.0):
        y = _PLOT_HEIGHT * (1 - part)
        said.append(f'<line x1="0" x2="{_PLOT_WIDTH}" y1="{y}" y2="{y}" stroke="#ccc"/>')
        said.append(_text(-36, y + 4, f"{part:.0%}"))
    step = _PLOT_WIDTH / max(1, len(panel.places))
    at = {place: (i + 0.5) * step for i, place in enumerate(panel.places)}
    said += [_text(x - 12, _PLOT_HEIGHT + 16, place) for place, x in at.items()]
    for number, (line, heights) in enumerate(panel.lines.items()):
        said.append(_line(heights, at, _COLOURS[number % len(_COLOURS)]))
        said.append(_text(number % 2 * 120, _PLOT_HEIGHT + 32 + number // 2 * 13, line, number))
    return "\n".join([*said, "</g>"])


def _line(heights: Mapping[str, float], at: Mapping[str, float], colour: str) -> str:
    points = [(at[place], _PLOT_HEIGHT * (1 - height)) for place, height in heights.items()]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5"/>{dots}'


def _text(x: float, y: float, text: str, number: int | None = None) -> str:
    fill = "#222" if number is None else _COLOURS[number % len(_COLOURS)]
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}">{escape(text)}</text>'
