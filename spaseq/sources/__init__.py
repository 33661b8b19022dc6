"""Bytes, files, pipes and tables → event batches. Open ``_open.py`` first.

Reads TriG, N-Quads, N-Triples, JSON-LD, RDF Messages, Jelly, and rows (CSV, NDJSON) lifted by a JSON-LD
context. A file is never held whole, an event is delivered when it is complete, and malformed events are
reported.
"""

from __future__ import annotations

from spaseq.sources._open import open_source, read_stream
from spaseq.sources._options import GENERATED_AT, SourceOptions, parse_source
from spaseq.sources.assembly.sink import BadEvent
from spaseq.sources.catalog import CatalogEntry, load_catalog
from spaseq.sources.formats.messages import write_messages

__all__ = [
    "GENERATED_AT",
    "BadEvent",
    "CatalogEntry",
    "SourceOptions",
    "load_catalog",
    "open_source",
    "parse_source",
    "read_stream",
    "write_messages",
]
