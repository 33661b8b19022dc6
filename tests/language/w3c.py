"""The W3C's SPARQL tests as material for SPAseq's parser: which there are, and how to embed one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import rdflib
from rdflib.namespace import RDF

_MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
_QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
      | (?P<string>\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<iri><[^<>\s"{}|^`]*>)
      | (?P<name>[?$@]\w+|[\w.-]*:(?:[\w.%-]|\\.)*)
      | (?P<word>[A-Za-z]\w*)
      | (?P<brace>[{}])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Case:
    """A query file of the suite, and whether it is SPARQL."""

    name: str
    text: str
    positive: bool


@dataclass(frozen=True)
class Embedded:
    """SPAseq that holds the query; ``whole`` says whether it is a query or one group."""

    text: str
    whole: bool


def cases(folder: Path) -> Iterator[Case]:
    """Every query that a manifest under ``folder`` calls good or bad, once each, in order."""
    verdicts: dict[str, bool] = {}
    for manifest in sorted(folder.rglob("manifest.ttl")):
        graph = rdflib.Graph().parse(manifest, publicID=manifest.as_uri())
        for test, kind in graph.subject_objects(RDF.type):
            name = str(kind).rpartition("#")[2]
            for action in graph.objects(test, _MF.action):
                if name == "QueryEvaluationTest":
                    verdicts.update((str(query), True) for query in graph.objects(action, _QT.query))
                elif name in ("PositiveSyntaxTest", "PositiveSyntaxTest11"):
                    verdicts[str(action)] = True
                elif name in ("NegativeSyntaxTest", "NegativeSyntaxTest11"):
                    verdicts[str(action)] = False
    for url, positive in sorted(verdicts.items()):
        path = Path(url.removeprefix("file://"))
        yield Case(str(path.relative_to(folder)), path.read_text(encoding="utf-8"), positive)


def embed(text: str) -> Embedded | str:
    """The query as SPAseq: a subquery of a group, or a CONSTRUCT; or why that cannot be."""
    base = "BASE <http://example.org/w3c/query.rq>\n"
    depth, form, clauses, braces = 0, None, [], []
    tokens = [m for m in _TOKEN.finditer(text) if m.lastgroup != "comment"]
    for i, token in enumerate(tokens):
        word = token[0].upper() if token.lastgroup == "word" else ""
        if token.lastgroup == "brace":
            depth += 1 if token[0] == "{" else -1
            if depth == (1 if token[0] == "{" else 0):
                braces.append(token.start())
        elif form is None and word in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE"):
            form = token
        elif depth == 0 and word == "FROM":
            named = tokens[i + 1][0].upper() == "NAMED"
            clauses.append((token.start(), tokens[i + 1 + named].end()))
    if form is None:
        return "no query form"
    kind = form[0].upper()
    if kind == "DESCRIBE":
        return "DESCRIBE"
    prologue = base + text[: form.start()]
    stop = clauses[-1][1] if clauses else None
    if kind == "SELECT":
        select = text[form.start() : clauses[0][0]] + text[stop:] if clauses else text[form.start() :]
        return Embedded(f"{prologue}{{ {select}\n}}", whole=False)
    if kind == "ASK":
        return Embedded(f"{prologue}{{ SELECT * {text[stop or form.end() :]}\n}}", whole=False)
    if len(braces) < 4:
        return "CONSTRUCT WHERE"
    template, body = text[braces[0] : braces[1] + 1], text[braces[2] : braces[3] + 1]
    return Embedded(
        f"{prologue}CONSTRUCT {template}\nWITHIN 1 SECOND FROM STREAM S <urn:s>\n"
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {body}\n}} {text[braces[3] + 1 :]}\n",
        whole=True,
    )
