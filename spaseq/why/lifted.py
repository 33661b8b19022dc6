"""The columns or keys from which a JSON-LD context makes predicates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.limits import Limits
from spaseq.sources.formats._lift import lift, load_context, terms_of
from spaseq.terms.dictionary import Term


def keys(context: Path) -> Mapping[Term, str]:
    """Return predicate → its column or key, by the JSON-LD processor; empty if the context is unreadable."""
    try:
        text = load_context(context, Limits())
    except SourceError:  # the file was removed since the stream was opened
        return {}
    names = sorted(terms_of(json.loads(text)))
    rows = [json.dumps({"@id": "urn:row", name: "urn:value"}) for name in names]
    found: dict[Term, str] = {}
    for name, triples in zip(names, lift(rows, text), strict=True):
        if not isinstance(triples, ValueError):
            for subject, predicate, _ in triples:
                if subject == NamedNode("urn:row") and isinstance(predicate, NamedNode):
                    found.setdefault(predicate, name)
    return found
