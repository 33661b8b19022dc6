"""Graphs and engines as tools of language models, by the Model Context Protocol. Needs ``spaseq[mcp]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.mcp.bounds import Bounds

if TYPE_CHECKING:
    from spaseq.mcp.serving import server

__all__ = ["Bounds", "server"]


def __getattr__(name: str) -> object:
    if name != "server":
        raise AttributeError(f"module 'spaseq.mcp' has no attribute {name!r}")
    from spaseq.mcp.serving import server  # here, because it needs the extra

    return server
