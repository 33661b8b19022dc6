"""A page of a Linked Data Event Stream: bytes → members and links to other pages (TREE, LDES)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, Triple, parse

from spaseq.events import EARLIEST
from spaseq.limits import Limits
from spaseq.nesting import check_document, too_long
from spaseq.sources.assembly.subjects import Node, nodes_from
from spaseq.sources.formats._parse import FORMATS, reason_of
from spaseq.sources.formats.jsonld import quads_of
from spaseq.sources.times import read_time
from spaseq.terms.identified import Row
from spaseq.terms.values import RDF

TREE: Final = "https://w3id.org/tree#"
LDES: Final = "https://w3id.org/ldes#"

#: The formats of pages.
PAGES: Final = ("ttl", "trig", "nq", "nt", "jsonld")

#: The end of a list; the most predicates of a path.
_NIL: Final = NamedNode(RDF + "nil")
_STEPS: Final = 16

#: Relations that give the earliest time of a page's members.
_FROM: Final = {TREE + name + "Relation" for name in ("GreaterThan", "GreaterThanOrEqualTo", "EqualTo")}


def parse_page(text: bytes, form: str, url: str, limits: Limits) -> list[Quad]:
    """Return the quads of a page, with relative IRIs resolved against its URL. Raises ValueError."""
    try:
        check_document(text, FORMATS.get(form, RdfFormat.JSON_LD), limits)
        if form == "jsonld":
            return quads_of(text, url)
        return list(parse(text, format=FORMATS[form], base_iri=url))
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {reason_of(error)}") from None
    except MemoryError as error:
        raise ValueError(too_long(error)) from None


class Page:
    """The contents of a page."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self._about: dict[Node, list[Row]] = defaultdict(list)
        self._graphs: dict[Node | DefaultGraph, list[Row]] = defaultdict(list)
        #: Triples by terms of TREE and LDES.
        self._said: dict[str, list[Row]] = defaultdict(list)
        for quad in quads:
            s, p, o, g = quad
            self._about[s].append((s, p, o))
            self._graphs[g].append((s, p, o))
            if quad.predicate.value.startswith((TREE, LDES)):
                self._said[quad.predicate.value].append((s, p, o))
        self._blank: dict[Node, list[Row]] = {
            node: rows for node, rows in self._about.items() if not isinstance(node, NamedNode)
        }
        #: The objects of tree:member, which LDES requires to be IRIs.
        self.members = list(dict.fromkeys(o for _, _, o in self._said[TREE + "member"]))

    @property
    def views(self) -> list[str]:
        """Return the URLs of the pages at which a reader of the stream may begin."""
        views = (o for _, _, o in self._said[TREE + "view"])
        return list(dict.fromkeys(o.value for o in views if isinstance(o, NamedNode)))

    def timestamp_path(self) -> tuple[NamedNode, ...] | None:
        """Return the predicates that lead to the time of a member. Raises ValueError for any other path."""
        about = {s for name in ("member", "view") for s, _, _ in self._said[TREE + name]}
        paths = [(s, o) for s, _, o in self._said[LDES + "timestampPath"]]
        # Paths of retention policies, which are not paths of the stream or of a view, are left out.
        found = [o for s, o in paths if s in about or not about]
        if not found:
            return None
        steps = self._steps(found[0])
        if steps is None:
            raise ValueError("its ldes:timestampPath is neither a predicate nor a sequence of predicates")
        return steps

    def rows(self, member: NamedNode) -> list[Row]:
        """Return the triples of a member, of the blank nodes they reach, and of the graph with its name."""
        own = self._about[member] + self._graphs[member]
        return own + [row for node in nodes_from(own, self._blank) for row in self._blank[node]]

    def links(self, path: tuple[NamedNode, ...]) -> dict[str, int]:
        """Return the URLs of the pages that relations lead to, and the time from which each has members."""
        found: dict[str, int] = {}
        for relation, _, node in self._said[TREE + "node"]:
            if isinstance(node, NamedNode):
                since = self._since(relation, path)
                found[node.value] = max(since, found.get(node.value, EARLIEST))
        return found

    def _since(self, relation: Node, path: tuple[NamedNode, ...]) -> int:
        kinds = {o.value for o in self._objects(relation, RDF + "type") if isinstance(o, NamedNode)}
        paths = [self._steps(o) for o in self._objects(relation, TREE + "path")]
        if not kinds & _FROM or paths != [path]:
            return EARLIEST
        try:
            values = self._objects(relation, TREE + "value")
            return max(read_time(value).value for value in values if not isinstance(value, Triple))
        except ValueError:
            return EARLIEST

    def _steps(self, node: Node) -> tuple[NamedNode, ...] | None:
        """Return a path as its predicates; None unless it is a sequence of at most ``_STEPS``."""
        if isinstance(node, NamedNode):
            return (node,)
        steps: list[NamedNode] = []
        while node != _NIL and len(steps) < _STEPS:
            first, rest = self._objects(node, RDF + "first"), self._objects(node, RDF + "rest")
            if len(first) != 1 or len(rest) != 1 or not isinstance(first[0], NamedNode):
                return None
            steps.append(first[0])
            node = rest[0]
        return tuple(steps) if node == _NIL else None

    def _objects(self, node: Node, predicate: str) -> list[Node]:
        return [o for _, p, o in self._about[node] if p == NamedNode(predicate)]
