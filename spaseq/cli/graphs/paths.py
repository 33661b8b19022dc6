"""``spaseq paths``: pairs and paths from a graph to a file or standard output."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path as FilePath
from typing import IO, Any, Final

from spaseq.automaton import draw
from spaseq.bounds import Shed
from spaseq.cli.arguments import PathsEngine, PathsFormat, UsageError
from spaseq.cli.console import say, warn
from spaseq.cli.running.delivery import silence_stdout
from spaseq.cli.running.outputs import output
from spaseq.language.syntax.printing import print_term
from spaseq.paths import Budget, KnowledgeGraph, Path, drawing, load, to_networkx
from spaseq.paths.explain import explain
from spaseq.paths.graph.loading import term
from spaseq.paths.graph.numbering import read_term
from spaseq.results.writers._base import harmless
from spaseq.results.writers._json import json_term
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib, to_rdflib
from spaseq.terms.iris import WELL_KNOWN

#: The first rows of a table determine the widths of its columns.
_MEASURED: Final = 200


_DRAWINGS: Final = (PathsFormat.TEXT, PathsFormat.DOT, PathsFormat.SVG, PathsFormat.JSON)

#: Formats of edges: paths have edges, pairs have none.
_OF_EDGES: Final = (PathsFormat.NQUADS, PathsFormat.SVG)

#: The most paths in a picture, unless the user gives a number.
_IN_A_PICTURE: Final = 50


def explain_path(
    path: str,
    graph: FilePath | None,
    graph_format: str | None,
    form: PathsFormat | None,
    out: FilePath | None,
) -> None:
    """Print or draw the automaton of an expression."""
    chosen = form or PathsFormat.TEXT
    if chosen not in _DRAWINGS:
        raise UsageError(f"-f {chosen} is for answers: with --explain use {', '.join(_DRAWINGS)}")
    explanation = explain(path, load(graph, format=graph_format) if graph else None, WELL_KNOWN)
    text = {
        PathsFormat.TEXT: lambda: f"{explanation}\n",
        PathsFormat.DOT: lambda: draw.dot(explanation.nfa),
        PathsFormat.SVG: lambda: draw.svg(explanation.nfa),
        PathsFormat.JSON: lambda: json.dumps(explanation.as_json(), ensure_ascii=False, indent=2) + "\n",
    }[chosen]()
    write([text], out)


@dataclass(frozen=True, slots=True)
class PathRequest:
    """The options of a search, as ``KnowledgeGraph.paths`` takes them."""

    path: str
    sources: list[str] | None
    targets: list[str] | None
    mode: str | None
    shortest: int | None
    most: int | None
    budget: Budget


def answer_paths(
    opened: Callable[[], KnowledgeGraph],
    request: PathRequest,
    engine: PathsEngine,
    form: PathsFormat | None,
    out: FilePath | None,
) -> None:
    """Write the pairs that a path joins; with a mode or ``shortest``, the paths.

    Each is written as it is found: there may be more than memory holds, and the reader may stop early.
    """
    chosen = form or PathsFormat.TABLE
    if chosen in _DRAWINGS and chosen not in _OF_EDGES:
        raise UsageError(f"-f {chosen} is for --explain: answers are table, ndjson, csv, nquads or svg")
    path, sources, targets, most = request.path, request.sources, request.targets, request.most
    wants_paths = request.mode is not None or request.shortest is not None
    if chosen in _OF_EDGES and not wants_paths:
        raise UsageError(f"-f {chosen} shows the edges of paths, and pairs have none: add --mode")
    if request.budget.is_bound and not wants_paths:
        raise UsageError("--latency and --memory bound the search for paths, not for pairs: add --mode")
    if engine is not PathsEngine.LOCAL and wants_paths:
        raise UsageError(f"--engine {engine} finds pairs: leave --mode and --shortest out")
    if chosen is PathsFormat.SVG and most is None:
        most = _IN_A_PICTURE
    found = opened()
    if wants_paths:
        paths = found.paths(
            path, sources, targets, request.mode or "WALK", request.shortest, most, request.budget
        )
        write(_shown_paths(paths, chosen), out)
        truncated = paths.truncated
        if paths.shed is not None:
            tell_given_up(paths.shed)
    elif engine is not PathsEngine.LOCAL:
        for warning in found.check(path, sources, targets):
            warn(warning)
        rows = _pairs_on_spark(found, engine, path, sources, targets, most)
        truncated = most is not None and len(rows) > most
        write(_shown_pairs(found, rows[:most], chosen), out)
    else:
        pairs = chain.from_iterable(found.batches(path, sources, targets))
        write(_shown_pairs(found, islice(pairs, most), chosen), out)
        truncated = most is not None and next(pairs, None) is not None
    if truncated:
        say(f"there are more than {most:,}")


def tell_given_up(shed: Shed) -> None:
    """Report what a search shed to keep its bounds, if anything."""
    if shed.active:
        say("best effort: " + ", ".join(f"{count:,} {what}" for what, count in shed.by_state.items()))


def _pairs_on_spark(
    graph: KnowledgeGraph,
    engine: PathsEngine,
    path: str,
    sources: list[str] | None,
    targets: list[str] | None,
    most: int | None,
) -> list[tuple[Any, Any]]:
    """Return the pairs; one more than ``most`` if there are more."""
    begins, ends = (_terms(graph, given) for given in (sources, targets))  # before Spark starts
    try:
        from pyspark.errors import PySparkRuntimeError

        from spaseq.spark import graphframe, path_pairs, path_pairs_of_graphframe, session
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--engine {engine} needs PySpark ({error.name} is missing): pip install 'spaseq[spark]'"
        ) from None
    try:
        spark = session("local[*]")
    except PySparkRuntimeError as error:
        raise UsageError(
            f"Spark does not start: {error}\nhint: it needs Java 17, found by JAVA_HOME"
        ) from None
    if engine is PathsEngine.SPARK:
        rows = path_pairs(spark, graph, path, begins, ends)
    else:
        rows = path_pairs_of_graphframe(graphframe(spark, graph), path, begins, ends, prefixes=graph.prefixes)
    # Not by LIMIT: Spark then ends the searches, which log broken pipes.
    found = rows.collect() if most is None else islice(rows.toLocalIterator(), most + 1)
    return [(to_rdflib(term(row.source)), to_rdflib(term(row.target))) for row in found]


def _terms(graph: KnowledgeGraph, given: list[str] | None) -> list[Term] | None:
    return None if given is None else [read_term(text, graph.prefixes) for text in given]


def _shown_pairs(graph: KnowledgeGraph, pairs: Iterable[tuple[Any, Any]], form: PathsFormat) -> Iterator[str]:
    match form:
        case PathsFormat.NDJSON:
            return (_line({"source": json_term(s), "target": json_term(t)}) for s, t in pairs)
        case PathsFormat.CSV:
            return map(_csv, chain([("source", "target")], pairs))
        case _:
            show = _shower(graph)
            return table(("source", "target"), ((show(s), show(t)) for s, t in pairs))


def _shown_paths(paths: Iterable[Path], form: PathsFormat) -> Iterator[str]:
    match form:
        case PathsFormat.NDJSON:
            return map(_path_line, paths)
        case PathsFormat.CSV:
            head = [("source", "target", "length", "path")]
            return map(_csv, chain(head, ((path.start, path.end, len(path), str(path)) for path in paths)))
        case PathsFormat.NQUADS:
            return (_quads(number, path) for number, path in enumerate(paths, 1))
        case PathsFormat.SVG:
            return iter([drawing.svg(to_networkx(paths))])
        case _:
            return table(("length", "path"), ((str(len(path)), str(path)) for path in paths))


def _path_line(path: Path) -> str:
    return _line(
        {
            "source": json_term(path.start),
            "target": json_term(path.end),
            "length": len(path),
            "nodes": [json_term(term) for term in path.terms],
            "triples": [[json_term(term) for term in triple] for triple in path.triples],
        }
    )


def _quads(number: int, path: Path) -> str:
    """Return the edges of a path as a graph named after it."""
    triples = dict.fromkeys(path.triples)
    return "".join(
        f"{from_rdflib(s)} {from_rdflib(p)} {from_rdflib(o)} _:path{number} .\n" for s, p, o in triples
    )


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _csv(row: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue()


def _shower(graph: KnowledgeGraph) -> Callable[[Any], str]:
    return lambda term: print_term(from_rdflib(term), graph.prefixes)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines of columns, as wide as in the first rows."""
    rows = iter(rows)
    first = list(islice(rows, _MEASURED))
    widths = [max(map(len, column)) for column in zip(head, *first, strict=True)]
    for row in chain([head], first, rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"


def write(texts: Iterable[str], out: FilePath | None) -> None:
    """Write to a file, or to standard output until its reader stops."""
    with output(out) as file:
        try:
            _write_all(texts, file)
        except BrokenPipeError:  # the reader has stopped, as with `| head`
            silence_stdout()


def _write_all(texts: Iterable[str], file: IO[bytes]) -> None:
    is_terminal = file.isatty()
    for text in texts:
        if is_terminal:
            text = harmless(text)
        # Text of the command line need not be UTF-8; it is escaped as in JSON.
        file.write(text.encode(errors="backslashreplace"))
    file.flush()
