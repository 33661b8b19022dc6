"""``spaseq retrieve``: the best paths from a topic, to a file or standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spaseq.cli.arguments import RetrieveFormat, UsageError
from spaseq.cli.console import say, warn
from spaseq.cli.graphs.paths import table, tell_given_up, write
from spaseq.errors import RetrievalError
from spaseq.language.syntax.printing import print_term
from spaseq.paths import Budget, Candidate, KnowledgeGraph, Retrieval, drawing, retrieve, to_networkx
from spaseq.paths.graph.linking.candidates import did_you_mean
from spaseq.paths.graph.linking.index import key
from spaseq.paths.graph.names import local_name
from spaseq.paths.graph.numbering import read_term
from spaseq.terms.interop import from_rdflib

#: The most nodes of one name in a message.
_CALLED: Final = 5

#: The most characters of unreadable text in a message.
_SHOWN: Final = 60

#: The beginnings of a list of relation names, with a weight or without; no path expression begins so.
_LISTS: Final = ('["', "[[")


@dataclass(frozen=True, slots=True)
class RetrieveRequest:
    """The options of ``spaseq.paths.retrieve``."""

    topics: list[str]
    labels: Sequence[str]
    question: str | None
    k: int
    budget: Budget
    mode: str | None
    returning: bool


def answer_retrieve(
    opened: Callable[[], KnowledgeGraph],
    written: Sequence[str],
    file: str | None,
    of: RetrieveRequest,
    form: RetrieveFormat,
    out: Path | None,
) -> None:
    """Write the result of ``spaseq.paths.retrieve``; rejected or doubtful arguments go to standard error."""
    expressions = [_read(text) for text in written] + (_from_file(file) if file else [])
    if not expressions:
        raise UsageError("no expressions: give some, or a file of them with --expressions FILE")
    known = opened()
    try:
        found = retrieve(
            known,
            expressions,
            of.topics,
            of.k,
            budget=of.budget,
            question=of.question,
            mode=of.mode,
            returning=of.returning,
            labels=of.labels,
        )
    except RetrievalError as error:
        raise UsageError(str(error)) from None
    if not found.topics:
        raise UsageError("\n".join(_no_topic(known, text, of.labels) for text in of.topics))
    if len(found.rejected) == len(expressions):
        reasons = "\n".join(rejected.reason for rejected in found.rejected)
        raise UsageError(f"none of the expressions can be used\n{reasons}")
    for rejected in found.rejected:
        warn(f"left out {rejected.expression}: {rejected.reason}")
    for warning in found.warnings:
        warn(warning)
    for term in found.unknown:
        warn(f"the graph has no node {print_term(from_rdflib(term), found.graph.prefixes)}")
    for ambiguity in _ambiguous(known, found.linked):
        warn(ambiguity)
    write(_shown(found, form), out)
    if found.shed is not None and found.shed.active:
        tell_given_up(found.shed)
    elif found.truncated:
        say(f"there are more paths than --budget-paths {of.budget.paths:,}: some were not looked at")


def _no_topic(graph: KnowledgeGraph, topic: str, labels: Sequence[str]) -> str:
    name = local_name(read_term(topic, graph.prefixes))
    hint = did_you_mean(graph.link(name, labels=labels))
    return f"the graph has no node {topic}" + (f"\nhint: {hint}" if hint else "")


def _ambiguous(graph: KnowledgeGraph, linked: Sequence[Candidate]) -> Iterator[str]:
    """Yield messages about names that several nodes have."""
    called: dict[str, list[Candidate]] = {}
    for candidate in linked:
        called.setdefault(key(candidate.label), []).append(candidate)
    for same in called.values():
        if len(same) > 1:
            terms = ", ".join(print_term(from_rdflib(c.term), graph.prefixes) for c in same[:_CALLED])
            yield f"{len(same)} nodes are called {same[0].label}: {terms}"


def _read(text: str) -> Any:
    """Return an expression as it is, or a list of relation names as JSON."""
    return _json(text, f"the expression {text}") if text.lstrip().startswith(_LISTS) else text


def _from_file(file: str) -> list[Any]:
    """Return the expressions of a file of JSON, ``-`` for standard input."""
    if file == "-" and sys.stdin is None:
        raise UsageError("--expressions -: standard input is closed")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"--expressions {file}: this is not UTF-8 text") from None
    expressions = _json(text, f"--expressions {file}")
    if not isinstance(expressions, list):
        raise UsageError(f"--expressions {file}: a list of expressions is wanted, not {text.strip()[:40]}")
    return expressions


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{where} is not JSON: {error.msg}, {place}") from None
    except RecursionError:
        raise UsageError(f"{where[:_SHOWN]} is nested too deeply to be read") from None


def _shown(found: Retrieval, form: RetrieveFormat) -> Iterator[str]:
    match form:
        case RetrieveFormat.TEXT:
            yield f"{found.text()}\n" if len(found) else ""
        case RetrieveFormat.TABLE:
            yield from table(("score", "path"), ((f"{ranked.score:.3f}", ranked.text) for ranked in found))
        case RetrieveFormat.JSON:
            yield json.dumps(found.as_json(), ensure_ascii=False, indent=2) + "\n"
        case RetrieveFormat.NQUADS:
            for triple in found.triples:
                yield " ".join(str(from_rdflib(term)) for term in triple) + " .\n"
        case RetrieveFormat.SVG:
            yield drawing.svg(to_networkx(found))
