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

from spaseq.automaton.canvas import CHARACTER, LINE, Drawn, Point, below, document
from spaseq.automaton.layered import Place, width
from spaseq.automaton.nfa import NFA, Edge
from spaseq.automaton.pattern import AnyOrder
from spaseq.automaton.routes import arrows
from spaseq.automaton.show import ending, label, show

_RADIUS: Final = 20.0


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


@dataclass(frozen=True, slots=True)
class Notes:
    """What to write in a drawing: behind the label of each edge, and below each state, by their numbers."""

    edges: Sequence[str]
    states: Sequence[str]


@dataclass(frozen=True, slots=True)
class Titled:
    """A drawing among others: the lines above it, the automaton, and what to write in it."""

    lines: Sequence[str]
    nfa: NFA
    notes: Notes | None = None


def dot(nfa: NFA, notes: Notes | None = None) -> str:
    """The automaton in Graphviz's language."""
    return _digraph(_statements(nfa, notes, ""))


def dot_all(drawings: Sequence[Titled]) -> str:
    """Automata in Graphviz's language: a graph with a cluster for each; ``a1_2`` is the second's state 2."""
    lines = []
    for number, drawing in enumerate(drawings):
        # Graphviz ends a line that begins at the left with \l.
        title = _quoted("".join(f"{line}\n" for line in drawing.lines)).replace("\n", "\\l")
        inside = [f"label={title}", "labeljust=l"]
        inside += _statements(drawing.nfa, drawing.notes, f"a{number}_")
        lines += [f"subgraph cluster_{number} {{", *(f"  {line}" for line in inside), "}"]
    return _digraph(lines)


def _digraph(statements: Sequence[str]) -> str:
    lines = ["digraph NFA {", *(f"  {line}" for line in ["rankdir=LR", "node [shape=circle]", *statements])]
    return "\n".join([*lines, "}", ""])


def _statements(nfa: NFA, notes: Notes | None, prefix: str) -> list[str]:
    """An automaton's nodes and edges; states are called by their numbers behind ``prefix``."""
    accepting = {accept.state for accept in nfa.accepts}
    lines = [f'{prefix}start [shape=point, label=""]']
    if prefix:
        lines += [f'{prefix}{state} [label="{state}"]' for state in range(nfa.size)]
    lines += [f"{prefix}{state} [shape=doublecircle]" for state in sorted(accepting)]
    texts = enumerate(_below(nfa, notes))
    lines += [f"{prefix}{state} [xlabel={_quoted(text)}]" for state, text in texts if text]
    lines += [f"{prefix}start -> {prefix}0"]
    for number, edge in enumerate(nfa.edges):
        text = _edge(edge, number, notes)
        lines.append(f"{prefix}{edge.source} -> {prefix}{edge.target} [label={_quoted(text)}]")
    return lines


def svg(nfa: NFA, notes: Notes | None = None) -> str:
    """The automaton as an SVG document of its own size, in pixels."""
    labels = _labels(nfa, notes)
    layer = _layers(labels, nfa.size)
    endings = _endings(nfa)
    under = _below(nfa, notes)
    places = [_place(layer[state], under[state]) for state in range(nfa.size)]
    centres, drawn = arrows(places, labels)
    states = [_state(state, at, under[state], state in endings) for state, at in enumerate(centres)]
    return document(show(nfa.root), drawn, states)


def svg_all(drawings: Sequence[Titled]) -> str:
    """Automata as one SVG document, one below the other."""
    return below([(drawing.lines, svg(drawing.nfa, drawing.notes)) for drawing in drawings])


def _labels(nfa: NFA, notes: Notes | None) -> dict[tuple[int, int], list[str]]:
    """The labels of the edges between each pair of states: one arrow, a line per alternative."""
    labels: dict[tuple[int, int], list[str]] = {}
    for number, edge in enumerate(nfa.edges):
        lines = labels.setdefault((edge.source, edge.target), [])
        text = _edge(edge, number, notes)
        if text not in lines:
            lines.append(text)
    return labels


def _edge(edge: Edge, number: int, notes: Notes | None) -> str:
    return label(edge) if notes is None else f"{label(edge)}   {notes.edges[number]}".rstrip()


def _below(nfa: NFA, notes: Notes | None) -> list[str]:
    """What stands below each state."""
    endings = _endings(nfa)
    texts = [endings.get(state, "") for state in range(nfa.size)]
    if notes is None:
        return texts
    return [", ".join(filter(None, pair)) for pair in zip(texts, notes.states, strict=True)]


def _endings(nfa: NFA) -> dict[int, str]:
    """Per accepting state, what must hold for a match to end there."""
    endings: dict[int, list[str]] = {}
    for accept in nfa.accepts:
        endings.setdefault(accept.state, []).append(ending(accept))
    return {state: "" if "" in texts else " or ".join(texts) for state, texts in endings.items()}


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


def _place(layer: int, text: str) -> Place:
    below, under = (LINE + 4, width([text]) / 2) if text else (0.0, 0.0)
    return Place(layer, _RADIUS, _RADIUS, circle=True, below=below, under=under)


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
