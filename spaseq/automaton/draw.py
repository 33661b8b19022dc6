"""Drawings of an automaton: Graphviz text, SVG, JSON.

The SVG needs no Graphviz: a small layered layout (Sugiyama's steps: break cycles, layer by longest path,
order by barycentre) is enough for automata of queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import networkx as nx

from spaseq.automaton.nfa import NFA
from spaseq.automaton.pattern import AnyOrder
from spaseq.automaton.show import ending, label, show

_RADIUS: Final = 20.0
_CHARACTER: Final = 7.9  # width of a character of 13 px monospace text
_LINE: Final = 16.0
_MARGIN: Final = 24.0
_ROW: Final = 96.0


def as_json(nfa: NFA) -> dict[str, Any]:
    """The automaton as plain values: states, edges, the automata of ALL's operands."""
    return {
        "sequence": show(nfa.root),
        "states": nfa.size,
        "initial": 0,
        "accepting": [{"state": a.state, "if": ending(a)} for a in nfa.accepts],
        "edges": [
            {
                "from": edge.source,
                "to": edge.target,
                "streams": sorted(stream.value for stream in edge.predicate.streams),
                "operator": edge.predicate.strategy and edge.predicate.strategy.value,
                "pattern": show(edge.predicate.unit),
                "label": label(edge),
                "key": list(edge.key),
            }
            for edge in nfa.edges
        ],
        "parts": [
            as_json(nfa.parts[operand.id])
            for unit in dict.fromkeys(edge.predicate.unit for edge in nfa.edges)
            if isinstance(unit, AnyOrder)
            for operand in unit.operands
        ],
    }


def dot(nfa: NFA) -> str:
    """The automaton in Graphviz's language."""
    accepting = {accept.state for accept in nfa.accepts}
    lines = ["digraph NFA {", "  rankdir=LR", "  node [shape=circle]", '  start [shape=point, label=""]']
    lines += [f"  {state} [shape=doublecircle]" for state in sorted(accepting)]
    lines += [f"  {state} [xlabel={_quoted(text)}]" for state, text in sorted(_endings(nfa).items()) if text]
    lines += ["  start -> 0"]
    lines += [f"  {e.source} -> {e.target} [label={_quoted(label(e))}]" for e in nfa.edges]
    return "\n".join([*lines, "}", ""])


def svg(nfa: NFA) -> str:
    """The automaton as an SVG document of its own size, in pixels."""
    labels = _labels(nfa)
    places = _places(nfa, labels)
    arrows = [_arrow(pair, lines, places) for pair, lines in labels.items()]
    endings = _endings(nfa)
    states = [_state(state, places[state], endings.get(state)) for state in range(nfa.size)]
    boxes = [box for drawn in (*arrows, *states) for box in drawn.boxes]
    left = min(box[0] for box in boxes) - _MARGIN
    top = min(box[1] for box in boxes) - _MARGIN
    width = max(box[2] for box in boxes) + _MARGIN - left
    height = max(box[3] for box in boxes) + _MARGIN - top
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" role="img">',
            f"<title>{escape(show(nfa.root))}</title>",
            _STYLE,
            _ground(left, top, width, height),
            *(drawn.lines for drawn in arrows),
            *(drawn.lines for drawn in states),
            *(drawn.texts for drawn in (*arrows, *states)),
            "</svg>",
            "",
        ]
    )


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

_Point = tuple[float, float]
_Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """SVG of one thing: its lines, the texts above all lines, and the boxes they fill."""

    lines: str
    texts: str
    boxes: tuple[_Box, ...]


def _labels(nfa: NFA) -> dict[tuple[int, int], list[str]]:
    """The labels of the edges between each pair of states: one arrow, a line per alternative."""
    labels: dict[tuple[int, int], list[str]] = {}
    for edge in nfa.edges:
        lines = labels.setdefault((edge.source, edge.target), [])
        if label(edge) not in lines:
            lines.append(label(edge))
    return labels


def _endings(nfa: NFA) -> dict[int, str]:
    """Per accepting state, what must hold for a match to end there."""
    endings: dict[int, list[str]] = {}
    for accept in nfa.accepts:
        endings.setdefault(accept.state, []).append(ending(accept))
    return {state: "" if "" in texts else " or ".join(texts) for state, texts in endings.items()}


def _places(nfa: NFA, labels: Mapping[tuple[int, int], list[str]]) -> dict[int, _Point]:
    """The centre of each state: layers from left to right, as far apart as the labels between need."""
    layer = _layers(labels, nfa.size)
    rows = _rows(labels, layer)
    depth = max(layer.values()) + 1
    gaps = [0.0] * depth
    for (source, target), lines in labels.items():
        span = layer[target] - layer[source]
        if span > 0:
            needed = max(map(len, lines)) * _CHARACTER / span
            for between in range(layer[source], layer[target]):
                gaps[between] = max(gaps[between], needed)
        elif source == target:
            for side in {max(layer[source] - 1, 0), layer[source]}:
                gaps[side] = max(gaps[side], max(map(len, lines)) * _CHARACTER / 2)
    x = [0.0]
    for gap in gaps[:-1]:
        x.append(x[-1] + gap + 2 * _RADIUS + 44)
    return {state: (x[layer[state]], rows[state] * _ROW) for state in range(nfa.size)}


def _layers(labels: Mapping[tuple[int, int], list[str]], size: int) -> dict[int, int]:
    """Longest distance from the initial state, back edges of a depth-first search left out."""
    graph: nx.DiGraph[int] = nx.DiGraph(list(labels))
    graph.add_nodes_from(range(size))
    finished: set[int] = set()
    back = []
    for source, target, kind in nx.dfs_labeled_edges(graph, 0):
        if kind == "reverse":
            finished.add(target)
        elif kind == "nontree" and target not in finished:
            back.append((source, target))
    graph.remove_edges_from(back)
    layer = dict.fromkeys(range(size), 0)
    for state in nx.topological_sort(graph):
        for follower in graph.successors(state):
            layer[follower] = max(layer[follower], layer[state] + 1)
    return layer


def _rows(labels: Mapping[tuple[int, int], list[str]], layer: Mapping[int, int]) -> dict[int, float]:
    """The vertical place of each state in rows, 0 in the middle: near the states before it."""
    rows: dict[int, float] = {}
    for level in range(max(layer.values()) + 1):
        members = [state for state in layer if layer[state] == level]
        before = {
            state: [rows[s] for s, t in labels if t == state and layer[s] < level] or [0.0]
            for state in members
        }
        members.sort(key=lambda state: (sum(before[state]) / len(before[state]), state))
        for i, state in enumerate(members):
            rows[state] = i - (len(members) - 1) / 2
    return rows


def _arrow(pair: tuple[int, int], lines: list[str], places: Mapping[int, _Point]) -> _Drawn:
    (x1, y1), (x2, y2) = places[pair[0]], places[pair[1]]
    if pair[0] == pair[1]:
        away = f"{x1 - 30:.1f} {y1 - 62:.1f} {x1 + 30:.1f} {y1 - 62:.1f}"
        path = f"M{x1 - 11:.1f} {y1 - 17:.1f}C{away} {x1 + 11:.1f} {y1 - 17:.1f}"
        return _labelled(path, lines, (x1, y1 - 58), (x1 - 30, y1 - 52, x1 + 30, y1))
    between = [x for x, _ in places.values() if min(x1, x2) < x < max(x1, x2)]
    hops = len(set(between)) + 1
    # What skips states runs outside of them, what goes back below.
    side = -1 if x2 > x1 and y1 + y2 <= 0 else 1
    bend = 0.0 if x2 > x1 and hops == 1 else side * (20.0 + 26.0 * hops)
    middle = ((x1 + x2) / 2, (y1 + y2) / 2 + 2 * bend)
    start, end = _rim((x1, y1), middle), _rim((x2, y2), middle)
    path = f"M{start[0]:.1f} {start[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    top = (y1 + y2) / 2 + bend
    above = (middle[0], top - (10 if bend else 7) if bend <= 0 else top + _LINE * len(lines) + 4)
    return _labelled(path, lines, above, (min(x1, x2), min(y1, y2, top), max(x1, x2), max(y1, y2, top)))


def _rim(centre: _Point, towards: _Point) -> _Point:
    """Where a line from a state's centre leaves its circle."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    length = (dx * dx + dy * dy) ** 0.5
    return centre[0] + dx / length * (_RADIUS + 3), centre[1] + dy / length * (_RADIUS + 3)


def _labelled(path: str, lines: list[str], bottom: _Point, box: _Box) -> _Drawn:
    """A curve with its labels stacked upwards from ``bottom``."""
    x, y = bottom
    texts = [
        f'<text x="{x:.1f}" y="{y - _LINE * (len(lines) - 1 - i):.1f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    half = max(map(len, lines)) * _CHARACTER / 2
    height = _LINE * len(lines)
    written = (x - half, y - height, x + half, y)
    # A patch of ground, so that a curve behind the text does not cross it out.
    patch = _ground(x - half, y - height + 3, 2 * half, height)
    return _Drawn(f'<path class="edge" d="{path}"/>', "\n".join([patch, *texts]), (box, written))


def _state(state: int, place: _Point, end: str | None) -> _Drawn:
    x, y = place
    kind = "state" if end is None else "state accept"
    lines = [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:.0f}"/>']
    texts = [f'<text class="number" x="{x:.1f}" y="{y + 4.5:.1f}">{state}</text>']
    boxes = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS)]
    if end is not None:
        lines.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS - 4:.0f}"/>')
    if end:
        below = y + _RADIUS + _LINE
        texts.append(f'<text class="ending" x="{x:.1f}" y="{below:.1f}">{escape(end)}</text>')
        half = len(end) * _CHARACTER / 2
        boxes.append((x - half, y, x + half, below))
    if state == 0:
        lines.append(f'<path class="edge" d="M{x - _RADIUS - 28:.1f} {y:.1f}H{x - _RADIUS - 3:.1f}"/>')
        boxes.append((x - _RADIUS - 28, y, x, y))
    return _Drawn("\n".join(lines), "\n".join(texts), tuple(boxes))


def _ground(x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="ground" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
