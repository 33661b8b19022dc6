"""The names of nodes and predicates, as people and language models write them.

The label of a term is its ``rdfs:label``, or its ``skos:prefLabel``, or its ``schema:name``, in this order.
Labels without a language or in English come before others. A term without any of them is labelled with the
IRI's local name, unescaped, with spaces for ``_``. Names are equal if their letters and digits are, in any
case: ``starred_actors``, ``starredActors``, ``Starred Actors``. A predicate ``people.person.born_in`` also
has the name ``born_in``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.errors import QueryMeaningError
from spaseq.language.reading.source import QueryText
from spaseq.paths.graph.linking.index import Index, key
from spaseq.paths.graph.saved.check import blocks
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Alternative, Concatenation, Expression, Path, Step
from spaseq.terms.dictionary import Term

#: Predicates with the labels of nodes.
LABELS: Final = (
    NamedNode("http://www.w3.org/2000/01/rdf-schema#label"),
    NamedNode("http://www.w3.org/2004/02/skos/core#prefLabel"),
    NamedNode("http://schema.org/name"),
    NamedNode("https://schema.org/name"),
)
#: Kinds of names of predicates: a full name takes precedence over the part after the last dot.
_NAME: Final = 0
_TAIL: Final = 1

#: At most this many labels are kept.
_MOST_KEPT: Final = 1 << 20

#: The prefix of the names of the blocks of a file that hold the index of predicates.
INDEX: Final = "names.predicates."

_COMMA: Final = ", "
_INVERSE: Final = "^"
_PREFERRED: Final = (None, "en")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Names:
    """The labels of a graph's terms, cached, and its predicates by name. Threads may share it."""

    def __init__(self, graph: Snapshot) -> None:
        self._graph = graph
        numbers = {iri: graph.predicate_number(iri) for iri in LABELS}
        self._used = [number for number in numbers.values() if number is not None]
        self._labelling = frozenset(self._used)
        self._nodes: dict[int, str] = {}
        self._predicates: dict[int, str] = {}
        self._index: Index | None = None

    def node(self, number: int) -> str:
        """Return the label of a node."""
        found = self._nodes.get(number)
        if found is None:
            label = self._label(number)
            if len(self._nodes) > _MOST_KEPT:
                self._nodes = {}
            found = self._nodes[number] = label or local_name(self._graph.ox_term(number))
        return found

    def is_told(self, edge: tuple[int, int, int]) -> bool:
        """Return whether an edge only gives the label that texts show for its subject anyway."""
        s, p, o = edge
        return p in self._labelling and self.node(s) == self.node(o)

    def predicate(self, number: int) -> str:
        """Return the label of a predicate, split into words."""
        found = self._predicates.get(number)
        if found is None:
            iri = self._graph.ox_predicate(number)
            node = self._graph.node(iri)
            label = None if node is None else self._label(node)
            found = self._predicates[number] = label or _CAMEL.sub(" ", local_name(iri))
        return found

    def unmistakable(self, number: int) -> str:
        """Return a name that no other predicate has: the label, the last segment, or otherwise the IRI."""
        iri = self._graph.ox_predicate(number)
        local, label = _local(iri.value).strip(), " ".join(self.predicate(number).split())
        for name in (local,) if key(local) == key(label) else (label, local):
            if not name.startswith(_INVERSE) and self._find(name) == [iri]:
                return name
        return f"<{iri.value}>"

    def expression(self, relations: Sequence[str]) -> Expression:
        """Return the path expression of a list of relation names; ``^`` goes from object to subject.

        A name that several predicates have means any of them. Raises QueryMeaningError for a name that no
        predicate has.
        """
        source = QueryText(_COMMA.join(map(str, relations)), "<relations>")
        if not relations:
            raise source.error(QueryMeaningError, "this is no path: it has no relations", 0)
        steps, at = list[Path](), 0
        for relation in relations:
            steps.append(self._step(relation, source, at))
            at += len(str(relation)) + len(_COMMA)
        root = steps[0] if len(steps) == 1 else Concatenation(tuple(steps))
        return Expression(root, self._graph.prefixes, source)

    def _step(self, relation: str, source: QueryText, at: int) -> Path:
        if not isinstance(relation, str):
            raise source.error(QueryMeaningError, f"{relation!r} is not the name of a relation", at)
        name = relation.strip()
        inverse = name.startswith(_INVERSE)
        name = name.removeprefix(_INVERSE).strip()
        found = self._find(name)
        if not found:
            alike = self.alike(name)
            raise source.error(
                QueryMeaningError,
                f"no predicate of the graph is called {name}",
                at + relation.find(name),
                f"did you mean {_local(alike.value)}?" if alike else None,
            )
        steps = tuple(Step((predicate,), inverse=inverse) for predicate in found)
        return steps[0] if len(steps) == 1 else Alternative(steps)

    def _find(self, name: str) -> list[NamedNode]:
        """Return the predicates that a name means: an IRI, a prefixed name, a label or a last segment."""
        iri = name.removeprefix("<").removesuffix(">")
        prefix, colon, local = iri.partition(":")
        if colon and prefix in self._graph.prefixes:
            iri = self._graph.prefixes[prefix] + local
        if colon:
            try:
                predicate = NamedNode(iri)
            except ValueError:
                return []
            return [predicate] if self._graph.predicate_number(predicate) is not None else []
        index = self.index
        places = index.same(name)
        best = min((int(index.kinds[place]) for place in places), default=_NAME)
        numbers = {int(index.numbers[place]) for place in places if index.kinds[place] == best}
        return [self._graph.ox_predicate(number) for number in sorted(numbers)]

    @property
    def index(self) -> Index:
        """The index of predicates by label, by last segment, and by its part after the last dot."""
        if self._index is None:
            file = self._graph.file
            self._index = Index.of(self._entries()) if file is None else Index.of_arrays(blocks(file, INDEX))
        return self._index

    def _entries(self) -> Iterator[tuple[str, int, int]]:
        for number in range(self._graph.predicates):
            local = local_name(self._graph.ox_predicate(number))
            yield key(local), number, _NAME
            yield key(self.predicate(number)), number, _NAME
            yield key(local.rpartition(".")[2]), number, _TAIL

    def alike(self, name: str) -> NamedNode | None:
        """Return the predicate with the most similar name, if there is one."""
        for place, _ in self.index.alike(name):
            return self._graph.ox_predicate(int(self.index.numbers[place]))
        return None

    def _label(self, node: int) -> str | None:
        edges = self._graph.contents.edges
        for predicate in self._used:
            found = [self._graph.ox_term(other) for other in edges.objects(node, predicate).tolist()]
            literals = [term for term in found if isinstance(term, Literal) and term.value]
            if literals:
                return min(literals, key=_preference).value
        return None


def local_name(term: Term) -> str:
    """Return the name of a term that has no label.

    >>> local_name(NamedNode("http://example.org/Flags%20of_Our_Fathers"))
    'Flags of Our Fathers'
    """
    match term:
        case NamedNode():
            return _local(term.value).replace("_", " ")
        case BlankNode():
            return f"_:{term.value}"
        case Literal():
            return term.value


def _local(iri: str) -> str:
    whole = iri.rstrip("/#")
    begin = 1 + max(whole.rfind("/"), whole.rfind("#"), whole.rfind(":"))
    return unquote(whole[begin:]) or iri


def _preference(literal: Literal) -> tuple[int, str, str]:
    language = literal.language
    place = _PREFERRED.index(language) if language in _PREFERRED else len(_PREFERRED)
    return place, literal.value, language or ""


def names_of(graph: Snapshot) -> Names:
    """Return the names of a graph's terms, which the graph caches."""
    return graph.derived(Names)
