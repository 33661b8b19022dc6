"""Queries on PySpark: the same answers for streams that outgrow one machine.

=================  ==========================================================================================
``session``        a session that is set up for it, the active one or a small local one
``run``            a query over files, folders or patterns → a DataFrame of answers, in a batch or as a stream
``matches``        a query over a DataFrame of events → a DataFrame of matches
``analyze``        the same → the counts of ``spaseq explain --analyze``, as a DataFrame
``events``         a DataFrame's columns → events
``knowledge``      background graphs as DataFrames, for queries' ``kb``
``kafka_events``   topics of Kafka → events; ``kafka_messages`` events, ``answer_messages`` answers → messages
``save``           answers → files: NDJSON, N-Quads, TriG, RDF Messages, parquet; dead letters beside them
``derived``        matches of REGISTER STREAM → events
``path_pairs``     a path query over a graph → pairs, in chunks of sources; ``path_pairs_of_edges``: by joins
``graphframe``     a graph as a GraphFrame; ``path_pairs_of_graphframe``: path queries over one
``retrieve``       questions → paths for a language model; ``relations_of``: topics → relation paths
``state``          a stream's checkpoint → what each bucket holds
``drive``          a stream that is matched in the driver, where output and state are committed together
=================  ==========================================================================================

``spark.read.format("spaseq")`` and ``spark.readStream.format("spaseq")`` give the events of files, once
``session`` or ``register`` has made them known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq._lazy import lazily

if TYPE_CHECKING:
    from spaseq.spark._checkpoints import state
    from spaseq.spark.background.frames import knowledge
    from spaseq.spark.driver import drive, folder_sink
    from spaseq.spark.paths.chunks import path_pairs
    from spaseq.spark.paths.frontier import path_pairs_of_edges
    from spaseq.spark.paths.graphframes import graphframe, path_pairs_of_graphframe
    from spaseq.spark.paths.retrieval import relations_of, retrieve
    from spaseq.spark.queries import analyze, answers, answers_of, matches, planned, run
    from spaseq.spark.sessions import register, session
    from spaseq.spark.sinks._columns import derived, expanded
    from spaseq.spark.sinks.files import counted, save
    from spaseq.spark.source.kafka import answer_messages, kafka_events, kafka_messages
    from spaseq.spark.source.lift import events

__all__ = [
    "analyze",
    "answer_messages",
    "answers",
    "answers_of",
    "counted",
    "derived",
    "drive",
    "events",
    "expanded",
    "folder_sink",
    "graphframe",
    "kafka_events",
    "kafka_messages",
    "knowledge",
    "matches",
    "path_pairs",
    "path_pairs_of_edges",
    "path_pairs_of_graphframe",
    "planned",
    "register",
    "relations_of",
    "retrieve",
    "run",
    "save",
    "session",
    "state",
]

# Loaded lazily: the stages run, and are tested, without Spark.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "_checkpoints": "state",
        "background.frames": "knowledge",
        "driver": "drive folder_sink",
        "paths.chunks": "path_pairs",
        "paths.frontier": "path_pairs_of_edges",
        "paths.graphframes": "graphframe path_pairs_of_graphframe",
        "paths.retrieval": "relations_of retrieve",
        "queries": "analyze answers answers_of matches planned run",
        "sinks._columns": "derived expanded",
        "sessions": "register session",
        "sinks.files": "counted save",
        "source.kafka": "answer_messages kafka_events kafka_messages",
        "source.lift": "events",
    },
)
