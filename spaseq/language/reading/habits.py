"""Hints for users of other languages: their words, and the words of SPAseq."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

FOLLOWS: Final = "A ; B is the next B after A, A , B the event right after it, A : B any later one"
_BOTH: Final = "A & B match at the same time, ALL(A, B) in any order"
_EITHER: Final = "write A | B: the one or the other"
_ANY_ORDER: Final = (
    "write ALL(A, B): one match of each, in any order; (A , B) | (B , A) if nothing may stand between"
)
_ABSENT: Final = "write !A: no such event"

#: Words and signs after an element of SEQ, or where an element should begin.
_IN_SEQ: Final = {
    "AND": _BOTH,
    "&&": _BOTH,
    "OR": _EITHER,
    "||": _EITHER,
    "->": f"write ; for ->: {FOLLOWS}",
    "=>": FOLLOWS,
    "-": FOLLOWS,
    ".": FOLLOWS,
    "THEN": FOLLOWS,
    "NEXT": FOLLOWS,
    "FOLLOWED": FOLLOWS,
    "FOLLOWEDBY": FOLLOWS,
    "TIMES": "write A{3} for three of them, A{2,5} for two to five",
    "NOT": _ABSENT,
    "OPTIONAL": "write A?: A or no A in its place",
    "PERMUTE": _ANY_ORDER,
    "^": "a sequence has no anchors: !A before the rest says that none was before",
    "$": "a sequence has no anchors: !A at the end says that none comes after",
}

#: Units of time as other languages write them.
_UNITS: Final = {
    **dict.fromkeys(("US", "USEC", "MICROS"), "MICROSECONDS"),
    **dict.fromkeys(("MS", "MSEC", "MILLIS"), "MILLISECONDS"),
    **dict.fromkeys(("S", "SEC", "SECS"), "SECONDS"),
    **dict.fromkeys(("M", "MIN", "MINS"), "MINUTES"),
    **dict.fromkeys(("H", "HR", "HRS"), "HOURS"),
    "D": "DAYS",
    **dict.fromkeys(("ROW", "ROWS", "TICK", "TICKS"), "EVENTS"),
    **dict.fromkeys(("WEEK", "WEEKS"), "DAYS, 7 to a week"),
}

_PREVIOUS: Final = "PREV(?v) is the value in the iteration before, PREV(?v, 2) two before"
_LATER: Final = "a filter looks back, never ahead: write it in the later GPM, PREV(?v) is the value before"

#: Functions of other languages.
_FUNCTIONS: Final = {
    "NEXT": _LATER,
    "LEAD": _LATER,
    "LAG": _PREVIOUS,
    "PREVIOUS": _PREVIOUS,
    **dict.fromkeys(
        ("MEDIAN", "STDDEV", "VARIANCE", "PERCENTILE", "MODE", "STRING_AGG", "COLLECT", "ARRAY_AGG"),
        "the aggregates are COUNT, SUM, AVG, MIN, MAX, FIRST, LAST, SAMPLE and GROUP_CONCAT",
    ),
}

_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "FIRST", "LAST")
_AFTERWARDS: Final = "follows the '}' of WHERE, before GROUP BY, ORDER BY and LIMIT"

#: A file name in place of a query.
_FILE: Final = re.compile(r"\S+\.\w{1,8}\s*")
_WORD: Final = re.compile(r"\w+|->|=>|&&|\|\||.", re.DOTALL)


def habit(text: str, failure: int, accepted: set[str], tokens: Sequence[str]) -> str | None:
    """Return what to write for another language's word at the failure; ``tokens`` precede it."""
    # The first of two signs may have been read as an operator.
    start = failure - (text[failure - 1 : failure + 1] in ("||", "&&"))
    if failure == 0 and _FILE.fullmatch(text):
        return "a query is given as its text: pathlib.Path(…).read_text() has that of a file"
    match = _WORD.match(text, start)
    word = "" if match is None else match[0].upper()
    before = tokens[-1].upper() if tokens else ""
    return (
        _clause(word, text[start:], accepted)
        or _sequence(word, before, accepted)
        or _number(word, before, accepted)
        or _expression(word, before, text[start:], accepted)
    )


def _clause(word: str, rest: str, accepted: set[str]) -> str | None:
    if word == "AFTER" and "_AFTER" not in accepted:
        return f"AFTER MATCH SKIP {_AFTERWARDS}"
    if word in ("EMIT", "CONSUME") and f"_{word}" not in accepted:
        return f"{word} {_AFTERWARDS}"
    if word == "ROW" and ("_EVENT" in accepted or "$END" in accepted):
        return "write EVENT for ROW"
    if word in ("PATTERN", "MATCH_RECOGNIZE") and re.match(r"\w+\s*\(", rest):
        return "the sequence stands in WHERE: { SEQ(A ; B) DEFINE GPM A … }"
    return None


def _sequence(word: str, before: str, accepted: set[str]) -> str | None:
    inside = "_AMPERSAND" in accepted
    if inside and word == "(" and before in ("PERMUTE", "NOT"):
        return _IN_SEQ[before]
    if inside and before == "NOT":
        return _ABSENT
    if not inside and not {"BANG", "_ALL_OF"} <= accepted:
        return None
    return _IN_SEQ.get(word)


def _number(word: str, before: str, accepted: set[str]) -> str | None:
    if accepted == {"INTEGER"} and word == "," and before == "{":
        return "write {0,n}: from none to n"
    if "UNIT" in accepted and word in _UNITS:
        return f"write {_UNITS[word]}"
    if "UNIT" in accepted:
        return "the units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and EVENTS"
    return None


def _expression(word: str, before: str, rest: str, accepted: set[str]) -> str | None:
    if word in _AGGREGATES and "VAR" in accepted and "BUILTIN" not in accepted:
        return f"an expression and its name stand in parentheses: ({word}(?v) AS ?name)"
    if before in _AGGREGATES and accepted == {"LPAR"}:
        return f"write {before}({word if word.isidentifier() else '?v'})"
    if {"BUILTIN", "_EXISTS"} & accepted and re.match(r"\w+\s*\(", rest):
        return _FUNCTIONS.get(word)
    if "BUILTIN" in accepted and re.match(r"\w+\.\w", rest):
        return "variables stand alone: each GPM binds its own, as in FILTER(?price > 3)"
    return None
