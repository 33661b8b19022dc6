"""The nodes that a name may mean, because they have this name or a similar one, each with a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.errors import QueryError, QueryMeaningError
from spaseq.language.reading.source import QueryText
from spaseq.paths.graph.linking._kernel_index import HARD, Keys, read_keys
from spaseq.paths.graph.linking.index import Index, key, orders, shortened, spans
from spaseq.paths.graph.names import LABELS, local_name, names_of
from spaseq.paths.graph.numbering import read_term
from spaseq.paths.graph.saved.check import blocks
from spaseq.paths.graph.saved.file import Array
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.search._kernel import Flags, Ids, Nodes
from spaseq.paths.search.running import current
from spaseq.results.writers._json import json_term
from spaseq.terms._table_kernel import IRI, LENGTH, LITERAL
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm

#: Predicates with other names of nodes.
_OTHERS: Final = (
    NamedNode("http://www.w3.org/2004/02/skos/core#altLabel"),
    NamedNode("http://schema.org/alternateName"),
    NamedNode("https://schema.org/alternateName"),
    NamedNode("http://xmlns.com/foaf/0.1/name"),
)


class NameKind(IntEnum):
    """Where a name of a node comes from."""

    LABEL = 0
    OTHER_LABEL = 1
    LAST_SEGMENT = 2
    LITERAL = 3


#: The score of a node that has exactly the name looked for, by the kind of name.
_WORTH: Final = {
    NameKind.LABEL: 1.0,
    NameKind.OTHER_LABEL: 0.95,
    NameKind.LAST_SEGMENT: 0.9,
    NameKind.LITERAL: 0.8,
}

#: ``Candidate.by`` for nodes that have the name that was looked for.
_CALLED: Final = {kind: kind.name.lower().replace("_", " ") for kind in NameKind}

#: Factors of the score if the names differ in the order of words, if the name looked for is a short form
#: (initials, or one word), and if it is a phrase with the name in it. The last one grows with the name's
#: share of the letters.
_TURNED: Final = 0.95
_SHORT: Final = 0.85
_WORD_ALONE: Final = 0.75
_IN_PHRASE: Final = 0.65

#: At most this many names with a short form are candidates, of the nodes with most edges.
_MOST_SHORT: Final = 64

#: Longer literals are not names, unless they are labels.
_LONGEST_LITERAL: Final = 64

#: A text that begins so is a term as expressions and N-Triples write it, never a name.
_WRITTEN: Final = ("<", '"', "'", "_:")

#: The prefix of the names of the blocks of a file that hold the index of nodes.
INDEX: Final = "names.nodes."

#: At most this many linkers with additional label predicates are kept.
_KEPT: Final = 4

#: At most this many names are suggested.
_SUGGESTED: Final = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that a name may mean: its number, term, label, score (0 to 1), and why it was found.

    ``asked`` is the name that was looked for. If the node has this name, ``by`` says where: ``"label"``,
    ``"other label"``, ``"last segment"`` or ``"literal"``. If no node has it, ``by`` says how the node's name
    differs: ``"order"`` of words; ``"short"``, if ``asked`` has initials or is one word of the name;
    ``"phrase"``, if the name is in ``asked``; or ``"spelling"``. ``"embedding"``: found by ``Entities``.
    """

    node: int
    term: RdflibTerm
    label: str
    score: float
    by: str
    asked: str

    @property
    def is_called_so(self) -> bool:
        """Whether the node has the name that was looked for, not only a similar one."""
        return self.by in _CALLED.values()

    def as_json(self) -> dict[str, Any]:
        """Return the candidate as plain values; the term as in the SPARQL 1.1 results format."""
        term = json_term(self.term)
        return {"asked": self.asked, "name": self.label, "term": term, "score": self.score, "by": self.by}


@dataclass(frozen=True, eq=False)
class Linker:
    """The names of a graph's nodes; ``degrees`` has the number of edges of each node.

    ``changed`` maps nodes that have changed since ``index`` was made to the keys of their names.
    ``more_edges`` maps nodes to the number of edges added since ``degrees`` were counted.
    """

    index: Index
    degrees: Nodes
    changed: Mapping[int, tuple[tuple[str, NameKind], ...]] = field(default_factory=dict)
    more_edges: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Snapshot, labels: Iterable[int] = ()) -> Linker:
        """Make the linker of a graph; ``labels`` are the numbers of more predicates of names."""
        s, _, o = graph.edges()
        degrees = np.bincount(s, minlength=graph.nodes) + np.bincount(o, minlength=graph.nodes)
        return cls(_index(graph, labels), degrees.astype(np.int32))

    @cached_property
    def _more(self) -> Index:
        """The index of the names of changed nodes."""
        return Index.of((name, node, kind) for node, keys in self.changed.items() for name, kind in keys)

    def arrays(self, graph: Snapshot) -> dict[str, Array]:
        """Return the arrays that ``of_arrays`` takes; ``graph`` is the graph of this linker."""
        linker = Linker.of(graph) if self.changed else self
        return {**linker.index.arrays(), "degrees": linker.degrees}

    def degree(self, node: int) -> int:
        """Return how many edges a node has."""
        counted = int(self.degrees[node]) if node < len(self.degrees) else 0
        return counted + self.more_edges.get(node, 0)

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Linker:
        """Make a linker from the result of ``arrays``."""
        rest = dict(arrays)
        degrees = rest.pop("degrees")
        return cls(Index.of_arrays(rest), degrees)

    def link(self, graph: Snapshot, name: str, k: int | None) -> list[Candidate]:
        """Return the best candidates: all nodes with the name or, if there are none, with similar names.

        Similar names are first those with the same words in another order. If there are none, they are full
        names that ``name`` is a short form of, names inside ``name``, and names with a similar spelling.
        """
        best = dict[int, tuple[float, str]]()
        for ways in (((None, _same),), (("order", _turned),), _UNLIKE):
            for by, way in ways:
                for node, kind, likeness in self._found(partial(way, self, name)):
                    found = (round(likeness * _WORTH[kind], 4), by or _CALLED[kind])
                    best[node] = max(best.get(node, found), found, key=lambda one: one[0])
            if best:
                break
        order = sorted(best, key=lambda node: (-best[node][0], -self.degree(node), node))
        names = names_of(graph)
        return [Candidate(node, graph.term(node), names.node(node), *best[node], name) for node in order[:k]]

    def _found(self, ask: _Ask) -> Iterator[tuple[int, NameKind, float]]:
        """Yield the nodes that ``ask`` finds in the indexes, with the kind of name and its similarity."""
        for index in (self.index, self._more) if self.changed else (self.index,):
            for place, likeness in ask(index):
                node = int(index.numbers[place])
                if index is not self.index or node not in self.changed:
                    yield node, NameKind(int(index.kinds[place])), likeness

    def connected(self, index: Index, places: Ids) -> list[int]:
        """Return at most 64 of ``places``, of the nodes with most edges first."""
        nodes = index.numbers[places]
        degrees = np.where(
            nodes < len(self.degrees), self.degrees[np.minimum(nodes, len(self.degrees) - 1)], 0
        )
        found: list[int] = places[np.argsort(-degrees, kind="stable")[:_MOST_SHORT]].tolist()
        return found


#: The places of names in an index, each with its similarity to the name looked for.
_Places = Iterable[tuple[int, float]]
_Ask = Callable[[Index], _Places]


def _same(_: Linker, name: str, index: Index) -> _Places:
    return [(place, 1.0) for place in index.same(name)]


def _turned(_: Linker, name: str, index: Index) -> _Places:
    return [(place, _TURNED) for turned in orders(name) for place in index.same(turned)]


def _short(linker: Linker, name: str, index: Index) -> _Places:
    for written in (name, *orders(name)):
        if (short := shortened(written)) is not None:
            begin, end = short
            for place in linker.connected(index, index.holding(begin, end)):
                yield place, _SHORT if begin else _WORD_ALONE


def _in_phrase(_: Linker, phrase: str, index: Index) -> _Places:
    for text, share in spans(phrase):
        for place in index.same(text):
            yield place, _IN_PHRASE + (1 - _IN_PHRASE) * share


def _alike(_: Linker, name: str, index: Index) -> _Places:
    return index.alike(name)


_UNLIKE: Final = (("short", _short), ("phrase", _in_phrase), ("spelling", _alike))


class Linkers:
    """The linkers of a graph, by their label predicates; the latest ones are kept."""

    def __init__(self, graph: Snapshot) -> None:
        self._graph = graph
        self.made: dict[tuple[int, ...], Linker] = {}

    def by(self, labels: tuple[int, ...]) -> Linker:
        """Return the linker with names that include the values of the predicates ``labels``."""
        found = self.made.get(labels)
        if found is None:
            file = None if labels else self._graph.file
            made = Linker.of(self._graph, labels) if file is None else Linker.of_arrays(blocks(file, INDEX))
            found = self.made.setdefault(labels, made)
            for old in [key for key in self.made if key][:-_KEPT]:
                self.made.pop(old, None)
        return found


def linker_of(graph: Snapshot, labels: tuple[int, ...] = ()) -> Linker:
    """Return the linker of a graph; its names include the values of the predicates ``labels``."""
    return graph.derived(Linkers).by(labels)


def label_predicates(graph: Snapshot, labels: Any) -> tuple[int, ...]:
    """Return predicates, or one, as distinct sorted numbers. Raises QueryError for one that no edge has."""
    given = [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else list(labels)
    found = set[int]()
    for label in given:
        number = graph.predicate_number(label)
        if number is None:
            alike = names_of(graph).alike(local_name(read_term(label, graph.prefixes)))
            raise QueryText(str(label), "<labels>").error(
                QueryMeaningError, "no edge has this predicate", 0, alike and f"did you mean {alike}?"
            )
        found.add(number)
    return tuple(sorted(found))


def _index(graph: Snapshot, labels: Iterable[int]) -> Index:
    """Make the index of all nodes; names include the values of the predicates ``labels``."""
    contents = graph.contents
    edges = contents.edges
    labelling = np.zeros(graph.nodes, dtype=np.bool_)  # what is the label of something else
    by_kind = label_kinds(graph, labels)
    for predicate in chain(*by_kind.values()):
        labelling[edges.o[edges.begins[predicate] : edges.begins[predicate + 1]]] = True
    keys = _keys(graph, labelling)
    is_literal = keys.kinds == LITERAL
    own = np.flatnonzero((keys.kinds == IRI) | (is_literal & ~labelling)).astype(np.int32)
    kinds = np.where(is_literal[own], NameKind.LITERAL, NameKind.LAST_SEGMENT).astype(np.uint8)
    columns = [(own, own, kinds)]
    for kind, predicates in by_kind.items():
        for predicate in predicates:
            low, high = edges.begins[predicate : predicate + 2].tolist()
            there = is_literal[edges.o[low:high]]
            nodes, values = edges.s[low:high][there], edges.o[low:high][there]
            columns.append((values, nodes, np.full(len(nodes), kind, dtype=np.uint8)))
    places, numbers, kinds = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return Index.of_columns(keys, places, numbers, kinds)


def label_kinds(graph: Snapshot, labels: Iterable[int]) -> dict[NameKind, tuple[int, ...]]:
    """Return the label predicates, with ``labels``, by the kind of name."""
    usual, others = (
        [n for iri in iris if (n := graph.predicate_number(iri)) is not None] for iris in (LABELS, _OTHERS)
    )
    return {NameKind.LABEL: (*usual, *labels), NameKind.OTHER_LABEL: tuple(others)}


def _keys(graph: Snapshot, labelling: Flags) -> Keys:
    """Return the key of each node: of an IRI's last segment, of a label or of a short literal."""
    dictionary, ids = graph.contents.dictionary, graph.contents.node_ids
    with dictionary.lock:
        table = dictionary.table()
        lengths = table.terms[ids, LENGTH]
        keys = Keys(
            np.empty(int(lengths.sum()) + 1, dtype=np.uint8),
            np.empty(len(ids), dtype=np.int64),
            np.empty(len(ids), dtype=np.int64),
            np.empty(len(ids), dtype=np.uint8),
        )
        used = read_keys(table.terms, table.arena, ids, labelling, _LONGEST_LITERAL, keys)
    hard = np.flatnonzero(keys.kinds >= HARD)
    texts, stop = list[bytes](), current()
    for node, term in zip(hard.tolist(), graph.glance(hard), strict=True):
        stop.check()
        name = own_name(term, labelling[node])
        texts.append(b"" if name is None else key(name).encode())
        keys.kinds[node] -= HARD
    keys.lengths[hard] = [len(text) for text in texts]
    keys.begins[hard] = used + np.cumsum([0, *map(len, texts)])[:-1]
    text = np.concatenate([keys.text[:used], np.frombuffer(b"".join(texts), dtype=np.uint8)])
    return keys._replace(text=text if len(text) else np.zeros(1, dtype=np.uint8))


def own_name(term: Term, is_label: bool) -> str | None:
    """Return the name of a node by its term alone; only a literal that is a label may be long."""
    if isinstance(term, NamedNode):
        return local_name(term)
    if isinstance(term, Literal) and (is_label or len(term.value) <= _LONGEST_LITERAL):
        return term.value
    return None


def topics(
    graph: Snapshot, values: Any, labels: Any = (), *, alike: bool = False
) -> tuple[Ids, tuple[Term, ...], tuple[Candidate, ...]]:
    """Return topics as numbers of nodes, the terms that are not nodes, and the nodes that names stand for.

    A text that is not a term of the graph is a name, and means all nodes with this name. Values of the
    predicates ``labels`` are names, too. If no node has the name, and ``alike`` is True, it means the nodes
    with the most similar name (see ``Linker.link``). Raises QueryError, with similar names, for a name that
    no node has, and for a predicate that no edge has.
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
        candidates = _called(graph, value, by, alike) if type(value) is str else []
        if candidates:
            linked += candidates
            found += [candidate.node for candidate in candidates]
        else:
            nodes, strange = graph.numbers([value])
            found += nodes.tolist()
            strangers += strange
    return np.array([*dict.fromkeys(found)], dtype=np.int64), tuple(dict.fromkeys(strangers)), tuple(linked)


def _called(graph: Snapshot, text: str, labels: tuple[int, ...], alike: bool) -> list[Candidate]:
    """Return the nodes that a name means; none for a text that is a term, of the graph or not."""
    if text.startswith(_WRITTEN):
        return []
    is_term = True
    try:
        if graph.node(text) is not None or isinstance(read_term(text, graph.prefixes), NamedNode):
            return []
    except QueryError:
        is_term = False  # a term here is a literal, such as a year
    found = linker_of(graph, labels).link(graph, text, None)
    same = [candidate for candidate in found if candidate.is_called_so]
    if same:
        return [candidate for candidate in same if candidate.score == same[0].score]
    if found and alike and not is_term:
        return [candidate for candidate in found if candidate.label == found[0].label]
    if is_term or (":" in text and " " not in text):
        return []  # the caller reads it as a term, and raises the error
    raise QueryText(text, "<topic>").error(
        QueryMeaningError, "no node of the graph is called so", 0, did_you_mean(found)
    )


def taken_for(linked: Iterable[Candidate]) -> list[str]:
    """Return a warning for each name that no node has and that was linked to a similar name."""
    told = {c.asked: c.label for c in linked if not c.is_called_so}
    return [f"no node is called {asked}: {label} is taken" for asked, label in told.items()]


def did_you_mean(found: Sequence[Candidate]) -> str | None:
    """Return a hint with the best names, or None without candidates."""
    names = [*dict.fromkeys(candidate.label for candidate in found)][:_SUGGESTED]
    return f"did you mean {' or '.join(names)}?" if names else None
