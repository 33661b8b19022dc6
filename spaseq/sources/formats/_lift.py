"""Rows → RDF by a JSON-LD context and the JSON-LD processor, which is authoritative.

Many rows form one document for the processor, each in a named graph of its own. If that document is rejected,
its rows are tried one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.limits import Limits
from spaseq.nesting import check_json
from spaseq.sources.formats.contexts import Contexts
from spaseq.sources.formats.jsonld import quads_of
from spaseq.terms.identified import Row

_TOGETHER: Final = 256


def load_context(path: Path, limits: Limits, contexts: Contexts | None = None) -> str:
    """Return the context of a JSON-LD file, as JSON.

    Raises SourceError; nothing is fetched from the network.
    """
    try:
        data = path.read_bytes()
        check_json(data, limits)
        document = json.loads(data)
    except OSError as error:
        raise SourceError(f"context {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"context {path} is not JSON: {error}") from error
    if not isinstance(document, dict) or "@context" not in document:
        raise SourceError(f'context {path} has no "@context"')
    context = document["@context"]
    try:
        context = contexts.resolve(context) if contexts else context
    except ValueError as error:
        raise SourceError(f"context {path}: {error}") from None
    remote = _remote(context)
    if remote is not None:
        raise SourceError(
            f"context {path} refers to {remote}, which is never fetched: contexts=FOLDER says where a local "
            "copy is, or write its terms out"
        )
    text = json.dumps(context)
    try:
        quads_of(f'{{"@context":{text}}}'.encode())
    except ValueError as error:
        raise SourceError(f"context {path} is not a JSON-LD context: {error}") from error
    return text


def _remote(context: object) -> str | None:
    """Return the first external context that a context refers to, at any depth."""
    if isinstance(context, str):
        return context
    if isinstance(context, list):
        return next(filter(None, map(_remote, context)), None)
    if not isinstance(context, dict):
        return None
    if "@import" in context:
        return str(context["@import"])
    scoped = (term["@context"] for term in context.values() if isinstance(term, dict) and "@context" in term)
    return next(filter(None, map(_remote, scoped)), None)


def terms_of(context: object) -> set[str]:
    """Return the terms that a context, as JSON, defines at its top level."""
    if isinstance(context, list):
        return set().union(*map(terms_of, context))
    return {key for key in context if not key.startswith("@")} if isinstance(context, dict) else set()


def lift(objects: Sequence[str], context: str) -> Iterator[list[Row] | ValueError]:
    """Yield the triples of each row, given as JSON objects (not nested too deeply), or why it has none."""
    for start in range(0, len(objects), _TOGETHER):
        group = objects[start : start + _TOGETHER]
        try:
            yield from _graphs(group, context)
        except ValueError:
            yield from (_alone(row, context) for row in group)


def _alone(row: str, context: str) -> list[Row] | ValueError:
    try:
        return _graphs([row], context)[0]
    except ValueError as error:
        return error


def _graphs(group: Sequence[str], context: str) -> list[list[Row]]:
    """Return the triples of each row. Raises ValueError with the reason if a row is not JSON-LD."""
    nodes = ",".join(f'{{"@id":"row:{number}","@graph":[{row}]}}' for number, row in enumerate(group))
    graphs: dict[object, list[Row]] = {NamedNode(f"row:{number}"): [] for number in range(len(group))}
    document = f'{{"@context":{context},"@graph":[{nodes}]}}'
    for s, p, o, graph in quads_of(document.encode()):
        if graph not in graphs:
            raise ValueError("a row cannot have a @graph of its own")
        graphs[graph].append((s, p, o))
    return list(graphs.values())
