"""The W3C's SPARQL evaluation tests, as GPMs: each test's data is one event."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import rdflib
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
)
from rdflib.collection import Collection
from rdflib.namespace import RDF

from spaseq.language.reading.parser import parse_group
from spaseq.language.syntax import Group
from spaseq.terms.dictionary import Term
from spaseq.terms.values import DOUBLE, Value, decode

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
Rows = list[dict[str, Term]]

_PROLOGUE = re.compile(r"(?:\s+|#[^\n\r]*|BASE\s*<[^>]*>|PREFIX\s*[^\s:]*:\s*<[^>]*>)*", re.IGNORECASE)
_ASK = re.compile(r"ASK\s*(WHERE)?", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """One test: its name, the files of its query, data and result."""

    name: str
    query: Path
    data: Path | None
    result: Path

    def group(self) -> Group:
        """The query as a group graph pattern: SELECT as a subquery, ASK as what it asks."""
        text = self.query.read_text(encoding="utf-8")
        prologue = _PROLOGUE.match(text)
        assert prologue is not None
        body = text[prologue.end() :]
        base = f"BASE <{self.query.as_uri()}>\n"
        if (ask := _ASK.match(body)) is not None:
            return parse_group(base + prologue[0] + body[ask.end() :])
        return parse_group(base + prologue[0] + "{ " + body + "\n}")

    def is_about_one_graph(self) -> bool:
        """Not CONSTRUCT or DESCRIBE, and no dataset of its own."""
        text = re.sub(r"#[^\n]*\n", "\n", self.query.read_text(encoding="utf-8"))
        words = re.sub(r"<[^<>\s]*>|\"[^\"\n]*\"|'[^'\n]*'", " ", text).upper()
        return not re.search(r"\b(CONSTRUCT|DESCRIBE|GRAPH|SERVICE|FROM)\b", words)

    def triples(self) -> list[Triple]:
        """The data."""
        if self.data is None:
            return []
        rdf_format = RdfFormat.from_extension(self.data.suffix[1:])
        quads = Dataset(parse(self.data.read_bytes(), rdf_format, base_iri=self.data.as_uri()))
        return [quad.triple for quad in quads]

    def expected(self) -> Rows | bool:
        """The result that the test demands: rows, or the answer of ASK."""
        kind = self.result.suffix[1:]
        if kind in ("ttl", "rdf"):
            return _result_set(self.result)
        if kind == "csv":  # which tells neither types nor blank nodes
            with self.result.open(encoding="utf-8", newline="") as stream:
                return [{k: Literal(v) for k, v in row.items() if v} for row in csv.DictReader(stream)]
        formats = {
            "srx": QueryResultsFormat.XML,
            "srj": QueryResultsFormat.JSON,
            "tsv": QueryResultsFormat.TSV,
        }
        answers = parse_query_results(self.result.read_bytes(), formats[kind])
        if isinstance(answers, QueryBoolean):
            return bool(answers)
        names = [variable.value for variable in answers.variables]
        return [{name: row[name] for name in names if row[name] is not None} for row in answers]


def _result_set(path: Path) -> Rows | bool:
    """A result written in RDF (the vocabulary of the SPARQL 1.0 tests)."""
    found = Dataset(
        parse(path.read_bytes(), RdfFormat.from_extension(path.suffix[1:]), base_iri=path.as_uri())
    )

    def objects(subject: Term, name: str) -> list[Term]:
        quads = found.quads_for_subject(subject)
        return [quad.object for quad in quads if quad.predicate.value == RS + name]

    rows: Rows = []
    for quad in found:
        if quad.predicate.value == RS + "boolean":
            return bool(quad.object.value == "true")
        if quad.predicate.value == RS + "solution":
            pairs = [
                (objects(b, "variable")[0].value, objects(b, "value")[0])
                for b in objects(quad.object, "binding")
            ]
            rows.append(dict(pairs))
    return rows


def cases(suite: Path) -> Iterator[Case]:
    """All evaluation tests of a suite with one graph as data."""
    for manifest in sorted(suite.glob("*/manifest.ttl")):
        if manifest.parent.name == "entailment":
            continue
        graph = rdflib.Graph().parse(manifest, format="turtle", publicID=manifest.as_uri())
        entries = graph.value(
            predicate=MF.entries, subject=graph.value(predicate=RDF.type, object=MF.Manifest)
        )
        for test in Collection(graph, entries):
            if (test, RDF.type, MF.QueryEvaluationTest) not in graph:
                continue
            action = graph.value(test, MF.action)
            if graph.value(action, QT.graphData) or graph.value(action, QT.serviceData):
                continue
            if isinstance(action, rdflib.URIRef):
                continue
            data = graph.value(action, QT.data)
            case = Case(
                f"{suite.name}/{manifest.parent.name}/{str(test).rpartition('#')[2]}",
                _path(graph.value(action, QT.query)),
                None if data is None else _path(data),
                _path(graph.value(test, MF.result)),
            )
            if case.is_about_one_graph():
                yield case


def _path(iri: rdflib.term.Node | None) -> Path:
    return Path(unquote(str(iri).removeprefix("file://")))


def same_rows(found: Rows, expected: Rows) -> bool:
    """Whether two multisets of solutions are equal, up to the names of blank nodes.

    Numbers count by type and value: how an engine writes the number it computed is its own affair.
    """
    return len(found) == len(expected) and _canonical(found) == _canonical(expected)


def _canonical(rows: Rows) -> Dataset:
    dataset = Dataset()
    for row in rows:
        node = BlankNode()
        dataset.add(Quad(node, NamedNode("v:"), Literal("")))
        for name, term in row.items():
            value = decode(term)
            if value.kind <= DOUBLE:
                term = Literal(Value(value.kind, value.data).text, datatype=term.datatype)
            dataset.add(Quad(node, NamedNode(f"v:{name}"), term))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset
