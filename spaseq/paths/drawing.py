"""Paths as a graph of networkx, and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

import networkx as nx

from spaseq.automaton.canvas import CHARACTER, LINE, Box, Drawn, Point, arrow, document, loop, rows
from spaseq.paths.names import Names
from spaseq.paths.path import Path

if TYPE_CHECKING:
    from spaseq.paths.retrieval import Ranked

_HEIGHT: Final = 30.0
_PADDING: Final = 12.0
_ROW: Final = 62.0
_GAP: Final = 44.0
#: Longer labels are cut, in pictures only.
_LONGEST: Final = 40


def to_networkx(result: Iterable[Path | Ranked]) -> Any:
    """The triples of paths, of a retrieval or of ``g.paths``, as a ``networkx.MultiDiGraph``.

    Its nodes are rdflib terms with a ``label``, and the ``depth`` in edges at which they are first met, 0
    where a path begins. The key of an edge is its predicate; it has a ``label``, and of a retrieval the
    ``score`` of the best path it is on.

    >>> import spaseq
    >>> g = spaseq.paths.load([("urn:a", "urn:knows", "urn:b"), ("urn:b", "urn:knows", "urn:c")])
    >>> network = spaseq.paths.to_networkx(g.paths("<urn:knows>+", sources="urn:a", mode="TRAIL"))
    >>> [(s.n3(), data["label"], o.n3()) for s, o, data in network.edges(data=True)]
    [('<urn:a>', 'knows', '<urn:b>'), ('<urn:b>', 'knows', '<urn:c>')]
    """
    network: Any = nx.MultiDiGraph()
    names: Names | None = None
    for item in result:
        path = item if isinstance(item, Path) else item.path
        score = {} if isinstance(item, Path) else {"score": item.score}
        names = names or Names(path.graph)
        labels = [path.start.n3()] if path.stranger is not None else map(names.node, path.nodes)
        for depth, (term, label) in enumerate(zip(path.terms, labels, strict=True)):
            network.add_node(term, label=label)
            network.nodes[term]["depth"] = min(depth, network.nodes[term].get("depth", depth))
        for (s, p, o), number in zip(path.triples, path.predicates, strict=True):
            if not network.has_edge(s, o, key=p):  # paths come best first
                network.add_edge(s, o, key=p, label=names.predicate(number), **score)
    return network


def svg(network: Any) -> str:
    """What ``to_networkx`` gives as an SVG document: beginnings on the left, the rest by depth.

    An arrow stands for all edges from one node to another, a line of its label for each.
    """
    nodes = list(network)
    if not nodes:
        return document("no paths", [], [_box("no paths", (0.0, 0.0), "state")])
    number = {node: i for i, node in enumerate(nodes)}
    titles = [_short(network.nodes[node]["label"]) for node in nodes]
    labels: dict[tuple[int, int], list[str]] = {}
    for s, o, data in network.edges(data=True):
        labels.setdefault((number[s], number[o]), []).append(_short(data["label"]))
    layer = {i: network.nodes[node]["depth"] for i, node in enumerate(nodes)}
    places = _places(titles, labels, layer)
    halves = [_half(title) for title in titles]
    arrows = [_arrow(pair, lines, places, halves, labels) for pair, lines in labels.items()]
    boxes = [
        _box(title, places[i], "state" if layer[i] else "state accept") for i, title in enumerate(titles)
    ]
    begins = ", ".join(title for i, title in enumerate(titles) if layer[i] == 0)
    return document(f"Paths from {begins}", arrows, boxes)


def _places(
    titles: list[str], labels: Mapping[tuple[int, int], list[str]], layer: Mapping[int, int]
) -> dict[int, Point]:
    """The centre of each node."""
    depth = max(layer.values()) + 1
    widest = [
        max((2 * _half(titles[i]) for i in layer if layer[i] == level), default=0.0) for level in range(depth)
    ]
    gaps = [_GAP] * depth
    for (source, target), lines in labels.items():
        near, far = sorted((layer[source], layer[target]))
        gaps[near] = max(gaps[near], max(map(len, lines)) * CHARACTER / max(far - near, 1) + _GAP)
    x = [0.0]
    for level in range(1, depth):
        x.append(x[-1] + widest[level - 1] / 2 + gaps[level - 1] + widest[level] / 2)
    # Edges may lead either way: a node's place depends on those of less depth.
    both = [pair for source, target in labels for pair in ((source, target), (target, source))]
    row = rows(both, layer)
    tallest = max(map(len, labels.values()), default=1)
    distance = _ROW + LINE * (tallest - 1)
    return {i: (x[layer[i]], row[i] * distance) for i in layer}


def _arrow(
    pair: tuple[int, int],
    lines: list[str],
    places: Mapping[int, Point],
    halves: list[float],
    labels: Mapping[tuple[int, int], list[str]],
) -> Drawn:
    source, target = pair
    (x1, y1), (x2, y2) = places[source], places[target]
    if source == target:
        return loop((x1, y1), _HEIGHT / 2, lines)
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    if x1 == x2:  # in the same layer: out to the right, or the left if it leads upwards
        side = 1 if y2 > y1 else -1
        middle_x += side * (max(halves[source], halves[target]) + _GAP)
    else:
        skips = any(min(x1, x2) < x < max(x1, x2) for x, _ in places.values())
        opposite = (target, source) in labels
        if skips or opposite:
            middle_y += (1 if x1 < x2 else -1) * (2 * LINE + (_ROW if skips else 0.0))
    middle = (middle_x, middle_y)
    start, end = _rim((x1, y1), middle, halves[source]), _rim((x2, y2), middle, halves[target])
    # Where the curve is half-way, and a little above it.
    half_way = ((start[0] + 2 * middle_x + end[0]) / 4, (start[1] + 2 * middle_y + end[1]) / 4)
    bottom = (half_way[0], half_way[1] + (len(lines) - 1) * LINE / 2 + 4)
    box: Box = (
        min(x1, x2, half_way[0]), min(y1, y2, half_way[1]), max(x1, x2, half_way[0]), max(y1, y2, half_way[1])
    )  # fmt: skip
    return arrow(start, middle, end, lines, bottom, box)


def _rim(centre: Point, towards: Point, half: float) -> Point:
    """Where a line from a box's centre leaves it."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    sides = (
        (half + 3) / abs(dx) if dx else float("inf"),
        (_HEIGHT / 2 + 3) / abs(dy) if dy else float("inf"),
    )
    return centre[0] + dx * min(sides), centre[1] + dy * min(sides)


def _box(title: str, place: Point, kind: str) -> Drawn:
    x, y = place
    half = _half(title)
    left, top = x - half, y - _HEIGHT / 2
    size = f'width="{2 * half:.1f}" height="{_HEIGHT:.0f}" rx="8"'
    return Drawn(
        f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" {size}/>',
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{escape(title)}</text>',
        ((left, top, x + half, y + _HEIGHT / 2),),
    )


def _half(title: str) -> float:
    """Half of the width of a box."""
    return len(title) * CHARACTER / 2 + _PADDING


def _short(text: str) -> str:
    line = " ".join(text.split()) or "“”"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
