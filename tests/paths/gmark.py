"""gMark's published graphs, and the path expressions of its queries."""

from __future__ import annotations

import re
from pathlib import Path

from pyoxigraph import NamedNode, Quad, Store

from spaseq.paths.language.expression import Alternative, Concatenation, NodeTest, Repetition, Step, show
from spaseq.paths.language.expression import Path as PathExpression
from tests.paths.naive import Triple

_CONJUNCT = re.compile(r"\?x\d+\s+(\S+)\s+\?x\d+ \.")

PREFIXES = {"": "urn:"}


def expressions(folder: Path, scenario: str) -> list[str]:
    """The distinct path expressions of a scenario's 50 queries."""
    files = sorted((folder / "demo" / scenario / f"{scenario}-translated").glob("*.sparql"))
    found = (text for file in files for text in _CONJUNCT.findall(file.read_text(encoding="utf-8")))
    return list(dict.fromkeys(found))


def triples(folder: Path, scenario: str) -> list[Triple]:
    """A scenario's graph."""
    text = (folder / "demo" / scenario / f"{scenario}-graph.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line)
    return [(NamedNode(f"urn:{s}"), NamedNode(f"urn:p{p}"), NamedNode(f"urn:{o}")) for s, p, o in rows]


def store(found: list[Triple]) -> Store:
    """The graph for Oxigraph."""
    made = Store()
    made.bulk_extend(Quad(*triple) for triple in found)
    return made


def as_sparql(path: PathExpression) -> str | None:
    """The expression with its bounds written out; None if SPARQL cannot say it."""
    written = _spelt_out(path)
    # Oxigraph has no `!()`; the graphs' IRIs have no dots.
    return None if written is None else show(written, {}).replace(".", "(!<urn:nothing>)")


def _spelt_out(path: PathExpression) -> PathExpression | None:
    match path:
        case Step():
            return path
        case NodeTest() | Repetition(maximum=0):
            return None
        case Concatenation(parts) | Alternative(parts):
            inner = [_spelt_out(part) for part in parts]
            written = tuple(part for part in inner if part is not None)
            return type(path)(written) if len(written) == len(parts) else None
        case Repetition(part, minimum, maximum):
            one = _spelt_out(part)
            if one is None:
                return None
            if maximum is None:
                return _after_another([one] * (minimum - 1) + [Repetition(one, min(minimum, 1), None)])
            rest: list[PathExpression] = []
            for _ in range(maximum - minimum):
                rest = [Repetition(_after_another([one, *rest]), 0, 1)]
            return _after_another([one] * minimum + rest)


def _after_another(parts: list[PathExpression]) -> PathExpression:
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))
