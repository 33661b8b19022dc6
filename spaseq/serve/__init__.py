"""HTTP server for the queries, streams and background graphs of an engine (``spaseq[serve]``).

``create_app`` returns an ASGI application; ``spaseq serve`` runs it. Open ``app.py`` first, then
``service.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq._lazy import lazily

if TYPE_CHECKING:
    from spaseq.serve.app import create_app
    from spaseq.serve.newest.letters import Letters
    from spaseq.serve.settings import ServeLimits, Settings

__all__ = ["Letters", "ServeLimits", "Settings", "create_app"]

# Settings and limits can be imported without the server's dependencies.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "app": "create_app",
        "newest.letters": "Letters",
        "settings": "ServeLimits Settings",
    },
)
