"""Text → syntax tree. Nothing is checked here: ``spaseq.language.prepare`` parses and checks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from lark import Lark

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.derivation import Derivation
from spaseq.language.reading.builder import QueryBuilder
from spaseq.language.reading.patterns import PatternBuilder
from spaseq.language.reading.source import QueryText

_Start = Literal["query", "bare_group"]

#: How deeply the brackets of a query may be nested; and how deep its syntax tree may be.
_DEPTH: Final = 100
_CHAIN: Final = 250
_LEAVES: Final = (str, int, s.Span, type(None))
_TOO_DEEP: Final = (
    "this is nested too deeply to be read: groups within groups, or some hundred operators in a row, "
    "of which parentheses make fewer"
)

#: Brackets, and tokens that may contain brackets as text.
_BRACKET: Final = re.compile(
    r"""(?P<open> [(\[{] ) | (?P<close> [)\]}] )
    | <[^\x00-\x20<>"{}|^`\\]*+> | \#[^\r\n]*+
    | \"{3} (?: [^"\\] | \\. | "(?!"") )*+ \"{3} | '{3} (?: [^'\\] | \\. | '(?!'') )*+ '{3}
    | " (?: [^"\\\r\n] | \\. )*+ " | ' (?: [^'\\\r\n] | \\. )*+ '
    """,
    re.VERBOSE | re.DOTALL,
)

_GRAMMAR: Final = "spaseq.lark"


def parse(
    text: str, filename: str = "<query>", prefixes: Mapping[str, str] | None = None, base: str | None = None
) -> s.Query:
    """Parse a query. Raises QuerySyntaxError with its place.

    ``prefixes`` and ``base`` apply unless the query's own prologue declares others.

    >>> query = parse("ASK WITHIN 5 DAYS FROM STREAM S <urn:s> { SEQ(A+) DEFINE GPM A ON S {} }")
    >>> query.window.size, query.sequence.element
    (5, Ref(name='A'))
    """
    query: s.Query = _build(QueryText(text.removeprefix("\ufeff"), filename), "query", prefixes, base)
    return query


def parse_group(text: str, filename: str = "<pattern>") -> s.Group:
    """Parse the one ``{ … }`` that ``text`` holds, after an optional prologue.

    >>> parse_group("{ ?s ?p ?o }").elements[0].patterns
    (TriplePattern(subject=Var(name='s'), predicate=Var(name='p'), object=Var(name='o')),)
    """
    group: s.Group = _build(QueryText(text, filename), "bare_group")
    return group


def _build(
    source: QueryText, start: _Start, prefixes: Mapping[str, str] | None = None, base: str | None = None
) -> Any:
    check_nesting(source)
    try:
        patterns = PatternBuilder(source, prefixes, base)
        built = _derivation().build((QueryBuilder(patterns), patterns), source, start)
    except RecursionError:
        pass
    else:
        if not _is_deep(built):
            return built
    raise source.error(QuerySyntaxError, _TOO_DEEP, 0)


def check_nesting(source: QueryText) -> None:
    """Raise QuerySyntaxError, with its place, for a bracket within more than ``_DEPTH`` others."""
    text = source.expanded
    if sum(map(text.count, "([{")) <= _DEPTH:
        return
    depth = 0
    for token in _BRACKET.finditer(text):
        if token["open"]:
            depth += 1
            if depth > _DEPTH:
                raise source.error(
                    QuerySyntaxError, f"nested more than {_DEPTH} deep", source.origin(token.start())
                )
        elif token["close"]:
            depth -= 1


def _is_deep(tree: object) -> bool:
    """Return whether a syntax tree is too deep for recursion, as chains of operators can be."""
    level: list[Any] = [tree]
    for _ in range(_CHAIN):
        level = [part for node in level for part in _parts(node) if not isinstance(part, _LEAVES)]
        if not level:
            return False
    return True


#: The fields of each node type that hold nodes; other types have none.
_HELD: Final[dict[type, tuple[str, ...]]] = {}


def _parts(node: Any) -> Iterable[Any]:
    if isinstance(node, tuple):
        return node
    kind = type(node)
    if kind not in _HELD:
        _HELD[kind] = tuple(item.name for item in fields(kind)) if is_dataclass(kind) else ()
    return [getattr(node, name) for name in _HELD[kind]]


@cache
def _derivation() -> Derivation:
    lark = Lark(
        files(__package__).joinpath(_GRAMMAR).read_text(encoding="utf-8"),
        parser="lalr",
        start=["query", "bare_group"],
        cache=_cache_file() or False,
    )
    return Derivation(lark, QueryBuilder, PatternBuilder)


def _cache_file() -> str | None:
    """Return the file for the compiled grammar, in the user's own cache because lark unpickles it.

    Return None if that cannot be written; every process then compiles the grammar (a quarter of a second).
    """
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        folder = Path(given or Path("~/.cache").expanduser()) / "spaseq"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: the home directory is unknown
        return None
    if not os.access(folder, os.W_OK):
        return None
    return str(folder / f"grammar-{sys.version_info.major}.{sys.version_info.minor}.lark")
