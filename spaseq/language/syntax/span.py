"""Places of nodes in the query text."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a node in the query text: offsets in characters, line and column from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A node that an error can point at; the span is None in a tree that was made without a text."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
