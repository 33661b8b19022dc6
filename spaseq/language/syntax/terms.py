"""Variables and property paths."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import NamedNode

from spaseq.language.syntax.span import SyntaxNode


@dataclass(frozen=True, slots=True)
class Var(SyntaxNode):
    """A variable, without its ``?``. Also an expression."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class PathSequence:
    """``p1/p2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative:
    """``p1|p2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathInverse:
    """``^p``"""

    path: Path


@dataclass(frozen=True, slots=True)
class PathRepeat:
    """``p*`` (0, None), ``p+`` (1, None), ``p?`` (0, 1)."""

    path: Path
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class PathNegated:
    """``!(p1|^p2)``: the forward predicates and the inverse ones that are excluded."""

    forward: tuple[NamedNode, ...]
    inverse: tuple[NamedNode, ...]


Path = NamedNode | PathSequence | PathAlternative | PathInverse | PathRepeat | PathNegated
