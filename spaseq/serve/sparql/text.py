"""SPARQL text → text that Oxigraph can answer from a dataset alone.

``SERVICE <urn:x-spaseq:NAME> { … }`` has the meaning of ``spaseq.rdf.service``: the block, beginning with the
rows of the query's matches, is evaluated on the graph that describes these. So it becomes a GRAPH with a
group that begins with a subselect of the rows. Any other SERVICE is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

from spaseq.serve.errors import ApiError
from spaseq.serve.sparql.dataset import OF_MATCH, SCHEME, Matches, column

#: The variable of the match itself.
MATCH: Final = "match"

#: Strings, comments and IRIs, in which keywords have no meaning; then words, with the characters that make
#: them names.
_TOKEN: Final = re.compile(
    r"""\"\"\"(?:[^\\]|\\.)*?\"\"\"|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'"""
    r"""|<(?P<iri>[^<>"{}|^`\x00-\x20]*)>|\#[^\n\r]*|(?P<word>[?$@]?[\w.:%-]+)|."""
    "",
    re.DOTALL,
)
#: A block with one of these words has a triple pattern.
_SURE: Final = ("a",)
_BOOLEANS: Final = ("true", "false")

#: The most SERVICE blocks of a query: each is scanned to its end, and becomes longer.
_BLOCKS: Final = 32

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


@dataclass(slots=True)
class PlainQuery:
    """A query without SERVICE. ``default`` and ``named``: the graphs of FROM, or None.

    ``plain`` has the same length as the original text, so that places agree, and has GRAPH for SERVICE.
    """

    text: str
    plain: str
    services: list[Matches] = field(default_factory=list)
    default: list[str] | None = None
    named: list[str] | None = None


def read(text: str, find: Callable[[str, bool], Matches | None]) -> PlainQuery:
    """Return a query that Oxigraph may answer. ``find`` returns the registered query of a name, None to leave
    the SERVICE out; its second argument is whether the SERVICE is SILENT.

    Raises ``ApiError`` if another server could be queried, besides what ``find`` raises. Some harmless
    queries are refused, too: those with a prefix that contains ``service``.
    """
    tokens = list(_tokens(text))
    prefixes = dict(_prefixes(tokens))
    question = PlainQuery(text, _plain(text, tokens))
    question.text = "".join(_answerable(text, tokens, prefixes, find, question.services))
    # Escapes may be replaced before or after strings and IRIs are recognized: check both.
    for reading in dict.fromkeys((question.text, _ESCAPE.sub(_unescaped, question.text))):
        for word in _words(reading):
            # A keyword may follow a number without a space, and a name without a prefix may follow it.
            if "service" in word and not word.startswith(("?", "$")) and "service" in word.partition(":")[0]:
                raise _refused()
    before = ""
    for token in tokens:
        iri = _iri(token, prefixes)
        if iri is not None and before in ("from", "named"):
            question.default = question.default or []
            question.named = question.named or []
            (question.default if before == "from" else question.named).append(iri)
        before = token.word
    return question


class _Token(NamedTuple):
    """A meaningful token; ``word`` in lower case, ``iri`` without its brackets."""

    begin: int
    end: int
    text: str
    word: str
    iri: str | None

    @property
    def is_variable(self) -> bool:
        """Return whether it is a variable."""
        return self.word[:1] in ("?", "$")

    @property
    def is_term(self) -> bool:
        """Return whether it is a variable, a literal, or begins a node in brackets."""
        if self.is_variable or self.word in _BOOLEANS:
            return True
        return (
            self.text[0] in "\"'[(+" or self.text[0].isdigit() or (self.text[0] == "-" and self.text != "-")
        )


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if not found[0].isspace() and not found[0].startswith("#"):
            yield _Token(found.start(), found.end(), found[0], (found["word"] or "").lower(), found["iri"])


def _words(text: str) -> Iterator[str]:
    return (found["word"].lower() for found in _TOKEN.finditer(text) if found["word"] is not None)


def _plain(text: str, tokens: Sequence[_Token]) -> str:
    plain = list(text)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.word == "service":
            plain[token.begin : token.end] = "GRAPH  "
            if after is not None and after.word == "silent":
                plain[after.begin : after.end] = "      "
    return "".join(plain)


def _prefixes(tokens: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    for keyword, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if keyword.word == "prefix" and name.text.endswith(":") and iri.iri is not None:
            yield name.text[:-1], _ESCAPE.sub(_unescaped, iri.iri)


def _iri(token: _Token, prefixes: Mapping[str, str]) -> str | None:
    if token.iri is not None:
        return _ESCAPE.sub(_unescaped, token.iri)
    prefix, colon, local = token.text.partition(":")
    return prefixes[prefix] + local if colon and prefix in prefixes else None


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2], 16)
    return chr(number) if number < 0x110000 else "\ufffd"


def _answerable(
    text: str,
    tokens: Sequence[_Token],
    prefixes: Mapping[str, str],
    find: Callable[[str, bool], Matches | None],
    services: list[Matches],
) -> Iterator[str]:
    """Yield the text in parts, each SERVICE of ours replaced. Add the queries of these to ``services``."""
    done = blocks = 0
    closing: list[int] = []  # ends of blocks that were put into braces
    for i, token in enumerate(tokens):
        if token.begin < done:
            continue
        if closing and token.begin == closing[-1]:
            yield text[done : token.begin] + "}"
            done = closing.pop()
        if token.word != "service":
            continue
        blocks += 1
        if blocks > _BLOCKS:
            raise ApiError(413, "limit", f"a SPARQL query has {_BLOCKS} SERVICE blocks at most")
        silent = i + 1 < len(tokens) and tokens[i + 1].word == "silent"
        at = i + 1 + silent
        iri = _iri(tokens[at], prefixes) if at < len(tokens) else None
        last = _closing(tokens, at + 1)
        if iri is None or not iri.startswith(SCHEME) or last is None:
            raise _refused()
        yield text[done : token.begin]
        service = find(iri.removeprefix(SCHEME), silent)
        if service is None:
            yield "{ }"
            done = tokens[last].end
            continue
        inside = tokens[at + 2 : last]
        _note(services, service, _asks_more(inside))
        yield f"GRAPH <{service.graph}> {{ {_rows(service, inside)} "
        done = tokens[at + 1].end
        if inside and inside[0].word == "select":
            yield "{"
            closing.append(tokens[last].begin)
    yield text[done:]


def _note(services: list[Matches], service: Matches, described: bool) -> None:
    """Add a registered query to the list, once."""
    for i, known in enumerate(services):
        if known.id == service.id:
            services[i] = replace(known, described=known.described or described)
            return
    services.append(replace(service, described=described))


def _asks_more(inside: Sequence[_Token]) -> bool:
    """Return whether a block may query the description of matches; False if it has no triple pattern.

    A triple pattern has a predicate, which is a name or a variable, followed by its object. A block without a
    triple pattern has no names, and an operator or a comma after each variable, except in lists of variables.
    """
    if any(token.iri is not None or ":" in token.word or token.word in _SURE for token in inside):
        return True
    return any(one.is_variable and other.is_term for one, other in pairwise(inside))


def _closing(tokens: Sequence[_Token], begin: int) -> int | None:
    """Return where the group ends that begins with a token; None if none begins or ends."""
    depth = 0
    for i in range(begin, len(tokens)):
        depth += (tokens[i].text == "{") - (tokens[i].text == "}")
        if depth == 0:
            return i if i > begin else None
    return None


def _rows(service: Matches, inside: Sequence[_Token]) -> str:
    """Return the rows of all matches as a group; ``?match`` is a column if the block mentions it."""
    columns = list(service.columns)
    speaks = any(token.text in (f"?{MATCH}", f"${MATCH}") for token in inside)
    shown = columns + [MATCH] * (speaks and MATCH not in columns)
    rows = f"{service.graph}#rows"
    if not shown:
        return f"{{ GRAPH <{rows}> {{ [] <{OF_MATCH}> [] }} }}"
    row = _unused("row", shown)
    of = MATCH if MATCH in shown[len(columns) :] else _unused("of", shown)
    values = " ".join(f"OPTIONAL {{ ?{row} <{column(name)}> ?{name} }}" for name in columns)
    names = " ".join(f"?{name}" for name in shown)
    return f"{{ SELECT {names} {{ GRAPH <{rows}> {{ ?{row} <{OF_MATCH}> ?{of} {values} }} }} }}"


def _unused(name: str, others: Sequence[str]) -> str:
    while name in others:
        name += "_"
    return name


def _refused() -> ApiError:
    hint = f"SERVICE <{SCHEME}NAME> {{ … }} has the matches of a registered query"
    return ApiError(403, "auth", "SERVICE would ask another server: it is refused here", hint=hint)
