"""Optional client libraries: imported on first use; an error says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spaseq.errors import SourceError


def required(module: str, extra: str) -> Any:
    """Import a module of an extra. Raises SourceError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise SourceError(
            f"{extra}:// needs {missing}, which is not installed: pip install 'spaseq[{extra}]'"
        ) from None
