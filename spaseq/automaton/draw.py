"""Drawings of an automaton: Graphviz text, SVG, JSON.

The SVG needs no Graphviz: a small layered layout (Sugiyama's steps: break cycles, layer by longest path,
order by barycentre) is enough for automata of queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final

import networkx as nx

from spaseq.automaton.canvas import CHARACTER, LINE, Drawn, Point, arrow, document, loop, rows
from spaseq.automaton.nfa import NFA
from spaseq.automaton.pattern import AnyOrder
from spaseq.automaton.show import ending, label, show

_RADIUS: Final = 20.0
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
    return document(show(nfa.root), arrows, states)


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


def _places(nfa: NFA, labels: Mapping[tuple[int, int], list[str]]) -> dict[int, Point]:
    """The centre of each state: layers from left to right, as far apart as the labels between need."""
    layer = _layers(labels, nfa.size)
    row = rows(labels, layer)
    depth = max(layer.values()) + 1
    gaps = [0.0] * depth
    for (source, target), lines in labels.items():
        span = layer[target] - layer[source]
        if span > 0:
            needed = max(map(len, lines)) * CHARACTER / span
            for between in range(layer[source], layer[target]):
                gaps[between] = max(gaps[between], needed)
        elif source == target:
            for side in {max(layer[source] - 1, 0), layer[source]}:
                gaps[side] = max(gaps[side], max(map(len, lines)) * CHARACTER / 2)
    x = [0.0]
    for gap in gaps[:-1]:
        x.append(x[-1] + gap + 2 * _RADIUS + 44)
    return {state: (x[layer[state]], row[state] * _ROW) for state in range(nfa.size)}


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


def _arrow(pair: tuple[int, int], lines: list[str], places: Mapping[int, Point]) -> Drawn:
    (x1, y1), (x2, y2) = places[pair[0]], places[pair[1]]
    if pair[0] == pair[1]:
        return loop((x1, y1), _RADIUS, lines)
    between = [x for x, _ in places.values() if min(x1, x2) < x < max(x1, x2)]
    hops = len(set(between)) + 1
    # What skips states runs outside of them, what goes back below.
    side = -1 if x2 > x1 and y1 + y2 <= 0 else 1
    bend = 0.0 if x2 > x1 and hops == 1 else side * (20.0 + 26.0 * hops)
    middle = ((x1 + x2) / 2, (y1 + y2) / 2 + 2 * bend)
    start, end = _rim((x1, y1), middle), _rim((x2, y2), middle)
    top = (y1 + y2) / 2 + bend
    above = (middle[0], top - (10 if bend else 7) if bend <= 0 else top + LINE * len(lines) + 4)
    box = (min(x1, x2), min(y1, y2, top), max(x1, x2), max(y1, y2, top))
    return arrow(start, middle, end, lines, above, box)


def _rim(centre: Point, towards: Point) -> Point:
    """Where a line from a state's centre leaves its circle."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    length = (dx * dx + dy * dy) ** 0.5
    return centre[0] + dx / length * (_RADIUS + 3), centre[1] + dy / length * (_RADIUS + 3)


def _state(state: int, place: Point, end: str | None) -> Drawn:
    x, y = place
    kind = "state" if end is None else "state accept"
    lines = [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:.0f}"/>']
    texts = [f'<text class="number" x="{x:.1f}" y="{y + 4.5:.1f}">{state}</text>']
    boxes = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS)]
    if end is not None:
        lines.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS - 4:.0f}"/>')
    if end:
        below = y + _RADIUS + LINE
        texts.append(f'<text class="ending" x="{x:.1f}" y="{below:.1f}">{escape(end)}</text>')
        half = len(end) * CHARACTER / 2
        boxes.append((x - half, y, x + half, below))
    if state == 0:
        lines.append(f'<path class="edge" d="M{x - _RADIUS - 28:.1f} {y:.1f}H{x - _RADIUS - 3:.1f}"/>')
        boxes.append((x - _RADIUS - 28, y, x, y))
    return Drawn("\n".join(lines), "\n".join(texts), tuple(boxes))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
