"""The text of a question of SPARQL → one that Oxigraph answers from a dataset, and nothing else.

``SERVICE <urn:x-spaseq:NAME> { … }`` means here what it means inside rdflib (``spaseq.rdf.service``): what
stands in the block, when that begins with the rows of the query's matches, asked of the graph that describes
these. So it becomes a GRAPH whose group begins with a subselect of the rows. Any other SERVICE is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

from spaseq.serve.errors import ApiError
from spaseq.serve.sparql.dataset import OF_MATCH, SCHEME, Matches, column

#: The variable that is the match itself.
MATCH: Final = "match"

#: Strings, comments and IRIs, in which a word means nothing; then words, with what makes them names.
_TOKEN: Final = re.compile(
    r"""\"\"\"(?:[^\\]|\\.)*?\"\"\"|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'"""
    r"""|<(?P<iri>[^<>"{}|^`\x00-\x20]*)>|\#[^\n\r]*|(?P<word>[?$@]?[\w.:%-]+)|."""
    "",
    re.DOTALL,
)
#: A block with one of these has a triple pattern.
_SURE: Final = ("a",)
_BOOLEANS: Final = ("true", "false")

#: So many SERVICE blocks of a question are answered: each is read to its end, and becomes longer.
_BLOCKS: Final = 32

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


@dataclass(slots=True)
class Question:
    """A question without SERVICE. ``default`` and ``named``: what FROM says, None where nothing.

    ``plain`` is as long as the question, so that a place in it is one there, and has GRAPH for SERVICE.
    """

    text: str
    plain: str
    services: list[Matches] = field(default_factory=list)
    default: list[str] | None = None
    named: list[str] | None = None


def read(text: str, find: Callable[[str, bool], Matches | None]) -> Question:
    """A question as Oxigraph may answer it; ``find`` gives the registered query of a name, None
    to leave the SERVICE out, and is told whether that is SILENT.

    Raises ``ApiError`` where another server may be asked, besides what ``find`` raises. Some questions that
    ask none are refused, too: those with a prefix that has ``service`` in its name.
    """
    tokens = list(_tokens(text))
    prefixes = dict(_prefixes(tokens))
    question = Question(text, _plain(text, tokens))
    question.text = "".join(_answerable(text, tokens, prefixes, find, question.services))
    # Whether escapes stand for what they say before strings and IRIs are looked for, or after: both are read.
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
    """A token that means something; ``word`` in lower case, ``iri`` without its brackets."""

    begin: int
    end: int
    text: str
    word: str
    iri: str | None

    @property
    def is_variable(self) -> bool:
        """Whether it is a variable."""
        return self.word[:1] in ("?", "$")

    @property
    def is_term(self) -> bool:
        """Whether it is a variable, a literal, or begins a node in brackets."""
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
    """The text in parts, each SERVICE of ours as what it stands for; these are added to ``services``."""
    done = blocks = 0
    closing: list[int] = []  # where blocks end that had to be put into braces
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
            raise ApiError(413, "limit", f"a question has {_BLOCKS} SERVICE blocks at most")
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
    """Adds a registered query to those that are asked, once."""
    for i, known in enumerate(services):
        if known.id == service.id:
            services[i] = replace(known, described=known.described or described)
            return
    services.append(replace(service, described=described))


def _asks_more(inside: Sequence[_Token]) -> bool:
    """Whether a block may ask how matches are described; False where it has no triple pattern.

    Such a pattern has a predicate with a name, or one that is a variable, and then its object: where there is
    no pattern, an operator or a comma stands between the two, but in lists of variables.
    """
    if any(token.iri is not None or ":" in token.word or token.word in _SURE for token in inside):
        return True
    return any(one.is_variable and other.is_term for one, other in pairwise(inside))


def _closing(tokens: Sequence[_Token], begin: int) -> int | None:
    """Where the group ends that begins with a token; None if none begins or ends."""
    depth = 0
    for i in range(begin, len(tokens)):
        depth += (tokens[i].text == "{") - (tokens[i].text == "}")
        if depth == 0:
            return i if i > begin else None
    return None


def _rows(service: Matches, inside: Sequence[_Token]) -> str:
    """The rows of all matches as a group; ``?match`` among their columns where the block speaks of it."""
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
