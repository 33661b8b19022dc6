"""SVG drawings: common parts, and the layout of places in layers and rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

# Parts of all SVG drawings: arrows, labels, the document. All lengths are in pixels.

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

#: Text that starts at its position.
_CAPTION: Final = "<style>.caption { text-anchor: start }</style>"
_SIZE: Final = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')

#: x to the right, y downwards.
Point = tuple[float, float]
#: Left, top, right, bottom.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The SVG of one item: its lines, the texts above all lines, and the boxes they fill."""

    lines: str
    texts: str
    boxes: tuple[Box, ...]


def document(title: str, arrows: Sequence[Drawn], places: Sequence[Drawn]) -> str:
    """Return an SVG document of the size of its content. Places hide arrows; texts are above everything."""
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
    """Return documents of ``document``, one below the other, each under some lines of text."""
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
        # All drawings share one style and one arrow head.
        inner = drawing.replace(_STYLE, "").replace("<svg ", f'<svg y="{top + 8:.1f}" ', 1)
        parts.append(inner.rstrip())
        top += float(found[2]) + LINE
        width = max(width, float(found[1]))
    size = f'width="{width:.0f}" height="{top:.0f}" viewBox="0 0 {width:.0f} {top:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, _STYLE, _CAPTION, _ground(0, 0, width, top), *parts, "</svg>", ""])


def loop(place: Point, top: float, lines: Sequence[str]) -> Drawn:
    """Return an arrow from a place to itself, above it: ``top`` is half of the place's height."""
    x, y = place
    away = f"{x - LOOP_HALF:.1f} {y - top - 42:.1f} {x + LOOP_HALF:.1f} {y - top - 42:.1f}"
    path = f"M{x - 11:.1f} {y - top + 3:.1f}C{away} {x + 11:.1f} {y - top + 3:.1f}"
    return labelled(path, lines, (x, y - top - 38), (x - LOOP_HALF, y - top - 32, x + LOOP_HALF, y))


def labelled(path: str, lines: Sequence[str], bottom: Point, box: Box) -> Drawn:
    """Return a curve with its labels stacked upwards from ``bottom``."""
    x, y = bottom
    texts = [
        f'<text x="{x:.1f}" y="{y - LINE * (len(lines) - 1 - i):.1f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    half = max(map(len, lines)) * CHARACTER / 2
    height = LINE * len(lines)
    written = (x - half, y - height, x + half, y)
    # A background patch, so that a curve behind the text does not cross it out.
    patch = _ground(x - half, y - height + 3, 2 * half, height)
    return Drawn(f'<path class="edge" d="{path}"/>', "\n".join([patch, *texts]), (box, written))


def _ground(x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="ground" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


# Where the places of a drawing go: layers from left to right, rows near those of their neighbours.
#
# Sugiyama's steps. An arrow that skips layers has a dummy place in each layer between. Layers are ordered by
# the means of their neighbours, and the order with the fewest crossings is kept. Rows are as near to their
# neighbours' as the order allows (least squares, by pooling adjacent violators). All lengths are in pixels.

#: A pair of places, by their numbers: from, to.
Pair = tuple[int, int]

#: The height of a loop above its place, without its labels.
LOOP: Final = 34.0
#: The least distance between places of a layer.
_ROW: Final = 22.0
#: How far an arrow between places of the same layer swings out, at least.
_BULGE: Final = 26.0
#: The length of an arrow head.
_HEAD: Final = 16.0
#: The space on either side of a label on an arrow.
_BESIDE: Final = 14.0
#: The least width between layers where arrows are not level, and the most that steep arrows get.
_CURVE: Final = 48.0
_WIDEST: Final = 120.0
#: Half the height of an arrow that passes a layer.
_PASSING: Final = 6.0
_SWEEPS: Final = 8


@dataclass(frozen=True, slots=True)
class DrawnPlace:
    """A box or a circle: its layer, half of its width, half of its height, and the text below it.

    ``below`` is the height of that text, and ``under`` half of its width.
    """

    layer: int
    half: float
    tall: float
    circle: bool = False
    below: float = 0.0
    under: float = 0.0


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a layer: a place, or an arrow that passes."""

    layer: int
    above: float
    below: float


class Layers:
    """Places in layers, and their positions.

    ``chains``: for each arrow except loops, its items from left to right: its places, and between them one
    for each layer that it skips. ``meeting``: the arrows on the left (False) and the right of each place.
    ``y``: the middle of each item. ``left``, ``right``: where each layer begins and ends. Arrows are level
    for ``after`` behind a layer and for ``before`` in front of the next, so that there is room for their
    labels. ``room`` adds space beyond what a usual drawing needs.
    """

    def __init__(
        self, places: Sequence[DrawnPlace], labels: Mapping[Pair, Sequence[str]], room: int = 0
    ) -> None:
        self.places = places
        self._labels = labels
        self._row = _ROW * (1 + room / 2)
        self._curve = _CURVE * (1 + room)
        self._items = [self._item(i) for i in range(len(places))]
        self.chains = {(a, b): self._chain(a, b) for a, b in labels if a != b}
        self._links = [
            (a, b)
            for chain in self.chains.values()
            for a, b in pairwise(chain)
            if self.layer(a) != self.layer(b)
        ]
        self.meeting: dict[tuple[int, bool], list[Pair]] = {}
        for pair, (low, *_, high) in self.chains.items():
            self.meeting.setdefault((low, True), []).append(pair)
            self.meeting.setdefault((high, self.layer(low) == self.layer(high)), []).append(pair)
        self._earlier: list[list[int]] = [[] for _ in self._items]
        self._later: list[list[int]] = [[] for _ in self._items]
        for a, b in self._links:
            self._later[a].append(b)
            self._earlier[b].append(a)
        self._order = self._ordered()
        self.y = self._rows()
        self.after, self.before = self._level()
        self.left, self.right = self._columns()

    def layer(self, item: int) -> int:
        """Return the layer of an item."""
        return self._items[item].layer

    def centre(self, place: int) -> Point:
        """Return the middle of a place."""
        layer = self.layer(place)
        return (self.left[layer] + self.right[layer]) / 2, self.y[place]

    def quiet(self, pair: Pair) -> int:
        """Return at which end fewer other arrows meet this one's place: left (-1), right (1), neither (0).

        If no other arrow meets either place, return 1 for an arrow that is not level, and 0 for a level one.
        """
        low, *_, high = self.chains[pair]
        if self.layer(low) == self.layer(high):
            return 0
        left, right = len(self.meeting[low, True]), len(self.meeting[high, False])
        if left == right == 1:
            return int(abs(self.y[low] - self.y[high]) > 1)
        return (left > right) - (left < right)

    def aside(self, a: int, b: int) -> float:
        """Return how far an arrow between two places of a layer swings out."""
        return _BULGE + abs(self.y[a] - self.y[b]) / 5

    def _item(self, number: int) -> _Item:
        """Return the space of a place, with its loop, and the labels of its arrows beside it."""
        place = self.places[number]
        lines = [len(found) for (a, b), found in self._labels.items() if a != b and number in (a, b)]
        half = max([place.tall, *(LINE * count / 2 for count in lines)])
        looping = self._labels.get((number, number))
        return _Item(place.layer, half + (LOOP + LINE * len(looping) if looping else 0.0), half + place.below)

    def _chain(self, a: int, b: int) -> list[int]:
        """Return the items from left to right that the arrow between two places passes."""
        low, high = sorted((a, b), key=self.layer)
        between = range(self.layer(low) + 1, self.layer(high))
        passed = [len(self._items) + i for i in range(len(between))]
        half = max(_PASSING, LINE * len(self._labels[a, b]) / 2)
        self._items += [_Item(layer, half, half) for layer in between]
        return [low, *passed, high]

    def _ordered(self) -> list[list[int]]:
        """Return the items of each layer, from top to bottom."""
        depth = max(item.layer for item in self._items) + 1
        order: list[list[int]] = [[] for _ in range(depth)]
        for i, item in enumerate(self._items):
            order[item.layer].append(i)
        best, least = order, self._crossings(order)
        for sweep in range(_SWEEPS):
            neighbours = self._later if sweep % 2 else self._earlier
            order = [list(layer) for layer in order]
            for layer in reversed(order) if sweep % 2 else order:
                at = {i: k for found in order for k, i in enumerate(found)}
                size = {i: len(found) for found in order for i in found}
                mean = {
                    i: sum((at[n] + 0.5) / size[n] for n in neighbours[i]) / len(neighbours[i])
                    if neighbours[i]
                    else (at[i] + 0.5) / size[i]
                    for i in layer
                }
                layer.sort(key=mean.__getitem__)
            crossings = self._crossings(order)
            if crossings < least:
                best, least = order, crossings
        return best

    def _crossings(self, order: list[list[int]]) -> int:
        at = {i: k for layer in order for k, i in enumerate(layer)}
        gaps: dict[int, list[Point]] = {}
        for a, b in self._links:
            gaps.setdefault(self._items[a].layer, []).append((at[a], at[b]))
        return sum(
            (a1 - a2) * (b1 - b2) < 0
            for links in gaps.values()
            for i, (a1, b1) in enumerate(links)
            for a2, b2 in links[:i]
        )

    def _rows(self) -> list[float]:
        """Return the height of each item's middle."""
        y = [0.0] * len(self._items)
        for sweep in range(2 * _SWEEPS + 1):
            # First from left to right, then in both directions in turn, finally between both neighbours.
            last = sweep == 2 * _SWEEPS
            sides = [self._earlier, self._later] if last else [self._later if sweep % 2 else self._earlier]
            for layer in reversed(self._order) if sweep % 2 else self._order:
                wished = []
                for i in layer:
                    near = [n for side in sides for n in side[i]]
                    wished.append(sum(y[n] for n in near) / len(near) if near else y[i])
                for i, place in zip(layer, self._spread(layer, wished), strict=True):
                    y[i] = place
        return y

    def _spread(self, layer: list[int], wished: list[float]) -> list[float]:
        """Return heights as near as possible to the wished ones, in order and apart."""
        items = [self._items[i] for i in layer]
        begin = [0.0]
        for upper, lower in pairwise(items):
            begin.append(begin[-1] + upper.below + self._row + lower.above)
        blocks: list[tuple[float, int]] = []
        for wish, offset in zip(wished, begin, strict=True):
            mean, count = wish - offset, 1
            while blocks and blocks[-1][0] > mean:
                other, others = blocks.pop()
                mean, count = (mean * count + other * others) / (count + others), count + others
            blocks.append((mean, count))
        level = [mean for mean, count in blocks for _ in range(count)]
        return [place + offset for place, offset in zip(level, begin, strict=True)]

    def _level(self) -> tuple[list[float], list[float]]:
        """Return how long arrows are level behind each layer, and in front of the next."""
        after, before = [_HEAD] * len(self._order), [_HEAD] * len(self._order)
        for pair, (low, *_, high) in self.chains.items():
            length = width(self._labels[pair]) + 2 * _BESIDE
            if self.layer(low) == self.layer(high):
                after[self.layer(low)] = max(after[self.layer(low)], self.aside(low, high) + length / 2)
            elif self.quiet(pair) < 0:
                after[self.layer(low)] = max(after[self.layer(low)], length)
            elif self.quiet(pair) > 0:
                before[self.layer(high) - 1] = max(before[self.layer(high) - 1], length)
        return after, before

    def _columns(self) -> tuple[list[float], list[float]]:
        """Return where each layer begins and ends."""
        wide = [
            max((2 * self.places[i].half for i in layer if i < len(self.places)), default=0.0)
            for layer in self._order
        ]
        needed = [self._curve] * len(wide)
        # The text above or below places may be wider than their layers.
        over = [0.0] * len(wide)
        for i, place in enumerate(self.places):
            half = max(place.under, width(self._labels.get((i, i), ())) / 2)
            over[place.layer] = max(over[place.layer], half - wide[place.layer] / 2)
        for layer, (one, other) in enumerate(pairwise(over)):
            needed[layer] = max(needed[layer], one + other + _BESIDE)
        for pair, lines in self._labels.items():
            layer = min(map(self.layer, pair))
            if pair[0] != pair[1] and not self.quiet(pair):
                level = self.after[layer] + self.before[layer]
                needed[layer] = max(needed[layer], width(lines) + 2 * _BESIDE - level)
        for a, b in self._links:
            steep = min(_WIDEST, abs(self.y[a] - self.y[b]) / 4)
            needed[self.layer(a)] = max(needed[self.layer(a)], steep)
        left, right = [0.0], [wide[0]]
        for layer, room in enumerate(wide[1:]):
            left.append(right[-1] + self.after[layer] + needed[layer] + self.before[layer])
            right.append(left[-1] + room)
        return left, right


def width(lines: Sequence[str]) -> float:
    """Return the width of a label."""
    return max(map(len, lines), default=0) * CHARACTER
