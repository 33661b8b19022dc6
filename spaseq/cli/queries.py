"""Query files of the command line, and the sources and graphs that they read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spaseq.cli.arguments import UsageError, knowledge, stream_sources
from spaseq.cli.console import complain, warn
from spaseq.errors import LimitError, QueryError, SpaseqError
from spaseq.language import checked
from spaseq.language.syntax import Query
from spaseq.limits import Limits

if TYPE_CHECKING:
    from spaseq.engine import Source
    from spaseq.patterns.kb import KnowledgeBase


def read(path: Path, limits: Limits = Limits()) -> Query:
    """Return the query in a file. Raises QueryError, LimitError, and UsageError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"the query {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the query {path} is not UTF-8 text") from None
    return checked(text, str(path), limits)


def read_all(paths: list[Path], limits: Limits = Limits()) -> dict[str, Query]:
    """Return queries by the paths of their files; report all errors in them before raising."""
    queries: dict[str, Query] = {}
    wrong: list[SpaseqError] = []
    for path in paths:
        try:
            if str(path) in queries:
                raise UsageError(f"the query {path} is given twice")
            queries[str(path)] = read(path, limits)
        except (QueryError, LimitError, UsageError) as error:
            wrong.append(error)
    for one in wrong[:-1]:
        complain(one)
    if wrong:
        raise wrong[-1]
    return queries


def read_warned(paths: list[Path], limits: Limits) -> dict[str, Query]:
    """Return queries as ``read_all`` does, and print the warnings of all queries, each once."""
    queries = read_all(paths, limits)
    for warning in dict.fromkeys(w for prepared in queries.values() for w in prepared.warnings):
        warn(warning)
    return queries


def inputs(
    queries: Mapping[str, Query],
    streams: list[str] | None,
    kb: list[str] | None,
    catalog: Path | None,
    *,
    all_needed: bool = True,
) -> tuple[dict[str, Source], KnowledgeBase]:
    """Return what queries read, from the command line; ``all_needed``: every stream must have a source."""
    # Imported here: they take a while to load.
    from spaseq.engine import Source
    from spaseq.patterns.kb import KnowledgeBase
    from spaseq.sources.catalog import load_catalog

    sources = stream_sources(
        queries, streams or (), load_catalog(catalog) if catalog else None, all_needed=all_needed
    )
    graphs = KnowledgeBase(knowledge(kb or ()))
    for name, query in queries.items():
        if missing := graphs.missing(query):
            of = f" of {name}" if len(queries) > 1 else ""
            raise UsageError(f"no file for background graph {missing[0]}{of}: give it with --kb IRI=FILE")
    return {iri: Source(iri, location, options) for iri, (location, options) in sources.items()}, graphs
