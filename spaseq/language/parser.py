"""Text → syntax tree. No checks: ``spaseq.language.prepare`` parses and checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.builder import QueryBuilder
from spaseq.language.diagnosis import diagnose
from spaseq.language.source import Source

_Start = Literal["query", "bare_group"]

_GRAMMAR: Final = "spaseq.lark"


def parse(
    text: str, filename: str = "<query>", prefixes: Mapping[str, str] | None = None, base: str | None = None
) -> s.Query:
    """The query that ``text`` says; QuerySyntaxError, with its place, where it says none.

    ``prefixes`` and ``base`` hold where its own prologue says nothing else.

    >>> query = parse("ASK WITHIN 5 DAYS FROM STREAM S <urn:s> { SEQ(A+) DEFINE GPM A ON S {} }")
    >>> query.window.size, query.sequence.element
    (5, Ref(name='A'))
    """
    query: s.Query = _build(Source(text, filename), "query", prefixes, base)
    return query


def parse_group(text: str, filename: str = "<pattern>") -> s.Group:
    """The one ``{ … }`` that ``text`` holds, after a prologue if it has one.

    >>> parse_group("{ ?s ?p ?o }").elements[0].patterns
    (TriplePattern(subject=Var(name='s'), predicate=Var(name='p'), object=Var(name='o')),)
    """
    group: s.Group = _build(Source(text, filename), "bare_group")
    return group


def _build(
    source: Source, start: _Start, prefixes: Mapping[str, str] | None = None, base: str | None = None
) -> Any:
    lark = _lark()
    try:
        tree = lark.parse(source.expanded, start=start)
    except UnexpectedInput:
        raise diagnose(lark, source, start) from None
    try:
        return QueryBuilder(source, prefixes, base).transform(tree)
    except VisitError as problem:
        raise problem.orig_exc from None
    except RecursionError:
        raise source.error(QuerySyntaxError, "this is nested too deeply to be read", 0) from None


@cache
def _lark() -> Lark:
    return Lark(
        files(__package__).joinpath(_GRAMMAR).read_text(encoding="utf-8"),
        parser="lalr",
        start=["query", "bare_group"],
        propagate_positions=True,
        cache=_cache_file() or False,
    )


def _cache_file() -> str | None:
    """Where the compiled grammar may lie: in the user's own cache, since lark unpickles it.

    None when that cannot be written; the grammar is then compiled in every process (a quarter second).
    """
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path("~/.cache").expanduser()
    folder = Path(root) / "spaseq"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    return str(folder / f"grammar-{sys.version_info.major}.{sys.version_info.minor}.lark")
