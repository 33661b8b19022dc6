"""What people and language models call the nodes and predicates of a graph.

A label is the ``rdfs:label`` (else the ``skos:prefLabel``, else the ``schema:name``) of a term, one without
a language or in English before others; without one it is the IRI's local name, unescaped, with spaces for
``_``. Names are the same if their letters and digits are, whatever their case: ``starred_actors`` is
``starredActors`` is ``Starred Actors``. Of a predicate ``people.person.born_in``, ``born_in`` is a name, too.
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
#: Sorts of names of predicates: the first is taken where there is one.
_NAME: Final = 0
_TAIL: Final = 1

#: So many labels are kept.
_MOST_KEPT: Final = 1 << 20

#: How the names of the blocks of a file begin that are the index of predicates.
INDEX: Final = "names.predicates."

_COMMA: Final = ", "
_INVERSE: Final = "^"
_PREFERRED: Final = (None, "en")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Names:
    """The labels of a graph's terms, and its predicates by name. All are kept; threads may share them."""

    def __init__(self, graph: Snapshot) -> None:
        self._graph = graph
        numbers = {iri: graph.predicate_number(iri) for iri in LABELS}
        self._used = [number for number in numbers.values() if number is not None]
        self._labelling = frozenset(self._used)
        self._nodes: dict[int, str] = {}
        self._predicates: dict[int, str] = {}
        self._index: Index | None = None

    def node(self, number: int) -> str:
        """The label of a node."""
        found = self._nodes.get(number)
        if found is None:
            label = self._label(number)
            if len(self._nodes) > _MOST_KEPT:
                self._nodes = {}
            found = self._nodes[number] = label or local_name(self._graph.ox_term(number))
        return found

    def is_told(self, edge: tuple[int, int, int]) -> bool:
        """Whether an edge only says what its subject is called, as all that names it does."""
        s, p, o = edge
        return p in self._labelling and self.node(s) == self.node(o)

    def predicate(self, number: int) -> str:
        """The label of a predicate, in words."""
        found = self._predicates.get(number)
        if found is None:
            iri = self._graph.ox_predicate(number)
            node = self._graph.node(iri)
            label = None if node is None else self._label(node)
            found = self._predicates[number] = label or _CAMEL.sub(" ", local_name(iri))
        return found

    def unmistakable(self, number: int) -> str:
        """A name of a predicate that no other has: its label, else its last segment, else its IRI."""
        iri = self._graph.ox_predicate(number)
        local, label = _local(iri.value).strip(), " ".join(self.predicate(number).split())
        for name in (local,) if key(local) == key(label) else (label, local):
            if not name.startswith(_INVERSE) and self._find(name) == [iri]:
                return name
        return f"<{iri.value}>"

    def expression(self, relations: Sequence[str]) -> Expression:
        """The path expression of a list of relation names, ``^`` before those read from object to subject.

        A name that several predicates have stands for all of them. Raises QueryMeaningError for one that no
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
        """The predicates of a name: an IRI, a prefixed name, or what predicates are called."""
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
        """The predicates by their labels and last segments, and by what stands after the last dot in one."""
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
    """What a term is called without a label.

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
    """Return the names of a graph's terms, which the graph keeps."""
    return graph.derived(Names)
