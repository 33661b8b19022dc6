"""Where a node stands."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node stands in the query text: offsets in characters, line and column from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A node that an error can point at; None where a tree was made without a text."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
