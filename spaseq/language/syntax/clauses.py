"""Clauses of a query: its form, window, streams and GPMs, and which matches are emitted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pyoxigraph import NamedNode

from spaseq.language.syntax.patterns import Group, TriplePattern
from spaseq.language.syntax.terms import SyntaxNode, Var


class WindowKind(StrEnum):
    """How windows follow each other (semantics, section 5)."""

    TUMBLING = "TUMBLING"
    SLIDING = "SLIDING"


@dataclass(frozen=True, slots=True)
class Window(SyntaxNode):
    """``WITHIN size unit kind``; ``unit`` is a key of ``UNITS``. The size is exact, and whole for EVENTS."""

    size: int | Fraction
    unit: str
    kind: WindowKind = WindowKind.TUMBLING


@dataclass(frozen=True, slots=True)
class StreamDeclaration(SyntaxNode):
    """``FROM STREAM name <iri>``"""

    name: str
    iri: NamedNode


@dataclass(frozen=True, slots=True)
class Gpm(SyntaxNode):
    """``DEFINE GPM name ON streams AT ?time AS ?graph { pattern }``"""

    name: str
    streams: tuple[str, ...]
    pattern: Group
    time: Var | None = None
    graph: Var | None = None


class RegisterKind(StrEnum):
    """What REGISTER does with the query's answers."""

    QUERY = "QUERY"
    STREAM = "STREAM"


@dataclass(frozen=True, slots=True)
class Register(SyntaxNode):
    """``REGISTER STREAM <iri> AS``"""

    kind: RegisterKind
    iri: NamedNode


@dataclass(frozen=True, slots=True)
class Ask(SyntaxNode):
    """``ASK``"""


@dataclass(frozen=True, slots=True)
class Construct(SyntaxNode):
    """``CONSTRUCT { template }``; blank nodes of the template are fresh per solution."""

    template: tuple[TriplePattern, ...]


class Emit(StrEnum):
    """Which of the matches with the same last event are kept (semantics, section 6)."""

    ALL = "ALL"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"


class Consume(StrEnum):
    """What emitting a match does to partial matches."""

    NONE = "NONE"
    ANY = "ANY"


class SkipMode(StrEnum):
    """Where the next match may begin (semantics, section 6, AFTER MATCH SKIP)."""

    PAST_LAST_EVENT = "PAST LAST EVENT"
    TO_NEXT_EVENT = "TO NEXT EVENT"
    TO_FIRST = "TO FIRST"
    TO_LAST = "TO LAST"


@dataclass(frozen=True, slots=True)
class Skip(SyntaxNode):
    """``AFTER MATCH SKIP``; ``gpm`` is the name after ``TO FIRST`` and ``TO LAST``, None for the others."""

    mode: SkipMode
    gpm: str | None = None
