"""Graphs and paths as a networkx graph, and as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, Final

import networkx as nx
import numpy as np

from spaseq.automaton.layered import CHARACTER, Drawn, DrawnPlace, Point, document
from spaseq.automaton.routes import arrows
from spaseq.paths.graph.names import Names, names_of
from spaseq.paths.graph.snapshot import Terms
from spaseq.paths.path import Path
from spaseq.paths.retrieval.retrieved import Ranked

_HEIGHT: Final = 30.0
_PADDING: Final = 12.0
#: Longer labels are cut, in pictures only.
_LONGEST: Final = 40


def to_networkx(result: Iterable[Path | Ranked] | Terms) -> Any:
    """Return a graph, or the triples of a retrieval or of ``g.paths``, as a ``networkx.MultiDiGraph``.

    The nodes are rdflib terms with a ``label``. The key of an edge is its predicate; edges have a ``label``.
    A node on a path has a ``depth``: the smallest number of edges from the beginning of a path to it. An edge
    of a retrieval has the ``score`` of the best path with it.

    >>> import spaseq
    >>> g = spaseq.paths.load([("urn:a", "urn:knows", "urn:b"), ("urn:b", "urn:knows", "urn:c")])
    >>> network = spaseq.paths.to_networkx(g.paths("<urn:knows>+", sources="urn:a", mode="TRAIL"))
    >>> [(s.n3(), data["label"], o.n3()) for s, o, data in network.edges(data=True)]
    [('<urn:a>', 'knows', '<urn:b>'), ('<urn:b>', 'knows', '<urn:c>')]
    """
    network: Any = nx.MultiDiGraph()
    if isinstance(result, Terms):
        graph = result.snapshot
        called, terms = names_of(graph), graph.terms(np.arange(graph.nodes))
        network.add_nodes_from((term, {"label": called.node(node)}) for node, term in enumerate(terms))
        for s, p, o in zip(*(column.tolist() for column in graph.edges()), strict=True):
            network.add_edge(terms[s], terms[o], key=graph.predicate(p), label=called.predicate(p))
        return network
    names: Names | None = None
    for item in result:
        path = item if isinstance(item, Path) else item.path
        score = {} if isinstance(item, Path) else {"score": item.score}
        names = names or names_of(path.graph)
        labels = [path.start.n3()] if path.stranger is not None else map(names.node, path.nodes)
        for depth, (term, label) in enumerate(zip(path.terms, labels, strict=True)):
            network.add_node(term, label=label)
            network.nodes[term]["depth"] = min(depth, network.nodes[term].get("depth", depth))
        for (s, p, o), number in zip(path.triples, path.predicates, strict=True):
            if not network.has_edge(s, o, key=p):  # paths come best first
                network.add_edge(s, o, key=p, label=names.predicate(number), **score)
    return network


def svg(network: Any) -> str:
    """Return the paths of ``to_networkx`` as an SVG document, with depth from left to right.

    All edges from one node to another are one arrow; its label has a line for each edge.
    """
    nodes = list(network)
    if not nodes:
        return document("no paths", [], [_box("no paths", (0.0, 0.0), "state")])
    number = {node: i for i, node in enumerate(nodes)}
    titles = [_short(network.nodes[node]["label"]) for node in nodes]
    labels: dict[tuple[int, int], list[str]] = {}
    for s, o, data in network.edges(data=True):
        labels.setdefault((number[s], number[o]), []).append(_short(data["label"]))
    depths = [network.nodes[node]["depth"] for node in nodes]
    places = [
        DrawnPlace(depth, _half(title), _HEIGHT / 2) for depth, title in zip(depths, titles, strict=True)
    ]
    centres, drawn = arrows(places, labels)
    boxes = [
        _box(title, centre, "state" if depth else "state accept")
        for title, centre, depth in zip(titles, centres, depths, strict=True)
    ]
    begins = ", ".join(title for title, depth in zip(titles, depths, strict=True) if depth == 0)
    return document(f"Paths from {begins}", drawn, boxes)


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
    """Return half of the width of a box."""
    return len(title) * CHARACTER / 2 + _PADDING


def _short(text: str) -> str:
    line = " ".join(text.split()) or "“”"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
