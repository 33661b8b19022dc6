"""SPARQL 1.1 Query Results CSV and TSV. ASK, which they lack, is the bare word, as Oxigraph writes it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rdflib.term import BNode, Node

from spaseq.language.syntax import Query
from spaseq.results.writers._base import Cache, RowFormat, columns
from spaseq.terms.interop import from_rdflib

if TYPE_CHECKING:
    from spaseq.results.batch import Match, MatchBatch


class CsvRows(RowFormat):
    """https://www.w3.org/TR/sparql11-results-csv-tsv/: values only; IRIs and literals look alike."""

    holds_all = True

    def __init__(self, query: Query) -> None:
        self._names = columns(query)
        self._terms = Cache()

    def answer(self, answer: bool) -> str:
        return _csv([[str(answer).lower()]])

    def head(self) -> str:
        return _csv([self._names])

    def rows(self, match: Match) -> str:
        return _csv([_value(row.get(name)) for name in self._names] for row in match.bindings)

    def all_rows(self, batch: MatchBatch) -> memoryview:
        from spaseq.results.writers import _texts

        return _texts.csv_rows(batch, self._terms)


class TsvRows(RowFormat):
    """https://www.w3.org/TR/sparql11-results-csv-tsv/: terms as N-Triples writes them, which is lossless."""

    holds_all = True

    def __init__(self, query: Query) -> None:
        self._names = columns(query)
        self._terms = Cache()

    def answer(self, answer: bool) -> str:
        return f"{str(answer).lower()}\n"

    def head(self) -> str:
        return "\t".join(f"?{name}" for name in self._names) + "\n"

    def rows(self, match: Match) -> str:
        return "".join(
            "\t".join(str(from_rdflib(row[name])) if name in row else "" for name in self._names) + "\n"
            for row in match.bindings
        )

    def all_rows(self, batch: MatchBatch) -> memoryview:
        from spaseq.results.writers import _texts

        return _texts.tsv_rows(batch, self._terms)


def _csv(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)  # CRLF and quotes by RFC 4180
    return text.getvalue()


def _value(term: Node | None) -> str:
    if term is None:
        return ""
    return f"_:{term}" if isinstance(term, BNode) else str(term)
