"""What rdflib's SPARQL calls: ``SERVICE <urn:x-spaseq:NAME>`` (entry point ``rdf.plugins.sparqleval``).

rdflib imports this module together with its SPARQL, in every program of an environment that has spaseq
installed, and calls ``evaluate`` for each part of each query. So it imports nothing of its own, and
everything that it may need is imported when a service of ours is met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from rdflib.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdflib.plugins.sparql.parserutils import CompValue
    from rdflib.plugins.sparql.sparql import QueryContext

    from spaseq.rdf.service import Service

SCHEME: Final = "urn:x-spaseq:"

#: The services of this process, by name. They are here, so that a glance says that there are none.
SERVICES: Final[dict[str, Service]] = {}

_QUERIES: Final = frozenset({"SelectQuery", "AskQuery", "ConstructQuery", "DescribeQuery"})


def evaluate(ctx: QueryContext, part: CompValue) -> Iterable[Any]:
    """The solutions of a part that is ours; NotImplementedError for every other, as rdflib wants it."""
    name = part.name
    if name == "ServiceGraphPattern":
        iri = ctx[part.term]
        if isinstance(iri, str) and iri.startswith(SCHEME):
            from spaseq.rdf.service import solutions

            return solutions(ctx, part, iri)
    elif name == "SpaseqQuery":
        from spaseq.errors import EngineError

        raise EngineError("this is a SPAseq query: ask it with processor='spaseq', result='spaseq'")
    elif SERVICES and name in _QUERIES:
        from spaseq.rdf.service import declare

        declare(ctx, part)
    raise NotImplementedError


def _for_us_first(query: Callable[..., Any]) -> Callable[..., Any]:
    """``Graph.query`` that does not give a store what is for us: SPAseq, and text with a service of ours.

    rdflib offers every query to the store before it looks at ``processor``, and ours is never asked where a
    store has a SPARQL of its own: Oxigraph finds a syntax error in SPAseq, and no host in a service's name.
    """

    @wraps(query)
    def asked(graph: Graph, text: object, processor: object = "sparql", *args: Any, **kwargs: Any) -> Any:
        ours = processor == "spaseq" or (isinstance(text, str) and SCHEME in text)
        if ours and len(args) < 4:  # the fourth is use_store_provided itself
            kwargs["use_store_provided"] = False
        return query(graph, text, processor, *args, **kwargs)

    return asked


Graph.query = _for_us_first(Graph.query)  # type: ignore[method-assign]  # rdflib has no entry point for it
