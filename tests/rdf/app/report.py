"""Prints what a query file says of a dataset, as a table of tab-separated words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rdflib import Dataset


def report(dataset: Dataset, query: Path) -> Iterator[str]:
    """The lines of the report."""
    result = dataset.query(query.read_text(encoding="utf-8"))
    yield "\t".join(str(name) for name in result.vars or ())
    for row in result:
        yield "\t".join("-" if term is None else str(term) for term in row)
