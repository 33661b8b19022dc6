"""The background knowledge base: named graphs that do not change while a query runs.

Each graph is also an event, so that the routes for GPMs evaluate GRAPH patterns, once per pattern.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
import zstandard
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, Triple, parse

from spaseq.errors import KnowledgeError, warn
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.language.syntax import Graph, Pattern, Query, Var
from spaseq.nesting import Guarded, NestingError, too_long, whole
from spaseq.patterns.expressions.compiled import Solution
from spaseq.patterns.expressions.walk import only_joins, patterns
from spaseq.patterns.oxigraph import prepare
from spaseq.patterns.spectra.joins import NO_CONTEXT
from spaseq.patterns.spectra.solutions import Solutions, substituted
from spaseq.sources._bytes import MARK
from spaseq.terms.dictionary import UNBOUND, Dictionary, Ids
from spaseq.terms.identified import beyond_rdf11

if TYPE_CHECKING:  # rdflib is slow to import; a caller with a Graph has imported it
    import rdflib

Source: TypeAlias = "PathLike[str] | rdflib.Graph | str"

#: Messages show at most this many characters of a term.
_SHOWN: Final = 200

_FORMATS = {"xml": RdfFormat.RDF_XML, "owl": RdfFormat.RDF_XML}


class _Graphs:
    """The triples of the named graphs, and the batch they become. ``version`` counts their changes."""

    def __init__(self, triples: Mapping[NamedNode, Sequence[Triple]]) -> None:
        self.triples = triples
        self.version = 0
        self._batch: EventBatch | None = None

    def change(self, triples: Mapping[NamedNode, Sequence[Triple]]) -> None:
        """Replace the triples of all graphs."""
        self.triples, self._batch = triples, None
        self.version += 1

    def batch(self, dictionary: Dictionary) -> EventBatch:
        """Return one event per graph, interned at the first call for a dictionary."""
        if self._batch is None or self._batch.dictionary is not dictionary:
            builder = BatchBuilder(dictionary, NamedNode("urn:spaseq:kb"), Clock.TICKS)
            for n, (name, triples) in enumerate(self.triples.items()):
                builder.add(0, n, triples, name)
            self._batch = builder.build()
        return self._batch


class KnowledgeBase:
    """Named graphs, by IRI: a file, a ``rdflib.Graph``, or Turtle text.

    A string is Turtle if it has a ``<`` or a line break or is blank, else the name of a file. The extension
    of a file gives its format; ``.gz`` and ``.zst`` are unpacked. Raises ``KnowledgeError``, with file and
    line, for what cannot be read.

    >>> kb = KnowledgeBase({"http://example.org/kb": "<http://e.org/a> <http://e.org/p> 1 ."})
    >>> kb.names
    ('http://example.org/kb',)
    """

    def __init__(self, graphs: Mapping[str, Source] | Mapping[NamedNode, Source]) -> None:
        found: dict[NamedNode, list[Triple]] = {}
        if not isinstance(graphs, Mapping):
            raise KnowledgeError(
                f"kb={graphs!r:.60}: give each background graph the IRI that the query calls it by, such as "
                "kb={'http://example.org/kb': 'kb.ttl'}"
            )
        for name, source in graphs.items():
            iri = name if isinstance(name, NamedNode) else _named(name)
            found[iri] = list(_read(iri, source))
        self._graphs = _Graphs(found)
        # The graphs that FROM NAMED leaves visible to a variable in GRAPH; None for all.
        self._visible: frozenset[NamedNode] | None = None
        self._cache: dict[Graph, Solutions] = {}
        self._cached_version = 0
        self._cached_for: Dictionary | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The IRIs of the named graphs."""
        return tuple(name.value for name in self._graphs.triples)

    @property
    def version(self) -> int:
        """How often the graphs have changed."""
        return self._graphs.version

    @property
    def graphs(self) -> Mapping[NamedNode, Sequence[Triple]]:
        """The triples of each graph as it is now; a change makes another mapping."""
        return self._graphs.triples

    def change(self, name: NamedNode, triples: Sequence[Triple] | None) -> None:
        """Replace the triples of a graph, or remove it with None, also in all results of ``restrict``.

        Earlier matches stay. No query may run meanwhile; ``Engine.change`` ensures that.
        """
        others = {known: of for known, of in self._graphs.triples.items() if known != name}
        self._graphs.change(others if triples is None else {**others, name: triples})

    def restrict(self, named: Iterable[NamedNode]) -> KnowledgeBase:
        """Return the same graphs for a query with ``FROM NAMED``: a variable in GRAPH ranges over
        those only.
        """
        wanted = frozenset(named) if self._visible is None else self._visible.intersection(named)
        if not wanted:
            return self
        other = KnowledgeBase({})
        other._graphs, other._visible = self._graphs, wanted
        return other

    def unshared(self) -> KnowledgeBase:
        """Return the same graphs, for use with another dictionary beside this one.

        What is made of a graph for a dictionary must live as long as the dictionary is used.
        """
        other = KnowledgeBase({})
        other._graphs, other._visible = _Graphs(self._graphs.triples), self._visible
        return other

    def missing(self, query: Query) -> tuple[NamedNode, ...]:
        """Return the graphs that a query names and that are not here, in the order of their names."""
        wanted = {*query.knowledge}
        parts: list[Pattern] = [gpm.pattern for gpm in query.gpms]
        parts += query.filters
        for part in parts:
            wanted |= {
                p.name for p in patterns(part) if isinstance(p, Graph) and isinstance(p.name, NamedNode)
            }
        return tuple(sorted(wanted - self._graphs.triples.keys(), key=lambda name: name.value))

    def require(self, query: Query, gone: Container[NamedNode] = ()) -> None:
        """Raise ``KnowledgeError`` if the query names a missing graph, except those ``gone`` from here."""
        missing = [name for name in self.missing(query) if name not in gone]
        if missing:
            known = ", ".join(f"<{name}>" for name in self.names) or "none"
            raise KnowledgeError(
                f"the query names a background graph that was not supplied: {missing[0]}; supplied: {known}"
            )

    def batch(self, dictionary: Dictionary) -> EventBatch:
        """Return the graphs as events, in the order of ``names``; ``graph`` is their name."""
        return self._graphs.batch(dictionary)

    def visible(self, dictionary: Dictionary) -> list[int]:
        """Return the ids of the graphs over which a variable in GRAPH ranges."""
        visible = self._visible
        names = [name for name in self._graphs.triples if visible is None or name in visible]
        return [dictionary.intern(name) for name in names]

    def solutions(self, graph: Graph, dictionary: Dictionary, context: Solution = NO_CONTEXT) -> Solutions:
        """Return the solutions of a GRAPH pattern, the same in every event; evaluated once.

        ``context`` replaces variables. This costs an evaluation only where it is more than a join.
        """
        if context and not only_joins(graph.pattern):
            return self._evaluate(graph, dictionary, context)
        if self._cached_for is not dictionary:
            self._cache.clear()
            self._cached_for = dictionary
            dictionary.hold(self)
        if self._cached_version != self.version:
            self._cache.clear()
            self._cached_version = self.version
        found = self._cache.get(graph)
        if found is None:
            found = self._cache[graph] = self._evaluate(graph, dictionary, NO_CONTEXT)
        return substituted(found, context) if context else found

    def live_ids(self) -> Iterable[Ids]:
        """Yield the ids in its solutions: computed terms are in no graph."""
        return [column for found in self._cache.values() for column in found.columns.values()]

    def _evaluate(self, graph: Graph, dictionary: Dictionary, context: Solution) -> Solutions:
        batch, name = self.batch(dictionary), graph.name
        if isinstance(name, NamedNode):
            wanted = [dictionary.intern(name)]
        elif name.name in context:
            wanted = [i for i in self.visible(dictionary) if i == context[name.name]]
        else:
            wanted = self.visible(dictionary)
        part = batch.take(np.flatnonzero(np.isin(batch.graph, wanted)))
        spending = dictionary.spending
        with spending.background():
            found = prepare(graph.pattern, dictionary, self).evaluate(part, context)
            found = found.everywhere(np.arange(len(part)), spending)
        assert found.event is not None
        if isinstance(name, Var) and name.name not in context:
            names = part.graph[found.event]
            bound = found.column(name.name)
            found = found.extend(name.name, names).take((bound == UNBOUND) | (bound == names))
        return Solutions(len(found), None, found.columns)


def _named(name: str) -> NamedNode:
    try:
        return NamedNode(name)
    except ValueError as error:
        raise KnowledgeError(f"not an IRI: {name!r}: {error}") from None


def _read(name: NamedNode, source: Source) -> Iterator[Triple]:
    """Return the triples of a source; in a dataset, those of the default graph and of the graph ``name``."""
    if not isinstance(source, str | PathLike):
        text = source.serialize(format="nt", encoding="utf-8")
        return _triples(name, lambda: io.BytesIO(text), RdfFormat.N_TRIPLES, f"<{name.value}>")
    if isinstance(source, str) and ("<" in source or "\n" in source or not source.strip()):
        turtle = source.encode()
        return _triples(name, lambda: io.BytesIO(turtle), RdfFormat.TURTLE, f"Turtle of <{name.value}>")
    path = Path(fspath(source))
    return _file(name, path)


def _file(name: NamedNode, path: Path) -> Iterator[Triple]:
    suffixes = [suffix[1:].lower() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in ("gz", "zst") else None
    extension = suffixes[-1] if suffixes else ""
    rdf_format = _FORMATS.get(extension) or RdfFormat.from_extension(extension)
    if rdf_format is None:
        raise KnowledgeError(f"{path}: no RDF format has the extension {extension!r}")
    try:
        yield from _triples(name, lambda: unpacked(path, packing), rdf_format, str(path))
    except (OSError, zstandard.ZstdError, EOFError) as error:
        raise KnowledgeError(f"{path}: {error}") from error


def unpacked(path: Path, packing: str | None) -> IO[bytes]:
    """Return an open file, read through ``gz`` or ``zst``, behind the byte order mark that it may
    begin with.
    """
    stream: Any
    match packing:
        case "gz":
            stream = gzip.open(path)  # noqa: SIM115  # the caller closes it
        case "zst":
            unpacker = zstandard.ZstdDecompressor()
            packed = unpacker.stream_reader(path.open("rb"), read_across_frames=True)
            stream = io.BufferedReader(cast("io.RawIOBase", packed))
        case _:
            stream = path.open("rb")
    if stream.peek(len(MARK)).startswith(MARK):
        stream.read(len(MARK))
    return cast(IO[bytes], stream)


def triples_in(name: NamedNode, text: bytes, rdf_format: RdfFormat, place: str) -> list[Triple]:
    """Return the triples of a document, for the graph ``name``; KnowledgeError, with the ``place``, if wrong.

    A triple that only RDF 1.2 has is wrong, too: a sender sees no warning.
    """
    return list(_triples(name, lambda: io.BytesIO(text), rdf_format, place, strict=True))


def of_rdf11(quads: Iterable[Quad], place: object, *, strict: bool = False) -> Iterator[Quad]:
    """Yield the quads that are RDF 1.1; warn once of how many are not.

    With ``strict``, raise KnowledgeError for the first one instead.
    """
    left_out, first = 0, ""
    for quad in quads:
        problem = beyond_rdf11(quad.object)
        if problem and strict:
            raise KnowledgeError(f"{place}: {problem}")
        if problem or isinstance(quad.subject, Triple):
            first = first or problem[:_SHOWN]
            left_out += 1
        else:
            yield quad
    if left_out:
        triples = "1 triple is" if left_out == 1 else f"{left_out:,} triples are"
        warn(f"{place}: {triples} left out, the first for {first}")


def _triples(
    name: NamedNode,
    start: Callable[[], IO[bytes]],
    rdf_format: RdfFormat,
    place: str,
    *,
    strict: bool = False,
) -> Iterator[Triple]:
    """Yield the triples of the bytes that ``start`` opens. ``strict``: see ``of_rdf11``."""
    with start() as stream:
        guarded = Guarded(stream, lambda: whole(start), rdf_format)
        quads: Iterator[Quad] = iter(parse(cast(IO[bytes], guarded), rdf_format, base_iri=name.value))
        try:
            for quad in of_rdf11(quads, place, strict=strict):
                if quad.graph_name not in (name, DefaultGraph()):
                    raise KnowledgeError(
                        f"{place}: has a graph {quad.graph_name}; only <{name.value}> can be read"
                    )
                yield quad.triple
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            raise KnowledgeError(f"{place}{line}: {error.msg}") from error
        except NestingError as error:
            raise KnowledgeError(f"{place}: {error}") from None
        except MemoryError as error:
            raise KnowledgeError(f"{place}: {too_long(error)}") from None
