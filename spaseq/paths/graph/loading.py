"""Files, graphs, tables and triples → columns of ids."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
import zstandard
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse
from rdflib.term import Literal as RdflibLiteral
from rdflib.term import Node

from spaseq.errors import KnowledgeError, SourceError
from spaseq.gpm.kb import of_rdf11, unpacked
from spaseq.limits import Limits
from spaseq.nesting import Guarded, NestingError, too_long, whole
from spaseq.sources._bytes import BrokenBytesError, read_blocks, unmarked, whole_lines
from spaseq.sources.formats.lines import WARM_UP
from spaseq.terms.dictionary import Dictionary, Ids, Term
from spaseq.terms.interop import from_rdflib

if TYPE_CHECKING:  # whoever has one of them has imported it
    import rdflib

#: What a graph is loaded from; tables are any that have columns.
Source: TypeAlias = "str | PathLike[str] | rdflib.Graph | Iterable[tuple[Any, Any, Any]] | Any"

_LINES: Final = {"nt": "nt", "ntriples": "nt", "nq": "nq", "nquads": "nq"}
_OTHERS: Final = {"xml": RdfFormat.RDF_XML, "owl": RdfFormat.RDF_XML}
_EXTENSIONS: Final = ("nt", "nq", "ttl", "trig", "n3", "rdf", "jsonld")
_BASE: Final = re.compile(rb"\s*@?(?:base|prefix|version)\b", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_QUOTED: Final = re.compile(r"<[^\s<>]*>|_:\S+|\".*\"(?:@[A-Za-z0-9-]+|\^\^<[^\s<>]*>)?", re.DOTALL)
_HEAD: Final = 1 << 12
_KEPT: Final = 1 << 16


@dataclass(slots=True)
class Loaded:
    """Triples as ids of a dictionary, repetitions included, and the prefixes of where they come from."""

    dictionary: Dictionary
    s: Ids
    p: Ids
    o: Ids
    prefixes: Mapping[str, str] = field(default_factory=dict)


def load_triples(source: Source, form: str | None = None) -> Loaded:
    """The triples of a source; KnowledgeError for what cannot be read, with file and line.

    ``form`` is the extension that the name of a file should have.
    """
    if isinstance(source, str | PathLike):
        return _file(Path(fspath(source)), form)
    if form is not None:
        raise KnowledgeError(f"format={form!r} is for files: the source is {type(source).__name__}")
    if hasattr(source, "namespaces") and hasattr(source, "triples"):
        return _rdflib(source)
    if hasattr(source, "column_names") or hasattr(source, "columns"):
        return _collected(_table(source), {})
    return _collected(cast("Iterable[tuple[Any, Any, Any]]", source), {})


# --- files


def _file(path: Path, form: str | None) -> Loaded:
    suffixes = [suffix[1:].lower() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in ("gz", "zst") else None
    extension = form.removeprefix(".").lower() if form else suffixes[-1] if suffixes else ""
    try:
        if extension in _LINES and _is_worth_it(path) and _is_plain(path):
            found = _lines(path, _LINES[extension])
            if found is not None:
                return found
        syntax = _OTHERS.get(extension) or RdfFormat.from_extension(_LINES.get(extension, extension))
        if extension in _LINES and not _is_plain(path):
            syntax = RdfFormat.TURTLE  # gMark calls such files .ntriples
        if syntax is None:
            raise KnowledgeError(_no_format(path, extension, form))
        return _parsed(partial(unpacked, path, packing), syntax, path)
    except SourceError as error:
        raise KnowledgeError(str(error)) from error
    except (OSError, BrokenBytesError, zstandard.ZstdError, EOFError) as error:
        raise KnowledgeError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _no_format(path: Path, extension: str, form: str | None) -> str:
    """What to say of a file whose format is not known: what it is called, or said to be, is none."""
    wrong = f"no RDF format has the extension {extension!r}" if form is None else f"{form!r} is no RDF format"
    return f"{path}: {wrong}: say which it is by format=, or --graph-format, of {', '.join(_EXTENSIONS)}"


def _is_worth_it(path: Path) -> bool:
    """Whether the file takes longer to read than the compiled scanner to load."""
    return path.stat().st_size >= WARM_UP or "spaseq.sources.scan.fast" in sys.modules


def _is_plain(path: Path) -> bool:
    """Whether a file of lines does not begin with a declaration, which would make it Turtle."""
    head = next(unmarked(read_blocks(path)), b"")
    return not _BASE.match(head[:_HEAD])


def _lines(path: Path, form: str) -> Loaded | None:
    """N-Triples and N-Quads by the compiled scanner; None if a line is bad."""
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


def _parsed(start: Callable[[], IO[bytes]], form: RdfFormat, path: Path) -> Loaded:
    with start() as stream:
        guarded = Guarded(stream, partial(whole, start), form)
        parser = parse(cast("IO[bytes]", guarded), form, base_iri=path.absolute().as_uri())
        try:
            found = _interned((s, p, cast("Term", o)) for s, p, o, _ in of_rdf11(parser, path))
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            raise KnowledgeError(f"{path}{line}: {error.msg}") from error
        except NestingError as error:
            raise KnowledgeError(f"{path}: {error}") from None
        except MemoryError as error:
            raise KnowledgeError(f"{path}: {too_long(error)}") from None
    found.prefixes = dict(parser.prefixes)
    return found


# --- what is in memory


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


def _collected(triples: Iterable[tuple[Any, Any, Any]], prefixes: Mapping[str, str]) -> Loaded:
    found = _interned(_checked(triples))
    found.prefixes = dict(prefixes)
    return found


def triples_of(source: Any) -> Iterator[tuple[Term, Term, Term]]:
    """The triples of what is in memory: an rdflib graph, a table, an iterable. Raises KnowledgeError."""
    if isinstance(source, str | PathLike):
        name = fspath(source)
        raise KnowledgeError(
            f"{name!r} is a file's name: spaseq.paths.load reads files, and these are triples"
        )
    if hasattr(source, "namespaces") and hasattr(source, "triples"):
        return _checked(source.triples((None, None, None)))
    is_table = hasattr(source, "column_names") or hasattr(source, "columns")
    return _checked(_table(source) if is_table else source)


def _checked(triples: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[Term, Term, Term]]:
    for number, triple in enumerate(triples, 1):
        try:
            s, p, o = triple
            yield term(s), _predicate(p), term(o, literals=True)
        except (TypeError, ValueError) as error:
            raise KnowledgeError(f"triple {number}: {error}") from None


def _predicate(value: Any) -> NamedNode:
    found = term(value)
    if not isinstance(found, NamedNode):
        raise ValueError(f"{found} is no predicate: predicates are IRIs")
    return found


def term(value: Any, *, literals: bool = False) -> Term:
    """A term from what stands for one: a term of rdflib or pyoxigraph, or text.

    Text is a term as N-Triples writes it, or an absolute IRI; any other text is a plain literal where
    ``literals`` may stand, and so are Python's numbers, dates and so on. Raises TypeError or ValueError.

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
    """A term from text, see ``term``."""
    if _QUOTED.fullmatch(text):
        quad = next(iter(parse(f"<x:x> <x:x> {text} .", RdfFormat.N_TRIPLES)))
        found: Term | Triple = quad.object
        if not isinstance(found, Triple):
            return found
    if _SCHEME.fullmatch(text):
        with suppress(ValueError):
            return NamedNode(text)
    if not literals:
        raise ValueError(f"{text!r} is not an IRI")
    return Literal(text)


def _interned(triples: Iterable[tuple[Term, Term, Term]]) -> Loaded:
    dictionary = Dictionary()
    intern: Callable[[Term], int] = dictionary.intern
    rows = [number for triple in triples for number in map(intern, triple)]
    s, p, o = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Loaded(dictionary, s, p, o)
