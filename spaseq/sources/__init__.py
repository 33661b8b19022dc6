"""Bytes, files and pipes → batches of events: one file per format.

``open_source`` reads TriG, N-Quads, N-Triples, JSON-LD, RDF Messages, Jelly, and rows (CSV, NDJSON)
lifted by a JSON-LD context, and tables in memory. It never holds a whole file, delivers each event as
soon as it is complete, and reports what is malformed instead of stopping.
"""

from __future__ import annotations

from spaseq.sources._open import open_source, read_stream
from spaseq.sources._options import GENERATED_AT, SourceOptions, parse_source
from spaseq.sources.assembly.sink import BadEvent
from spaseq.sources.catalog import CatalogEntry, load_catalog
from spaseq.sources.formats.message_writer import write_messages

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
