"""A recorded stream in an rdflib Dataset → sources that an engine can read.

An event is a named graph with a ``prov:generatedAtTime`` in the default graph. It belongs to the streams in
its ``dcterms:isPartOf``, also there. If no event has a stream, and the query reads one stream, all events
belong to it.
"""

from __future__ import annotations

import difflib
import io
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pyoxigraph as ox
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, ConjunctiveGraph, Dataset, Graph
from rdflib.term import BNode, Node, URIRef

from spaseq.engine import Source
from spaseq.errors import EngineError, SourceError, SpaseqWarning
from spaseq.language import syntax as s
from spaseq.patterns.expressions.walk import patterns
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.kb import Source as Knowledge
from spaseq.rdf.description import GENERATED_AT, PART_OF
from spaseq.sources import BadEvent, SourceOptions, load_catalog
from spaseq.sources.times import read_time
from spaseq.terms.interop import from_rdflib, to_triple

Name = URIRef | BNode


def default_graph(graph: Graph) -> Graph:
    """Return the graph with the times of a dataset's graphs; for a single graph, the graph itself."""
    if isinstance(graph, Dataset):
        return Graph(store=graph.store, identifier=DATASET_DEFAULT_GRAPH_ID)
    return graph.default_context if isinstance(graph, ConjunctiveGraph) else graph


def named_graph(graph: Graph, name: Node) -> Graph:
    """Return the graph of that name in the store of another one."""
    return Graph(store=graph.store, identifier=name)  # type: ignore[arg-type]  # names are what stores gave


def sources(
    graph: Graph, query: s.Query, catalog: str | Path | None, on_bad: Callable[[BadEvent], None]
) -> list[Source]:
    """Return a source for each stream of the query: the file that the catalogue names, or events of the
    dataset.

    Raises EngineError for a graph that is not a dataset, SourceError if the streams of the dataset's events
    are not known, or for an error in the catalogue. ``on_bad`` gets what RDF 1.1 cannot represent.
    """
    listed = load_catalog(catalog) if catalog is not None else {}
    wanted = list(dict.fromkeys(declaration.iri for declaration in query.streams))
    live = [iri for iri in wanted if iri in listed and isinstance(listed[iri].location, str)]
    if live:
        raise SourceError(
            f"{live[0]} is live in the catalogue, and a recorded stream has an end: use an Engine"
        )
    found = [Source(iri, listed[iri].location, listed[iri].options) for iri in wanted if iri in listed]
    left = [iri.value for iri in wanted if iri not in listed]
    if left:
        if not isinstance(graph, ConjunctiveGraph):
            raise EngineError(
                "a recorded stream is a Dataset, with one named graph per event: this is a single Graph"
            )
        found += [_source(graph, iri, names, on_bad) for iri, names in _by_stream(graph, left).items()]
    return found


def knowledge(graph: Graph, query: s.Query, kb: Mapping[str, Knowledge] | None) -> dict[str, Knowledge]:
    """Return the background graphs: those given, and those of the dataset that the query names."""
    found: dict[str, Knowledge] = dict(kb or {})
    if not isinstance(graph, ConjunctiveGraph):
        return found
    wanted = {name.value for name in KnowledgeBase({}).missing(query)}
    if not query.knowledge and any(
        isinstance(p, s.Graph) and isinstance(p.name, s.Var) for g in query.gpms for p in patterns(g.pattern)
    ):
        times = default_graph(graph)
        every = (context.identifier for context in graph.store.contexts() if context is not None)
        wanted |= {str(n) for n in every if isinstance(n, URIRef) and (n, GENERATED_AT, None) not in times}
        wanted.discard(str(times.identifier))
    for name in sorted(wanted - found.keys()):
        triples = named_graph(graph, URIRef(name))
        if len(triples):
            found[name] = triples
    return found


def _by_stream(dataset: Graph, wanted: list[str]) -> dict[str, list[Name]]:
    """Return the names of the events of each stream."""
    times = default_graph(dataset)
    events = {n: None for n in times.subjects(GENERATED_AT, None) if isinstance(n, URIRef | BNode)}
    said: dict[str, list[Name]] = defaultdict(list)
    unsaid: list[Name] = []
    for name in events:
        streams = [str(stream) for stream in times.objects(name, PART_OF)]
        for stream in streams:
            said[stream].append(name)
        if not streams:
            unsaid.append(name)
    if unsaid and not said:
        if len(wanted) > 1:
            raise SourceError(
                f"the dataset does not say which of its {len(unsaid)} events belong to which of "
                f"{len(wanted)} streams: say <{unsaid[0]}> <{PART_OF}> <{wanted[0]}> in the default graph, "
                "or give a catalogue"
            )
        return {wanted[0]: unsaid}
    if unsaid:
        _warn(
            f"{len(unsaid)} events of the dataset are part of no stream, as <{unsaid[0]}>: they are not read"
        )
    for iri in wanted:
        if iri not in said and said:
            near = difflib.get_close_matches(iri, said, 1)
            hint = f"; did you mean <{near[0]}>?" if near else ""
            _warn(f"no event of the dataset is part of stream <{iri}>{hint}")
    return {iri: said.get(iri, []) for iri in wanted}


def _warn(message: str) -> None:
    warnings.warn(message, SpaseqWarning, stacklevel=2)


def _source(dataset: Graph, stream: str, names: Iterable[Name], on_bad: Callable[[BadEvent], None]) -> Source:
    """Return the events of one stream as N-Quads, sorted by time, and by name for equal times."""
    times = default_graph(dataset)
    stamped = [(list(times.objects(name, GENERATED_AT)), name) for name in names]
    quads: list[ox.Quad] = []
    for stamps, name in sorted(stamped, key=lambda pair: (min(map(_order, pair[0])), pair[1])):
        try:
            quads += _quads(name, stamps, named_graph(dataset, name))
        except (TypeError, ValueError) as error:  # rdflib holds more than RDF 1.1 does
            on_bad(BadEvent(stream, f"graph {name}", str(error), ""))
    text = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
    assert text is not None  # it is None only when written to a file
    return Source(stream, io.BytesIO(text), SourceOptions(format="nq"))


def _order(time: Node) -> int:
    try:
        return read_time(from_rdflib(time)).value
    except (TypeError, ValueError):
        return 0  # the reader reports the error


def _quads(name: Name, times: Iterable[Node], graph: Graph) -> Iterator[ox.Quad]:
    iri = from_rdflib(name)
    assert not isinstance(iri, ox.Literal)
    for time in times:
        yield ox.Quad(iri, ox.NamedNode(GENERATED_AT), from_rdflib(time), ox.DefaultGraph())
    for triple in list(map(to_triple, graph)):
        yield ox.Quad(triple.subject, triple.predicate, triple.object, iri)
