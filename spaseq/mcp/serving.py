"""The MCP server: which tools there are, and what their errors say. Needs ``spaseq[mcp]``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib.metadata import version
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from spaseq.engine import Engine
from spaseq.errors import SpaseqError
from spaseq.excerpts import bounded
from spaseq.mcp.bounds import Bounds, Workers
from spaseq.mcp.events import EventTools
from spaseq.mcp.graphs import GraphTools
from spaseq.paths import KnowledgeGraph

_OF_GRAPHS: Final = (
    "A knowledge graph: ask relations what leads away from a topic, then retrieve along the relation paths "
    "that answer the question. paths and explain take path expressions."
)
_OF_EVENTS: Final = (
    "Streams of events: check a SPAseq query, register it, push events, ask for matches, cancel it."
)

_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_ENDS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


def server(
    graph: KnowledgeGraph | None = None, engine: Engine | None = None, bounds: Bounds | None = None
) -> MCPServer:
    """Return a server with tools over a graph (*relations*, *paths*, *retrieve*, *explain*), over an engine
    (*check*, *register*, *push*, *matches*, *cancel*), or both.

    Its ``run()`` serves standard input and output. Other threads may change the graph and use the engine
    meanwhile. Raises ValueError if there is neither a graph nor an engine.
    """
    if graph is None and engine is None:
        raise ValueError("a server needs a graph, an engine or both")
    bounds = bounds or Bounds()
    told = [text for text, there in ((_OF_GRAPHS, graph), (_OF_EVENTS, engine)) if there is not None]
    made = MCPServer("spaseq", version=version("spaseq"), instructions="\n".join(told), log_level="WARNING")
    workers = Workers(bounds.seconds)
    if graph is not None:
        asked = GraphTools(graph, bounds)
        for tool in (asked.relations, asked.paths, asked.retrieve, asked.explain):
            _add(made, tool, workers, _READS, searches=True)
    if engine is not None:
        events = EventTools(engine, bounds)
        _add(made, events.check, workers, _READS)
        _add(made, events.register, workers, _WRITES)
        _add(made, events.push, workers, _WRITES)
        _add(made, events.matches, workers, _WRITES)
        _add(made, events.cancel, workers, _ENDS)
    return made


def _add(
    made: MCPServer,
    tool: Callable[..., dict[str, Any]],
    workers: Workers,
    hints: ToolAnnotations,
    *,
    searches: bool = False,
) -> None:
    """Add a tool that runs in a thread. Its errors have line, column, caret and hint, for a model to read."""

    @wraps(tool)
    async def call(**arguments: Any) -> dict[str, Any]:
        try:
            work = partial(tool, **arguments)
            return await (workers.search(work) if searches else workers.run(work, reads=hints is _READS))
        except (SpaseqError, ValueError) as error:
            raise ToolError(bounded(str(error))) from error

    made.add_tool(call, annotations=hints)
