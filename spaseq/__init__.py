"""RDF stream processing: sequences of SPARQL graph patterns over streams of RDF graphs.

>>> import spaseq
>>> query = spaseq.prepare('''
...     PREFIX : <http://example.org/>
...     SELECT ?p1 ?p2 WITHIN 10 SECONDS
...     FROM STREAM S <http://example.org/trades>
...     WHERE { SEQ(A , B)
...       DEFINE GPM A ON S { ?company :price ?p1 }
...       DEFINE GPM B ON S { ?company :price ?p2 . FILTER(?p2 < ?p1) } }''')
>>> engine = spaseq.Engine()
>>> handle = engine.register(query)
>>> for tick, price in enumerate([14, 12, 16, 15]):
...     engine.push("http://example.org/trades", f"<urn:x> <http://example.org/price> {price} .", tick)
>>> for match in handle.matches():
...     print(match.start, match.end, *match.bindings[0].values())
0 1 14 12
2 3 16 15
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq._lazy import lazily

if TYPE_CHECKING:
    from spaseq import connect, paths
    from spaseq.engine import AsyncEngine, AsyncHandle, Engine, Handle, Progress, Run, Source, Stats, run
    from spaseq.errors import (
        BadEventError,
        EngineError,
        FormatError,
        KnowledgeError,
        LateEventError,
        LimitError,
        PatternError,
        QueryError,
        QueryMeaningError,
        QuerySyntaxError,
        RetrievalError,
        SinkError,
        SourceError,
        SpaseqError,
        SpaseqWarning,
    )
    from spaseq.language import prepare
    from spaseq.language.functions import function
    from spaseq.language.syntax import Query
    from spaseq.limits import Limits
    from spaseq.matching.plan import explain
    from spaseq.patterns.kb import KnowledgeBase
    from spaseq.results.batch import Match, MatchBatch
    from spaseq.results.event import Event
    from spaseq.sources import BadEvent, SourceOptions
    from spaseq.sources.columns.table import table
    from spaseq.why import Diagnosis

__all__ = [
    "AsyncEngine",
    "AsyncHandle",
    "BadEvent",
    "BadEventError",
    "Diagnosis",
    "Engine",
    "EngineError",
    "Event",
    "FormatError",
    "Handle",
    "KnowledgeBase",
    "KnowledgeError",
    "LateEventError",
    "LimitError",
    "Limits",
    "Match",
    "MatchBatch",
    "PatternError",
    "Progress",
    "Query",
    "QueryError",
    "QueryMeaningError",
    "QuerySyntaxError",
    "RetrievalError",
    "Run",
    "SinkError",
    "Source",
    "SourceError",
    "SourceOptions",
    "SpaseqError",
    "SpaseqWarning",
    "Stats",
    "__version__",
    "connect",
    "explain",
    "function",
    "paths",
    "prepare",
    "run",
    "table",
]

__version__ = "0.1.0"

# `import spaseq` must stay cheap: names are imported on first use.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "connect": "",
        "paths": "",
        "engine": "AsyncEngine AsyncHandle Engine Handle Progress Run Source Stats run",
        "errors": "BadEventError EngineError FormatError KnowledgeError LateEventError LimitError "
        "PatternError QueryError QueryMeaningError QuerySyntaxError RetrievalError SinkError SourceError "
        "SpaseqError SpaseqWarning",
        "patterns.kb": "KnowledgeBase",
        "language": "prepare",
        "language.functions": "function",
        "language.syntax": "Query",
        "limits": "Limits",
        "matching.plan": "explain",
        "results.batch": "Match MatchBatch",
        "results.event": "Event",
        "sources": "BadEvent SourceOptions",
        "sources.columns.table": "table",
        "why": "Diagnosis",
    },
)
