"""What an SVG of ours shows, as boxes: labels, places, heads of arrows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import hypot
from xml.etree import ElementTree

Box = tuple[float, float, float, float]

_SVG = "{http://www.w3.org/2000/svg}"

#: A character of 13 px monospace text, and how far its line reaches above and below the base line.
_CHARACTER, _ASCENT, _DESCENT = 7.9, 12.0, 3.0
#: The marker: 8 × the width of a stroke, of which 9/10 lie before the arrow's end.
_BACK, _FORTH, _ASIDE = 10.1, 1.1, 4.5


@dataclass(frozen=True)
class Shown:
    """A thing in a picture."""

    kind: str
    what: str
    box: Box

    def __str__(self) -> str:
        return f"{self.kind} {self.what} {tuple(round(x) for x in self.box)}"


def shown(svg: str) -> list[Shown]:
    """The labels, places and heads of arrows, and the ground (all of the picture)."""
    return list(_things(ElementTree.fromstring(svg)))


def hidden(svg: str) -> list[str]:
    """What is wrong in a picture: labels that lie over other labels, over places or over heads."""
    found = shown(svg)
    wrong = [
        f"{a} over {b}"
        for a, b in combinations(found, 2)
        if "label" in (a.kind, b.kind) and _overlap(a.box, b.box)
    ]
    left, top, width, height = map(float, ElementTree.fromstring(svg).attrib["viewBox"].split())
    return wrong + [
        f"{thing} is cut off"
        for thing in found
        if not (
            left <= thing.box[0]
            and top <= thing.box[1]
            and thing.box[2] <= left + width
            and thing.box[3] <= top + height
        )
    ]


def _overlap(a: Box, b: Box) -> bool:
    slack = 0.2  # numbers are written with one digit
    return a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack


def _things(root: ElementTree.Element) -> Iterator[Shown]:
    places = []
    for n, circle in enumerate(root.iter(f"{_SVG}circle")):
        x, y, r = (float(circle.attrib[name]) for name in ("cx", "cy", "r"))
        places.append((x - r, y - r, x + r, y + r))
        yield Shown("place", f"#{n}", places[-1])
    for n, rect in enumerate(root.iter(f"{_SVG}rect")):
        if "state" in rect.attrib["class"]:
            x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            places.append((x, y, x + w, y + h))
            yield Shown("place", f"[{n}]", places[-1])
    lines: list[tuple[str, Box]] = []
    for text in root.iter(f"{_SVG}text"):
        x, y, half = float(text.attrib["x"]), float(text.attrib["y"]), len(text.text or "") * _CHARACTER / 2
        box = (x - half, y - _ASCENT, x + half, y + _DESCENT)
        if not any(p[0] <= x <= p[2] and p[1] < y < p[3] for p in places):  # else it is the place's own name
            lines.append((text.text or "", box))
    yield from (Shown("label", what, box) for what, box in lines)
    for path in root.iter(f"{_SVG}path"):
        if path.attrib.get("class") == "edge":
            yield Shown("head", path.attrib["d"][:20], _head(path.attrib["d"]))


def _head(path: str) -> Box:
    """Where the head of an arrow lies, which points where its curve ends."""
    points: list[tuple[float, float]] = []
    for kind, text in re.findall(r"([MLCH])([^MLCH]+)", path):
        numbers = [float(number) for number in text.split()]
        if kind == "H":
            points.append((numbers[0], points[-1][1]))
        else:
            points += zip(numbers[::2], numbers[1::2], strict=True)
    (x, y) = points[-1]
    a, b = next(point for point in reversed(points) if point != (x, y))
    length = hypot(x - a, y - b)
    dx, dy = (x - a) / length, (y - b) / length
    corners = [
        (x + along * dx + aside * dy, y + along * dy - aside * dx)
        for along in (-_BACK, _FORTH)
        for aside in (-_ASIDE, _ASIDE)
    ]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)
