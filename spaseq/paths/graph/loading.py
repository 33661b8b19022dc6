"""Load files, graphs, tables and triples into columns of ids."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache, partial
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import quote

import numpy as np
import zstandard
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse
from rdflib.term import Literal as RdflibLiteral
from rdflib.term import Node

from spaseq.errors import KnowledgeError, SourceError
from spaseq.limits import Limits
from spaseq.nesting import Guarded, NestingError, too_long, whole
from spaseq.paths.graph.provenance import Noted, Sources
from spaseq.patterns.kb import of_rdf11, unpacked
from spaseq.sources._bytes import BrokenBytesError, read_blocks, unmarked, whole_lines
from spaseq.sources.formats.lines import WARM_UP
from spaseq.terms.dictionary import Dictionary, Ids, Term
from spaseq.terms.interop import from_rdflib

if TYPE_CHECKING:  # whoever has one of them has imported it
    import rdflib

#: The source that a graph is loaded from; a table is any object with columns.
Source: TypeAlias = "str | PathLike[str] | rdflib.Graph | Iterable[tuple[Any, Any, Any]] | Any"

_LINES: Final = {"nt": "nt", "ntriples": "nt", "nq": "nq", "nquads": "nq"}
_OTHERS: Final = {"xml": RdfFormat.RDF_XML, "owl": RdfFormat.RDF_XML}
_EXTENSIONS: Final = ("nt", "nq", "ttl", "trig", "n3", "rdf", "jsonld")
_BASE: Final = re.compile(rb"\s*@?(?:base|prefix|version)\b", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_QUOTED: Final = re.compile(r"<[^\s<>]*>|_:\S+|\".*\"(?:@[A-Za-z0-9-]+|\^\^<[^\s<>]*>)?", re.DOTALL)
#: Edge lists, by extension, and what separates their cells.
_LISTS: Final = {"csv": ",", "tsv": "\t"}
#: The first row of an edge list that only names the columns begins with one of these.
_HEADERS: Final = frozenset(("subject", "source", "head", "from", "s"))
#: The predicate of edges without a name, and the attributes of networkx edges that have it.
_EDGE: Final = "edge"
_NAMING: Final = ("predicate", "relation", "label")
#: Texts that are terms even with a base; other texts are then names.
_ABSOLUTE: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:)\S+|" + _QUOTED.pattern, re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]+)?")
_HEAD: Final = 1 << 12
_KEPT: Final = 1 << 16
_TOLD: Final = 5


@dataclass(slots=True)
class Loaded:
    """Triples as ids of a dictionary, repetitions included, and their file's prefixes and sources."""

    dictionary: Dictionary
    s: Ids
    p: Ids
    o: Ids
    prefixes: Mapping[str, str] = field(default_factory=dict)
    sources: Sources = field(default_factory=dict)


def load_triples(
    source: Source,
    form: str | None = None,
    base: str | None = None,
    only: str | None = None,
    sources: str | None = None,
) -> Loaded:
    """Return the triples of a source. Raises KnowledgeError, with file and line, if it cannot be read.

    ``form`` replaces the extension of a file. ``base`` is the IRI that plain names are appended to. ``only``
    is the IRI of the one named graph to read. ``sources`` is the argument of ``Noted``.
    """
    noted = None if sources is None else Noted(sources)
    if isinstance(source, str | PathLike):
        return _file(Path(fspath(source)), form, base, only, noted)
    for name, given in (("format", form), ("graph", only), ("sources", sources)):
        if given is not None:
            raise KnowledgeError(f"{name}={given!r} is for files: the source is {type(source).__name__}")
    if hasattr(source, "adj") and hasattr(source, "is_multigraph"):
        return _collected(_named(_network(source, base), base), _prefixes(base))
    if hasattr(source, "namespaces") and hasattr(source, "triples"):
        return _rdflib(source)
    if hasattr(source, "column_names") or hasattr(source, "columns"):
        source = _table(source)
    return _collected(_named(cast("Iterable[tuple[Any, Any, Any]]", source), base), _prefixes(base))


# --- files


def _file(path: Path, form: str | None, base: str | None, only: str | None, noted: Noted | None) -> Loaded:
    suffixes = [suffix[1:].lower() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in ("gz", "zst") else None
    extension = form.removeprefix(".").lower() if form else suffixes[-1] if suffixes else ""
    try:
        if extension in _LISTS and only is None and noted is None:
            with io.TextIOWrapper(unpacked(path, packing), encoding="utf-8", newline="") as text:
                rows = _rows(text, _LISTS[extension], path)
                return _collected(_named(rows, base), _prefixes(base), f"{path}: ")
        if only is None and noted is None and extension in _LINES and _is_worth_it(path) and _is_plain(path):
            found = _lines(path, _LINES[extension])
            if found is not None:
                return found
        syntax = _OTHERS.get(extension) or RdfFormat.from_extension(_LINES.get(extension, extension))
        if extension in _LINES and not _is_plain(path):
            syntax = RdfFormat.TURTLE  # gMark calls such files .ntriples
        if syntax is None:
            raise KnowledgeError(_no_format(path, extension, form))
        return _parsed(partial(unpacked, path, packing), syntax, path, only, noted)
    except SourceError as error:
        raise KnowledgeError(str(error)) from error
    except (OSError, BrokenBytesError, zstandard.ZstdError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise KnowledgeError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _no_format(path: Path, extension: str, form: str | None) -> str:
    """Return the message for a file of an unknown format."""
    wrong = f"no RDF format has the extension {extension!r}" if form is None else f"{form!r} is no RDF format"
    return f"{path}: {wrong}: say which it is by format=, or --graph-format, of {', '.join(_EXTENSIONS)}"


def _is_worth_it(path: Path) -> bool:
    """Return whether the file takes longer to read than the compiled scanner takes to load."""
    return path.stat().st_size >= WARM_UP or "spaseq.sources.scan.fast" in sys.modules


def _is_plain(path: Path) -> bool:
    """Return False if a file of lines begins with a declaration, and so is Turtle."""
    head = next(unmarked(read_blocks(path)), b"")
    return not _BASE.match(head[:_HEAD])


def _lines(path: Path, form: str) -> Loaded | None:
    """Load N-Triples or N-Quads with the compiled scanner; return None if a line is invalid."""
    # Here, because compiled code takes a while to load.
    from spaseq.sources.scan.fast import Quads

    dictionary = Dictionary()
    columns: list[Ids] = []
    too_long: list[str] = []
    with dictionary.lock:
        quads = Quads(form, dictionary, Limits(term_bytes=None))
        blocks = unmarked(read_blocks(path))
        for _, text in whole_lines(blocks, lambda position, _: too_long.append(position)):
            if too_long or not quads.read(text):
                return None
            rows = quads.rows[:3, : quads.count]
            columns.append(rows[:, rows[0] >= 0].copy())
    s, p, o = np.concatenate(columns, axis=1) if columns else np.zeros((3, 0), dtype=np.int64)
    return Loaded(dictionary, s, p, o)


def _parsed(
    start: Callable[[], IO[bytes]], form: RdfFormat, path: Path, only: str | None, noted: Noted | None
) -> Loaded:
    with start() as stream:
        guarded = Guarded(stream, partial(whole, start), form)
        parser = parse(cast("IO[bytes]", guarded), form, base_iri=path.absolute().as_uri())
        try:
            quads = of_rdf11(parser if noted is None else noted.passed(parser), path)
            quads = quads if only is None else _only(quads, only, path)
            found = _interned((s, p, cast("Term", o)) for s, p, o, _ in quads)
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            raise KnowledgeError(f"{path}{line}: {error.msg}") from error
        except NestingError as error:
            raise KnowledgeError(f"{path}: {error}") from None
        except MemoryError as error:
            raise KnowledgeError(f"{path}: {too_long(error)}") from None
    found.prefixes = dict(parser.prefixes)
    found.sources = {} if noted is None else noted.sources(found.dictionary)
    return found


def _only(quads: Iterable[Quad], name: str, path: Path) -> Iterator[Quad]:
    """Yield the quads of one named graph. Raises KnowledgeError if there are none."""
    seen = dict[str, None]()
    for quad in quads:
        graph = getattr(quad.graph_name, "value", "")
        seen[graph] = None
        if graph == name:
            yield quad
    if name not in seen:
        others = ", ".join(f"<{other}>" for other in [*seen][:_TOLD] if other) or "no named graph"
        raise KnowledgeError(f"{path}: it has no graph <{name}>: it has {others}")


def _rows(file: Iterable[str], separator: str, path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of an edge list as triples; rows of two nodes get the predicate ``edge``."""
    if separator == "\t":
        reader = csv.reader(file, delimiter=separator, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(file)
    for number, row in enumerate(reader, 1):
        match row:
            case []:
                continue
            case [first, *_] if number == 1 and first.strip().lower() in _HEADERS:
                continue
            case [s, p, o]:
                yield s, p, o
            case [s, o]:
                yield s, _EDGE, o
            case _:
                raise KnowledgeError(
                    f"{path}, line {reader.line_num}: an edge has two or three cells, not {len(row)}"
                )


def _prefixes(base: str | None) -> dict[str, str]:
    return {} if base is None else {"": base}


# --- what is in memory


def _named(triples: Iterable[Any], base: str | None) -> Iterator[Any]:
    """Yield triples; with a base, plain names become IRIs and objects that are numbers become literals."""
    if base is None:
        return iter(triples)
    return ((_name(s, base), _name(p, base), _value(o, base)) for s, p, o in triples)


def _name(value: Any, base: str) -> Any:
    if type(value) is not str or _ABSOLUTE.fullmatch(value):
        return value
    return NamedNode(base + quote(value.strip().replace(" ", "_"), safe=""))


def _value(value: Any, base: str) -> Any:
    number = _NUMBER.fullmatch(value.strip()) if type(value) is str else None
    if number is None:
        return _name(value, base)
    return from_rdflib(RdflibLiteral(Decimal(value) if number[1] else int(value)))


def _network(graph: Any, base: str | None) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the edges of a networkx graph; its nodes, even numbers, are names."""

    def node(value: Any) -> Any:
        text = str(value) if isinstance(value, int | float) else value
        return text if base is None else _name(text, base)

    keyed = {"keys": True} if graph.is_multigraph() else {}
    for s, o, *rest, data in graph.edges(data=True, **keyed):
        named = (data[name] for name in _NAMING if name in data)
        key = rest[0] if rest and isinstance(rest[0], str) else _EDGE
        yield node(s), key if isinstance(key, Node) else next(named, key), node(o)


def _rdflib(graph: Any) -> Loaded:
    prefixes = {prefix: str(namespace) for prefix, namespace in graph.namespaces()}
    return _collected(graph.triples((None, None, None)), prefixes)


def _table(table: Any) -> Iterator[tuple[Any, Any, Any]]:
    names = list(getattr(table, "column_names", None) or table.columns)
    if len(names) != 3:
        raise KnowledgeError(f"a table of triples has three columns, not {len(names)}: {names}")
    columns = [table[name] for name in names]
    lists = [c.to_pylist() if hasattr(c, "to_pylist") else c.tolist() for c in columns]
    return zip(*lists, strict=True)


def _collected(
    triples: Iterable[tuple[Any, Any, Any]], prefixes: Mapping[str, str], place: str = ""
) -> Loaded:
    found = _interned(_checked(triples, place))
    found.prefixes = dict(prefixes)
    return found


def triples_of(source: Any) -> Iterator[tuple[Term, Term, Term]]:
    """Yield the triples of an rdflib graph, a table or an iterable. Raises KnowledgeError."""
    if isinstance(source, str | PathLike):
        name = fspath(source)
        raise KnowledgeError(
            f"{name!r} is a file's name: spaseq.paths.load reads files, and these are triples"
        )
    if hasattr(source, "namespaces") and hasattr(source, "triples"):
        return _checked(source.triples((None, None, None)))
    is_table = hasattr(source, "column_names") or hasattr(source, "columns")
    return _checked(_table(source) if is_table else source)


def _checked(triples: Iterable[tuple[Any, Any, Any]], place: str = "") -> Iterator[tuple[Term, Term, Term]]:
    for number, triple in enumerate(triples, 1):
        try:
            s, p, o = triple
            yield term(s), _predicate(p), term(o, literals=True)
        except (TypeError, ValueError) as error:
            raise KnowledgeError(f"{place}triple {number}: {error}") from None


def _predicate(value: Any) -> NamedNode:
    found = term(value)
    if not isinstance(found, NamedNode):
        raise ValueError(f"{found} is no predicate: predicates are IRIs")
    return found


def term(value: Any, *, literals: bool = False) -> Term:
    """Return the term for a value: a term of rdflib or pyoxigraph, or text.

    Text is a term as N-Triples writes it, or an absolute IRI. If ``literals`` are allowed, any other text is
    a plain literal, and Python's numbers, dates and so on are literals. Raises TypeError or ValueError.

    >>> term("http://example.org/a")
    <NamedNode value=http://example.org/a>
    >>> print(term("Film", literals=True), term('"Film"@en'), term(1999, literals=True).datatype)
    "Film" "Film"@en <http://www.w3.org/2001/XMLSchema#integer>
    """
    if isinstance(value, NamedNode | BlankNode | Literal):
        return value
    if isinstance(value, Node):
        return from_rdflib(value)
    if isinstance(value, str):
        return _written(value, literals)
    if literals and value is not None and not isinstance(value, Triple | Quad):
        return from_rdflib(RdflibLiteral(value))
    raise TypeError(f"not an RDF term: {value!r}")


@lru_cache(_KEPT)  # the same predicates and nodes come again and again
def _written(text: str, literals: bool) -> Term:
    """Return the term for a text; see ``term``."""
    if _QUOTED.fullmatch(text):
        quad = next(iter(parse(f"<x:x> <x:x> {text} .", RdfFormat.N_TRIPLES)))
        found: Term | Triple = quad.object
        if not isinstance(found, Triple):
            return found
    if _SCHEME.fullmatch(text):
        with suppress(ValueError):
            return NamedNode(text)
    if not literals:
        raise ValueError(f"{text!r} is not an IRI; plain names need a base, as base='http://example.org/'")
    return Literal(text)


def _interned(triples: Iterable[tuple[Term, Term, Term]]) -> Loaded:
    dictionary = Dictionary()
    intern: Callable[[Term], int] = dictionary.intern
    rows = [number for triple in triples for number in map(intern, triple)]
    s, p, o = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Loaded(dictionary, s, p, o)
