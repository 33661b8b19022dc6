"""HTTP: the queries, streams and background graphs of an engine (``pip install 'spaseq[serve]'``).

``create_app`` is an ASGI application; ``spaseq serve`` runs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spaseq.serve.app import create_app
    from spaseq.serve.limits import ServeLimits
    from spaseq.serve.newest.letters import Letters
    from spaseq.serve.settings import Settings

__all__ = ["Letters", "ServeLimits", "Settings", "create_app"]

_HOMES = {"create_app": "app", "Letters": "newest.letters", "ServeLimits": "limits", "Settings": "settings"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'spaseq.serve' has no attribute {name!r}")
    return getattr(import_module(f"spaseq.serve.{_HOMES[name]}"), name)
