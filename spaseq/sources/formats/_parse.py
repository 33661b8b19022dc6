"""pyoxigraph's parsers on one piece of text at a time, with state that carries over between pieces."""

from __future__ import annotations

import re
from typing import Final

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse

from spaseq.limits import Limits
from spaseq.nesting import NestingError, check_triple_terms, too_long

FORMATS: Final = {
    "trig": RdfFormat.TRIG,
    "ttl": RdfFormat.TURTLE,
    "nq": RdfFormat.N_QUADS,
    "nt": RdfFormat.N_TRIPLES,
    "messages": RdfFormat.TRIG,
}


#: Declarations up to this many bytes are given to the parser with every piece, used or not.
_FEW: Final = 1 << 12

#: A possible name of a prefix, other than the empty one.
_NAME: Final = re.compile(rb"(?<![\w\-\x80-\xff])([A-Za-z\x80-\xff][\w.\-\x80-\xff]*+):")


class PieceError(Exception):
    """A piece that does not parse: the line in it, from 1, and the reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Pieces:
    """Parses pieces of one document: prefixes, base and blank node labels carry over."""

    def __init__(self, form: str, limits: Limits) -> None:
        self._limits = limits
        self._format = FORMATS[form]
        self._has_prologue = form not in ("nq", "nt")
        self._prefixes: dict[str, str] = {}
        self._declared: bytes | None = None  # all of them, once needed
        self._size = 0  # of all of them
        self._base: str | None = None

    def parse(self, text: bytes, *, keep: bool = True) -> list[Quad]:
        """Return the quads of a piece. Raises PieceError if it does not parse.

        ``keep``: keep the prefixes of a piece for later pieces even if it does not parse.
        """
        try:
            check_triple_terms(text, self._limits)
        except NestingError as error:
            raise PieceError(error.line, str(error)) from None
        prologue = self._prologue(text)
        parser = parse(prologue + text, format=self._format, base_iri=self._base)
        try:
            quads = list(parser)
        except MemoryError as error:
            raise PieceError(1, too_long(error)) from None
        except SyntaxError as error:
            if keep:
                self._carry(parser.prefixes, parser.base_iri)
            raise PieceError((error.lineno or 1) - bool(prologue), reason_of(error)) from None
        self._carry(parser.prefixes, parser.base_iri)
        return quads

    def name(self, label: bytes) -> NamedNode | BlankNode | None:
        """Return the graph name for a label of the document; None for an invalid label."""
        try:
            quads = self.parse(label + b" <x:x> <x:x> .", keep=False)
        except PieceError:
            return None
        subject = quads[0].subject if len(quads) == 1 else None
        return subject if isinstance(subject, NamedNode | BlankNode) else None

    def _prologue(self, text: bytes) -> bytes:
        """Return the declarations to put before a piece.

        If all declarations together are long, these are only the declarations that the piece uses.
        """
        if not self._prefixes:
            return b""
        if self._size <= max(len(text), _FEW):
            if self._declared is None:
                self._declared = _declarations(self._prefixes)
            return self._declared
        names = {"", *(name.decode(errors="replace") for name in set(_NAME.findall(text)))}
        return _declarations({name: self._prefixes[name] for name in names if name in self._prefixes})

    def _carry(self, prefixes: dict[str, str], base: str | None) -> None:
        if not self._has_prologue:
            return
        self._base = base
        for name, iri in prefixes.items():
            if self._prefixes.get(name) != iri:
                self._size += len(_declaration(name, iri)) - len(_declaration(name, self._prefixes.get(name)))
                self._prefixes[name] = iri
                self._declared = None


def _declaration(name: str, iri: str | None) -> bytes:
    return b"" if iri is None else f"PREFIX {name}: <{iri}> ".encode()


def _declarations(prefixes: dict[str, str]) -> bytes:
    """Write declarations on a line of their own, so that line numbers differ by one and columns by none."""
    return b"".join(_declaration(*item) for item in prefixes.items()) + b"\n"


def graph_name(label: bytes) -> NamedNode | BlankNode | None:
    """Return the graph name for a term of N-Quads; None for an invalid one."""
    try:
        quad = next(parse(b"<x:x> <x:x> <x:x> " + label + b" .", format=RdfFormat.N_QUADS), None)
    except SyntaxError:
        return None
    return None if quad is None or isinstance(quad.graph_name, DefaultGraph) else quad.graph_name


def reason_of(error: SyntaxError) -> str:
    """Return pyoxigraph's message without the place, which is reported separately.

    >>> reason_of(SyntaxError("Parser error at line 3 column 2: Unexpected end"))
    'Unexpected end'
    """
    message = str(error.msg or error)
    place, colon, reason = message.partition(": ")
    return reason if colon and place.startswith("Parser error") else message
