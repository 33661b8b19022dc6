"""The result of ``Dataset.query(…, result="spaseq")``: an rdflib Result with its matches."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from rdflib import plugin
from rdflib.query import Result, ResultSerializer

from spaseq.errors import EngineError
from spaseq.language.syntax import Query
from spaseq.results.batch import Match
from spaseq.sources import BadEvent

#: Formats of matches, for every form of query.
_OF_MATCHES: Final = ("ndjson", "messages")


class SpaseqResult(Result):
    """The rows, answer or graph of a query, and all its ``matches``: a recorded stream is finite.

    ``vars``, ``bindings``, ``askAnswer``, ``graph``, iteration and ``serialize`` are rdflib's. ``rejected``
    holds what could not become an event.
    """

    def __init__(self, found: Mapping[str, Any]) -> None:
        """Create a result. Raises EngineError for results of another processor, which have no matches."""
        if "matches" not in found:
            raise EngineError("result='spaseq' holds the matches of SPAseq: say processor='spaseq', too")
        super().__init__(found["type_"])
        self.vars = found["vars_"]
        self.bindings = found["bindings"]
        self.askAnswer = found["askAnswer"]
        self.graph = found["graph"]
        self.query: Query = found["query"]
        self.matches: Sequence[Match] = found["matches"]
        self.rejected: Sequence[BadEvent] = found["rejected"]

    def serialize(
        self,
        destination: str | IO[bytes] | None = None,
        encoding: str = "utf-8",
        format: str = "xml",  # noqa: A002  # rdflib's name
        **args: Any,
    ) -> bytes | None:
        """Serialize as rdflib does; ``ndjson`` and ``messages`` write matches, of CONSTRUCT too.

        Raises FormatError if the format cannot hold the results.
        """
        if self.type != "CONSTRUCT" or format not in _OF_MATCHES:
            return super().serialize(destination, encoding, format, **args)
        # rdflib passes results of CONSTRUCT to serializers of graphs, which do not know matches.
        written = io.BytesIO()
        plugin.get(format, ResultSerializer)(self).serialize(written, encoding, **args)
        if destination is None:
            return written.getvalue()
        if isinstance(destination, str):
            Path(destination).write_bytes(written.getvalue())
        else:
            destination.write(written.getvalue())
        return None
