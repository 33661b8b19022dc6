"""Parser failure → syntax error in plain words: what was found and what was expected.

Runs only when a query has failed to parse: it parses again, step by step, to find the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from spaseq.errors import QuerySyntaxError
from spaseq.language.reading.habits import FOLLOWS, habit
from spaseq.language.reading.hints import nearest
from spaseq.language.reading.source import QueryText

_TERM: Final = {"VAR", "IRIREF", "PNAME", "STRING", "INTEGER", "DECIMAL", "DOUBLE", "SIGNED", "BOOLEAN"}
_OBJECT: Final = _TERM | {"BLANK_NODE_LABEL", "LPAR", "LSQB"}
_CALL: Final = {"BUILTIN", "AGGREGATE", "COUNT", "GROUP_CONCAT", "_PREV", "_EXISTS", "_NOT", "LPAR"}
_STEP: Final = {"COMMA", "SEMICOLON", "COLON", "VBAR", "_AMPERSAND", "_WITHIN"}

#: If all terminals of the first set are accepted, the message names the phrase instead of the terminals of
#: the second set. Entries are tried in order.
_PHRASES: Final[tuple[tuple[set[str], set[str], str], ...]] = (
    ({"BUILTIN", "STRING"}, _TERM | _CALL | {"BANG", "PLUS", "MINUS"}, "an expression"),
    ({"BUILTIN"}, _TERM | _CALL, "a condition in parentheses"),
    ({"_AMPERSAND", "PLUS"}, _STEP | {"PLUS", "STAR", "QUESTION", "LBRACE", "BANG"}, "an operator"),
    ({"_AMPERSAND"}, _STEP, "an operator"),
    (
        {"COMPARE"},
        {"OR", "AND", "COMPARE", "_IN", "_NOT", "PLUS", "MINUS", "STAR", "SLASH", "SIGNED"},
        "an operator",
    ),
    ({"_FILTER", "VAR"}, _OBJECT | {"LBRACE"}, "a triple pattern"),
    (
        {"VAR", "BLANK_NODE_LABEL", "SLASH"},
        _OBJECT | {"PLUS", "STAR", "QUESTION", "SLASH", "VBAR"},
        "an object",
    ),
    ({"VAR", "BLANK_NODE_LABEL"}, _OBJECT, "a term"),
    ({"VAR", "_A"}, {"VAR", "_A", "IRIREF", "PNAME", "BANG", "CIRCUMFLEX", "LPAR"}, "a predicate"),
    ({"_A"}, {"_A", "IRIREF", "PNAME", "BANG", "CIRCUMFLEX", "LPAR"}, "a predicate"),
    ({"INTEGER", "DECIMAL"}, {"INTEGER", "DECIMAL", "DOUBLE", "SIGNED"}, "a number"),
    ({"IRIREF", "PNAME"}, {"IRIREF", "PNAME"}, "an IRI"),
)

#: Names of the other terminals that are neither keywords nor signs.
_NAMES: Final = {
    "$END": "the end",
    "AGGREGATE": "an aggregate",
    "BUILTIN": "a function",
    "INTEGER": "a whole number",
    "IRIREF": "an IRI in <…>",
    "LANGTAG": "a language tag",
    "NAME": "a name",
    "PNAME_NS": "a prefix such as 'ex:'",
    "STRING": "a string",
    "UNIT": "a unit such as SECONDS",
    "VAR": "a variable",
    "_ALL_OF": "ALL",
    "_TO_FIRST": "FIRST",
    "_TO_LAST": "LAST",
    "_TO_NEXT": "NEXT EVENT",
    "_AMPERSAND": "'&'",
}

#: Wrong operators, by the two characters around the place of the failure, and SPARQL's own.
_SLIPS: Final = {"=>": ">=", "=<": "<=", "==": "=", "<>": "!=", "!==": "!="}

_BRACKETS: Final = {"{": "}", "(": ")", "[": "]"}

_FOUND: Final = re.compile(r"[?$@]?\w[\w-]*|<[^\s<>]*>|\"[^\"\n]*\"?|'[^'\n]*'?|.", re.DOTALL)

_MOST_EXPECTED: Final = 6


def diagnose(lark: Lark, source: QueryText, start: str) -> QuerySyntaxError:
    """Return the error for a text that ``lark`` has rejected."""
    tokens, failure = _read(lark, source.expanded, start)
    accepted = _accepted(lark, tokens, start)
    if failure is None:
        return _at_the_end(source, tokens, accepted)
    broken = _broken_token(source, failure, accepted)
    return broken or _unexpected(lark, source, failure, accepted, tokens)


def _read(lark: Lark, text: str, start: str) -> tuple[list[Token], int | None]:
    """Return the tokens that fit, and the offset of the first failure; None for the end of the text."""
    parser = lark.parse_interactive(text, start=start)
    tokens: list[Token] = []
    try:
        for token in parser.iter_parse():
            tokens.append(token)
    except UnexpectedCharacters as problem:
        return tokens, problem.pos_in_stream
    except UnexpectedToken as problem:
        failure = problem.token.start_pos
        return [token for token in tokens if failure is None or (token.end_pos or 0) <= failure], failure
    return tokens, None


def _accepted(lark: Lark, tokens: Iterable[Token], start: str) -> set[str]:
    parser = lark.parse_interactive("", start=start)
    for token in tokens:
        parser.feed_token(token)
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]  # lark leaves it untyped
    return accepted


# --- the three kinds of failure


def _at_the_end(source: QueryText, tokens: list[Token], accepted: set[str]) -> QuerySyntaxError:
    open_brackets: list[Token] = []
    for token in tokens:
        if token in _BRACKETS:
            open_brackets.append(token)
        elif token in _BRACKETS.values() and open_brackets:
            open_brackets.pop()
    hint = None
    if open_brackets:
        bracket = open_brackets[-1]
        line, column = source.place(source.origin(bracket.start_pos or 0))
        hint = f"the '{bracket}' at line {line}, column {column} is not closed"
    message = f"expected {_listed(_described(accepted))}, found the end of the query"
    return source.error(QuerySyntaxError, message, len(source.text.rstrip()), hint)


def _broken_token(source: QueryText, failure: int, accepted: set[str]) -> QuerySyntaxError | None:
    """Return the error for a string or an IRI that begins correctly and is not well-formed."""
    text = source.expanded
    if text[failure] in "\"'" and "STRING" in accepted:
        quote = text[failure] * (3 if text.startswith(text[failure] * 3, failure) else 1)
        inside = r"(?:[^\\]|\\[tbnrf\"'\\])*?" if len(quote) == 3 else r"(?:[^\\\r\n]|\\[tbnrf\"'\\])*?"
        stopped = re.compile(f"{quote}{inside}(?={quote}|\\\\(?![tbnrf\"'\\\\])|$|[\r\n])").match(
            text, failure
        )
        escape = stopped.end() if stopped else failure
        if text[escape : escape + 1] == "\\":
            message = f"'{text[escape : escape + 2]}' is not an escape in a string"
            hint = r"write '\\' for a backslash"
            return source.error(QuerySyntaxError, message, source.origin(escape), hint)
        lines = None if len(quote) == 3 else "a string of several lines stands between three quotes"
        return source.error(QuerySyntaxError, "this string is not closed", source.origin(failure), lines)
    if text[failure] == "<" and "IRIREF" in accepted and not _slip(text, failure, accepted):
        stop = re.compile(r'<[^\x00-\x20<>"{}|^`\\]*').match(text, failure)
        end = stop.end() if stop else failure
        if text[end : end + 1].strip() and text[end] != "<":
            return source.error(
                QuerySyntaxError, f"an IRI cannot have '{text[end]}' in it", source.origin(end), None
            )
        return source.error(QuerySyntaxError, "this IRI is not closed by '>'", source.origin(failure), None)
    return None


def _unexpected(
    lark: Lark, source: QueryText, failure: int, accepted: set[str], tokens: list[Token]
) -> QuerySyntaxError:
    text = source.expanded
    match = _FOUND.match(text, failure)
    found = match[0] if match else text[failure]
    words = _keywords(accepted) | (_functions(lark) if "BUILTIN" in accepted else set())
    known = habit(text, failure, accepted, tokens)
    meant = nearest(found, words) if found.isidentifier() and known is None else None
    guess = f"did you mean {meant}?" if meant else None
    hint = known or guess or _slip(text, failure, accepted) or _missing(found, accepted)
    if meant in _keywords(accepted):
        closing = [f"'{b}'" for name, b in (("RBRACE", "}"), ("RPAR", ")")) if name in accepted]
        expected = [*closing, meant]
    else:
        expected = _described(accepted)
    message = f"expected {_listed(expected)}, found '{found}'"
    return source.error(QuerySyntaxError, message, source.origin(failure), hint)


# --- hints


def _slip(text: str, failure: int, accepted: set[str]) -> str | None:
    if "AND" in accepted and text[failure] in "&|":
        return f"write {text[failure] * 2} for {text[failure]}"
    for wrong in (text[failure - 1 : failure + 1], text[failure : failure + 2]):
        if wrong in _SLIPS:
            return f"write {_SLIPS[wrong]} for {wrong}"
    return None


def _missing(found: str, accepted: set[str]) -> str | None:
    word = found.upper()
    if word == "AS":
        return "an expression and its name stand in parentheses: (?a + ?b AS ?sum)"
    if word == "SEQ":
        return "a query has exactly one SEQ, directly before or after the '{' of WHERE"
    if "_WITHIN" in accepted and word in ("FROM", "PARTITION", "WHERE", "SEQ", "{"):
        return "a query says how long a match may take: WITHIN 10 SECONDS, before FROM STREAM"
    if "_FROM" in accepted and word in ("WHERE", "SEQ", "{"):
        return "a query names its streams: FROM STREAM S <…>, before WHERE"
    if accepted == {"_DEFINE"}:
        return "patterns stand in GPMs: DEFINE GPM A ON S { … }"
    if found == "[" and "_AMPERSAND" in accepted:
        return "[,] [;] [:] say how a Kleene goes on: they follow +, *, or {n,m}"
    if found.isidentifier() and "_AMPERSAND" in accepted:
        return f"say how {found} follows: {FOLLOWS}"
    return None


# --- words


def _described(accepted: set[str]) -> list[str]:
    rest, phrases = set(accepted), []
    for needed, covered, phrase in _PHRASES:
        if needed <= rest:
            rest -= covered
            phrases.append(phrase)
    signs = [sign for name, sign in _SIGNS.items() if name in rest]
    names = sorted(_NAMES[name] for name in rest if name in _NAMES)
    words = sorted(_keywords(rest))
    return [*signs, *dict.fromkeys(phrases), *names, *words]


def _listed(items: list[str]) -> str:
    if len(items) > _MOST_EXPECTED:
        return ", ".join([*items[:_MOST_EXPECTED], "…"])
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} or {items[-1]}"


#: Lark's names for the signs; the likeliest to be missing come first.
_SIGNS: Final = {
    "RPAR": "')'",
    "RBRACE": "'}'",
    "RSQB": "']'",
    "DOT": "'.'",
    "SEMICOLON": "';'",
    "COMMA": "','",
    "COLON": "':'",
    "LPAR": "'('",
    "LBRACE": "'{'",
    "LSQB": "'['",
    "EQUAL": "'='",
    "BANG": "'!'",
    "CIRCUMFLEX": "'^'",
    "PLUS": "'+'",
    "STAR": "'*'",
    "QUESTION": "'?'",
    "SLASH": "'/'",
    "VBAR": "'|'",
}

_NOT_KEYWORDS: Final = {
    *_SIGNS, *_NAMES, *_TERM, "BLANK_NODE_LABEL", "COMPARE", "AND", "OR", "MINUS", "__ANON_0",
}  # fmt: skip


def _keywords(accepted: Iterable[str]) -> set[str]:
    return {"a" if name == "_A" else name.lstrip("_") for name in accepted if name not in _NOT_KEYWORDS}


def _functions(lark: Lark) -> set[str]:
    patterns = [lark.get_terminal(name).pattern.value for name in ("BUILTIN", "AGGREGATE")]
    return {name for pattern in patterns for name in re.findall(r"[A-Z][A-Z0-9_]+", pattern)}
