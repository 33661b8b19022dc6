"""Graphs and engines as tools of language models, by the Model Context Protocol. Needs ``spaseq[mcp]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq._lazy import lazily
from spaseq.mcp.bounds import Bounds

if TYPE_CHECKING:
    from spaseq.mcp.serving import server

__all__ = ["Bounds", "server"]

# It needs the extra.
__getattr__, __dir__ = lazily(__name__, {"serving": "server"})
