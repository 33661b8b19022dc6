"""The arrows of a layered drawing, and their labels.

Arrows leave and reach places at the sides. They are curves in the gaps between layers, and level where they
pass a layer, in a row of their own, so that none is behind a place. A label goes where its arrow is free: no
place, no other label, no arrow head. If there is no such point, everything is drawn again with more room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Final, TypeAlias

from spaseq.automaton.layered import (
    LINE,
    LOOP,
    LOOP_HALF,
    Box,
    Drawn,
    DrawnPlace,
    Layers,
    Pair,
    Point,
    labelled,
    loop,
    width,
)

#: A cubic Bézier curve.
_Curve: TypeAlias = tuple[Point, Point, Point, Point]

#: The distance of arrows at a place; if there is less room, they meet at one point.
_PORT: Final = 11.0
_LEAST_PORT: Final = 5.0
#: The space between an arrow and a place.
_AWAY: Final = 3.0
#: The length of an arrow head.
_HEAD_LENGTH: Final = 11.0
_HEAD_HALF: Final = 5.0
#: The space between a label and its place, for the arrow head.
_HEAD: Final = 17.0
#: The parameters on a curve where labels may be, best first.
_TRIED: Final = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
_POSSIBLE: Final = tuple(k / 24 for k in range(1, 24))
_SAMPLES: Final = 12
#: The number of attempts with more room.
_ROOMS: Final = 24


def arrows(
    places: Sequence[DrawnPlace], labels: Mapping[Pair, Sequence[str]]
) -> tuple[list[Point], list[Drawn]]:
    """Return the centres of places, and an arrow with its lines of labels for each pair of them."""
    best: tuple[float, list[Point], list[Drawn]] | None = None
    for room in range(_ROOMS):
        found = _arrows(Layers(places, labels, room), labels)
        if best is None or found[0] < best[0]:
            best = found
        if not best[0]:
            break
    assert best is not None
    return best[1:]


def _arrows(layers: Layers, labels: Mapping[Pair, Sequence[str]]) -> tuple[float, list[Point], list[Drawn]]:
    """Return how much labels hide, the centres of places, and the arrows."""
    places = layers.places
    ports = _ports(layers)
    routes = {pair: _route(layers, pair, ports) for pair in layers.chains}
    centres = [layers.centre(i) for i in range(len(places))]
    taken = [box for place, centre in zip(places, centres, strict=True) for box in _boxes(place, centre)]
    taken += [_loop_box(places[a], centres[a], labels[a, b]) for a, b in labels if a == b]
    taken += [_head(layers, pair, route) for pair, route in routes.items()]
    samples = {pair: _sampled(route) for pair, route in routes.items()}
    hidden, drawn = 0.0, []
    for (a, b), lines in labels.items():
        if a == b:
            drawn.append(loop(centres[a], places[a].tall, lines))
            continue
        route = routes[a, b]
        others = [point for pair, points in samples.items() if pair != (a, b) for point in points]
        box = _free(_ends(layers, (a, b), route, lines), route, lines, taken, others)
        hidden += _covered(box, taken)
        taken.append(box)
        path = _path(route if a == layers.chains[a, b][0] else _reversed(route))
        bottom = ((box[0] + box[2]) / 2, box[3] - 3)
        drawn.append(labelled(path, lines, bottom, _bounds(samples[a, b])))
    return hidden, centres, drawn


def _ports(layers: Layers) -> dict[tuple[Pair, int], float]:
    """Return the vertical distance of an arrow's ends from the middle of its places: arrows from above end
    above.

    Where there is no room for all, they end in the middle.
    """
    ports = {}
    for (end, _), pairs in layers.meeting.items():
        others = [
            chain[1] if chain[0] == end else chain[-2] for chain in map(layers.chains.get, pairs) if chain
        ]
        step = min(_PORT, 1.5 * layers.places[end].tall / max(len(pairs) - 1, 1))
        ordered = sorted(zip((layers.y[other] for other in others), pairs, strict=True))
        for number, (_, pair) in enumerate(ordered):
            ports[pair, end] = (number - (len(pairs) - 1) / 2) * step if step >= _LEAST_PORT else 0.0
    return ports


def _route(layers: Layers, pair: Pair, ports: Mapping[tuple[Pair, int], float]) -> list[_Curve]:
    """Return the curves of an arrow, from left to right."""
    chain = layers.chains[pair]
    low, high = chain[0], chain[-1]
    begin = _rim(layers, low, ports[pair, low], 1)
    edge = layers.right[layers.layer(low)] + _AWAY
    if layers.layer(low) == layers.layer(high):
        end = _rim(layers, high, ports[pair, high], 1)
        aside = edge + layers.aside(low, high)
        turn = ((edge, begin[1]), (aside, begin[1]), (aside, end[1]), (edge, end[1]))
        return [_line(begin, turn[0]), turn, _line(turn[3], end)]
    end = _rim(layers, high, ports[pair, high], -1)
    levels = [begin[1], *(layers.y[item] for item in chain[1:-1]), end[1]]
    route, at = list[_Curve](), begin
    for (here, there), (y1, y2) in zip(pairwise(chain), pairwise(levels), strict=True):
        layer = layers.layer(here)
        x1 = layers.right[layer] + layers.after[layer]
        x2 = layers.left[layers.layer(there)] - layers.before[layer]
        middle = (x1 + x2) / 2
        route += [_line(at, (x1, y1)), ((x1, y1), (middle, y1), (middle, y2), (x2, y2))]
        at = (x2, y2)
    return [*route, _line(at, end)]


def _rim(layers: Layers, place: int, port: float, side: int) -> Point:
    """Return the point where an arrow meets a place on its right (1) or its left (-1)."""
    x, y = layers.centre(place)
    found = layers.places[place]
    half = sqrt(found.half**2 - port**2) if found.circle else found.half
    return x + side * (half + _AWAY), y + port


def _line(a: Point, b: Point) -> _Curve:
    return a, a, b, b


def _reversed(route: Sequence[_Curve]) -> list[_Curve]:
    return [(d, c, b, a) for a, b, c, d in reversed(route)]


def _path(route: Sequence[_Curve]) -> str:
    """Return an SVG path; curves without length are left out."""
    text = f"M{_point(route[0][0])}"
    for a, b, c, d in route:
        if (a, c) == (b, d):
            text += f"L{_point(d)}" if a != d else ""
        else:
            text += f"C{_point(b)} {_point(c)} {_point(d)}"
    return text


def _point(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _at(curve: _Curve, t: float) -> Point:
    weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    x, y = (sum(w * p[axis] for w, p in zip(weights, curve, strict=True)) for axis in (0, 1))
    return x, y


def _sampled(route: Iterable[_Curve]) -> list[Point]:
    return [_at(curve, k / _SAMPLES) for curve in route for k in range(_SAMPLES + 1)]


def _bounds(points: Sequence[Point]) -> Box:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


# --- labels


def _ends(layers: Layers, pair: Pair, route: Sequence[_Curve], lines: Sequence[str]) -> list[Point]:
    """Return the points where the arrow is level beside a place, if its label should be there."""
    half = width(lines) / 2 + _HEAD
    low, *_, high = layers.chains[pair]
    match layers.quiet(pair):
        case -1:
            return [(layers.right[layers.layer(low)] + half, route[0][0][1])]
        case 1:
            return [(layers.left[layers.layer(high)] - half, route[-1][3][1])]
        case _:
            return []


def _free(
    first: Sequence[Point],
    route: Sequence[_Curve],
    lines: Sequence[str],
    taken: Sequence[Box],
    others: Sequence[Point],
) -> Box:
    """Return the box of a label where it covers least of other boxes, then of other arrows."""
    half, tall = width(lines) / 2, LINE * len(lines) / 2
    turns = [curve for curve in route if curve[0] != curve[1]]

    def least(points: Iterable[Point]) -> tuple[float, int, Box]:
        """Return what the label covers at the best of some points, and its box there.

        It covers an area of other boxes, and a number of points of other arrows.
        """
        boxes = [(x - half, y - tall, x + half, y + tall) for x, y in points]
        found = [(_covered(box, taken), sum(_inside(point, box) for point in others), box) for box in boxes]
        return min(found, key=lambda cover: cover[:2])

    best = least([*first, *(_at(curve, t) for t in _TRIED for curve in turns)])
    if best[0]:
        best = min(best, least([_at(curve, t) for curve in route for t in _POSSIBLE]))
    return best[2]


def _covered(box: Box, taken: Iterable[Box]) -> float:
    left, top, right, bottom = box
    return sum(
        max(0.0, min(right, r) - max(left, x)) * max(0.0, min(bottom, b) - max(top, y))
        for x, y, r, b in taken
    )


def _inside(point: Point, box: Box) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def _boxes(place: DrawnPlace, centre: Point) -> list[Box]:
    """Return the boxes of a place and of the text below it."""
    x, y = centre
    bottom = y + place.tall
    box = (x - place.half, y - place.tall, x + place.half, bottom)
    return [box, (x - place.under, bottom, x + place.under, bottom + place.below)]


def _head(layers: Layers, pair: Pair, route: Sequence[_Curve]) -> Box:
    """Return the box of an arrow head, which is level."""
    begins = pair[0] == layers.chains[pair][0]
    x, y = route[-1][3] if begins else route[0][0]
    place = layers.centre(pair[1])[0]
    away = _HEAD_LENGTH if x > place else -_HEAD_LENGTH
    return min(x, x + away), y - _HEAD_HALF, max(x, x + away), y + _HEAD_HALF


def _loop_box(place: DrawnPlace, centre: Point, lines: Sequence[str]) -> Box:
    half = max(LOOP_HALF, width(lines) / 2)
    x, top = centre[0], centre[1] - place.tall
    return x - half, top - LOOP - LINE * len(lines), x + half, top
