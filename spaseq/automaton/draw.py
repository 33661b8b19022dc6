"""Drawings of an automaton: Graphviz text, SVG, JSON.

The SVG needs no Graphviz: layers by the longest path (cycles broken where a depth-first search meets them),
and the rest by ``layered`` and ``routes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import networkx as nx

from spaseq.automaton.layered import CHARACTER, LINE, Drawn, DrawnPlace, Point, document, width
from spaseq.automaton.nfa import NFA
from spaseq.automaton.pattern import AnyOrder
from spaseq.automaton.routes import arrows
from spaseq.automaton.show import ending, label, show

_RADIUS: Final = 20.0


def as_json(nfa: NFA) -> dict[str, Any]:
    """Return the automaton as plain values: states, edges, the automata of ALL's operands."""
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
    """Return the automaton in Graphviz's language."""
    accepting = {accept.state for accept in nfa.accepts}
    lines = ["digraph NFA {", "  rankdir=LR", "  node [shape=circle]", '  start [shape=point, label=""]']
    lines += [f"  {state} [shape=doublecircle]" for state in sorted(accepting)]
    lines += [f"  {state} [xlabel={_quoted(text)}]" for state, text in sorted(_endings(nfa).items()) if text]
    lines += ["  start -> 0"]
    lines += [f"  {e.source} -> {e.target} [label={_quoted(label(e))}]" for e in nfa.edges]
    return "\n".join([*lines, "}", ""])


@dataclass(frozen=True, slots=True)
class Notes:
    """What to write in a drawing: behind the label of each edge, and below each state, by their numbers."""

    edges: Sequence[str]
    states: Sequence[str]


def svg(nfa: NFA, notes: Notes | None = None) -> str:
    """Return the automaton as an SVG document of its own size, in pixels."""
    labels = _labels(nfa, notes)
    layer = _layers(labels, nfa.size)
    endings = _endings(nfa)
    below = [endings.get(state, "") for state in range(nfa.size)]
    if notes is not None:
        below = [", ".join(filter(None, pair)) for pair in zip(below, notes.states, strict=True)]
    places = [_place(layer[state], below[state]) for state in range(nfa.size)]
    centres, drawn = arrows(places, labels)
    states = [_state(state, at, below[state], state in endings) for state, at in enumerate(centres)]
    return document(show(nfa.root), drawn, states)


def _labels(nfa: NFA, notes: Notes | None) -> dict[tuple[int, int], list[str]]:
    """Return the labels of the edges between each pair of states: one arrow, a line per alternative."""
    labels: dict[tuple[int, int], list[str]] = {}
    for number, edge in enumerate(nfa.edges):
        lines = labels.setdefault((edge.source, edge.target), [])
        text = label(edge) if notes is None else f"{label(edge)}   {notes.edges[number]}".rstrip()
        if text not in lines:
            lines.append(text)
    return labels


def _endings(nfa: NFA) -> dict[int, str]:
    """Return, for each accepting state, what must hold for a match to end there."""
    endings: dict[int, list[str]] = {}
    for accept in nfa.accepts:
        endings.setdefault(accept.state, []).append(ending(accept))
    return {state: "" if "" in texts else " or ".join(texts) for state, texts in endings.items()}


def _layers(labels: Mapping[tuple[int, int], list[str]], size: int) -> dict[int, int]:
    """Return the longest distance from the initial state, without the back edges of a depth-first search."""
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


def _place(layer: int, text: str) -> DrawnPlace:
    below, under = (LINE + 4, width([text]) / 2) if text else (0.0, 0.0)
    return DrawnPlace(layer, _RADIUS, _RADIUS, circle=True, below=below, under=under)


def _state(state: int, place: Point, text: str, is_accepting: bool) -> Drawn:
    x, y = place
    kind = "state accept" if is_accepting else "state"
    lines = [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:.0f}"/>']
    texts = [f'<text class="number" x="{x:.1f}" y="{y + 4.5:.1f}">{state}</text>']
    boxes = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS)]
    if is_accepting:
        lines.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS - 4:.0f}"/>')
    if text:
        below = y + _RADIUS + LINE
        texts.append(f'<text class="ending" x="{x:.1f}" y="{below:.1f}">{escape(text)}</text>')
        half = len(text) * CHARACTER / 2
        boxes.append((x - half, y, x + half, below))
    if state == 0:
        lines.append(f'<path class="edge" d="M{x - _RADIUS - 28:.1f} {y:.1f}H{x - _RADIUS - 3:.1f}"/>')
        boxes.append((x - _RADIUS - 28, y, x, y))
    return Drawn("\n".join(lines), "\n".join(texts), tuple(boxes))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
