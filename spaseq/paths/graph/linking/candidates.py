"""What may be meant by a name: the nodes that are called so, or nearly so, each with a score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.errors import QueryError, QueryMeaningError
from spaseq.language.reading.source import Source
from spaseq.paths.graph.linking.index import Index, key
from spaseq.paths.graph.names import LABELS, local_name
from spaseq.paths.graph.saved.file import Array
from spaseq.paths.graph.user_terms import read_term
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.results.writers._json import json_term
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm

if TYPE_CHECKING:
    from spaseq.paths.graph.snapshot import Snapshot

#: Predicates whose values are what else a node is called.
_OTHERS: Final = (
    NamedNode("http://www.w3.org/2004/02/skos/core#altLabel"),
    NamedNode("http://schema.org/alternateName"),
    NamedNode("https://schema.org/alternateName"),
    NamedNode("http://xmlns.com/foaf/0.1/name"),
)


class Kind(IntEnum):
    """What of a node a name is."""

    LABEL = 0
    OTHER_LABEL = 1
    LAST_SEGMENT = 2
    LITERAL = 3


#: What a name is worth that is just the one looked for.
_WORTH: Final = {
    Kind.LABEL: 1.0,
    Kind.OTHER_LABEL: 0.95,
    Kind.LAST_SEGMENT: 0.9,
    Kind.LITERAL: 0.8,
}

#: Literals that are longer are no names, but labels are.
_LONGEST_LITERAL: Final = 64

#: A text that begins so is a term as expressions and N-Triples write it, never a name.
_WRITTEN: Final = ("<", '"', "'", "_:")

#: So many candidates may be topics by one name.
_LOOKED_AT: Final = 10

#: So many names are suggested.
_SUGGESTED: Final = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may be meant: its number, its term, its label, the score (0 to 1), and what made it one.

    ``by`` is ``"label"``, ``"other label"``, ``"last segment"``, ``"literal"`` or ``"spelling"``.
    """

    node: int
    term: RdflibTerm
    label: str
    score: float
    by: str

    def as_json(self) -> dict[str, Any]:
        """As plain values; the term as in the SPARQL 1.1 results format."""
        return {"name": self.label, "term": json_term(self.term), "score": self.score, "by": self.by}


@dataclass(frozen=True, slots=True, eq=False)
class Linker:
    """The names of a graph's nodes; ``degrees`` says how many edges each node has."""

    index: Index
    degrees: Nodes

    @classmethod
    def of(cls, graph: Snapshot, labels: Iterable[int] = ()) -> Linker:
        """Of a graph, by the values of ``labels``, too, which are numbers of predicates."""
        s, _, o = graph.edges()
        degrees = np.bincount(s, minlength=graph.nodes) + np.bincount(o, minlength=graph.nodes)
        return cls(Index.of(_names(graph, labels)), degrees.astype(np.int32))

    def arrays(self) -> dict[str, Array]:
        """As ``of_arrays`` takes them."""
        return {**self.index.arrays(), "degrees": self.degrees}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Linker:
        """From what ``arrays`` gave."""
        rest = dict(arrays)
        degrees = rest.pop("degrees")
        return cls(Index.of_arrays(rest), degrees)

    def link(self, graph: Snapshot, name: str, k: int) -> list[Candidate]:
        """The best candidates: all that are called so; if none is, those that are spelled much like it."""
        same = self.index.same(name)
        places = [(place, 1.0) for place in same] or self.index.alike(name)
        best = dict[int, tuple[float, Kind]]()
        for place, likeness in places:
            node, kind = int(self.index.numbers[place]), Kind(int(self.index.kinds[place]))
            found = (round(likeness * _WORTH[kind], 4), kind)
            best[node] = max(best.get(node, (0.0, kind)), found, key=lambda one: one[0])
        order = sorted(best, key=lambda node: (-best[node][0], -int(self.degrees[node]), node))
        return [
            Candidate(
                node, graph.term(node), graph.names.node(node), best[node][0],
                best[node][1].name.lower().replace("_", " ") if same else "spelling",
            )
            for node in order[:k]
        ]  # fmt: skip


def label_predicates(graph: Snapshot, labels: Any) -> tuple[int, ...]:
    """Predicates, or one, as distinct numbers, in order. Raises QueryError for one that no edge has."""
    given = [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else list(labels)
    found = set[int]()
    for label in given:
        number = graph.predicate_number(label)
        if number is None:
            alike = graph.names.alike(local_name(read_term(label, graph.prefixes)))
            raise Source(str(label), "<labels>").error(
                QueryMeaningError, "no edge has this predicate", 0, alike and f"did you mean {alike}?"
            )
        found.add(number)
    return tuple(sorted(found))


def _names(graph: Snapshot, labels: Iterable[int]) -> Iterator[tuple[str, int, int]]:
    s, _, o = graph.edges()
    begins = graph.contents.edges.begins
    labelling = np.zeros(graph.nodes, dtype=np.bool_)  # what is the label of something else
    usual, others = (
        [n for iri in iris if (n := graph.predicate_number(iri)) is not None] for iris in (LABELS, _OTHERS)
    )
    for kind, numbers in ((Kind.LABEL, (*usual, *labels)), (Kind.OTHER_LABEL, others)):
        for number in numbers:
            low, high = begins[number : number + 2].tolist()
            values = o[low:high]
            for node, label, term in zip(
                s[low:high].tolist(), values.tolist(), graph.glance(values), strict=True
            ):
                if isinstance(term, Literal):
                    labelling[label] = True
                    yield key(term.value), node, kind
    for node, term in enumerate(graph.glance(np.arange(graph.nodes))):
        if isinstance(term, NamedNode):
            yield key(local_name(term)), node, Kind.LAST_SEGMENT
        elif isinstance(term, Literal) and len(term.value) <= _LONGEST_LITERAL and not labelling[node]:
            yield key(term.value), node, Kind.LITERAL


def topics(
    graph: Snapshot, values: Any, labels: Any = ()
) -> tuple[Ids, tuple[Term, ...], tuple[Candidate, ...]]:
    """Topics as numbers of nodes; the terms that are no nodes; and what names were taken for.

    A text that is no term of the graph is a name: all nodes whose names it is best are meant, by the values
    of the predicates ``labels``, too. Raises QueryError for a name that no node has, with those that are
    spelled like it, and for a predicate that no edge has.
    """
    by = label_predicates(graph, labels)
    if isinstance(values, str | np.ndarray) or not isinstance(values, Iterable):
        values = [values] if type(values) is str else values
    else:
        values = list(values)
    if not (isinstance(values, list) and any(type(value) is str for value in values)):
        return *graph.numbers(values), ()
    found, strangers, linked = list[int](), list[Term](), list[Candidate]()
    for value in values:
        candidates = _called(graph, value, by) if type(value) is str else []
        if candidates:
            linked += candidates
            found += [candidate.node for candidate in candidates]
        else:
            nodes, strange = graph.numbers([value])
            found += nodes.tolist()
            strangers += strange
    return np.array([*dict.fromkeys(found)], dtype=np.int64), tuple(dict.fromkeys(strangers)), tuple(linked)


def _called(graph: Snapshot, text: str, labels: tuple[int, ...]) -> list[Candidate]:
    """The nodes of a name; none for a text that is a term, of the graph or not."""
    if text.startswith(_WRITTEN):
        return []
    is_term = True
    try:
        if graph.node(text) is not None or isinstance(read_term(text, graph.prefixes), NamedNode):
            return []
    except QueryError:
        is_term = False  # or a literal, as years are
    found = graph.linker_by(labels).link(graph, text, _LOOKED_AT)
    same = [candidate for candidate in found if candidate.by != "spelling"]
    if same:
        return [candidate for candidate in same if candidate.score == same[0].score]
    if is_term or (":" in text and " " not in text):
        return []  # what it is, or is wrong with it, others say
    raise Source(text, "<topic>").error(
        QueryMeaningError, "no node of the graph is called so", 0, did_you_mean(found)
    )


def did_you_mean(found: Sequence[Candidate]) -> str | None:
    """A hint with the best names, if there are any."""
    names = [*dict.fromkeys(candidate.label for candidate in found)][:_SUGGESTED]
    return f"did you mean {' or '.join(names)}?" if names else None
