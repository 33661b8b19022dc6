"""Inside rdflib."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spaseq.rdf.live import Connection, Results, connect
    from spaseq.rdf.prepared import PreparedQuery, prepare
    from spaseq.rdf.result import SpaseqResult
    from spaseq.rdf.service import Service, register

__all__ = [
    "Connection",
    "PreparedQuery",
    "Results",
    "Service",
    "SpaseqResult",
    "connect",
    "prepare",
    "register",
]

# Imported when first asked for: rdflib imports `spaseq.rdf.hook` in programs that never stream anything.
_HOMES = {
    "Connection": "live",
    "PreparedQuery": "prepared",
    "Results": "live",
    "Service": "service",
    "SpaseqResult": "result",
    "connect": "live",
    "prepare": "prepared",
    "register": "service",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'spaseq.rdf' has no attribute {name!r}")
    value: object = getattr(import_module(f"spaseq.rdf.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
