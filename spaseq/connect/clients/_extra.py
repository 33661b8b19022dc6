"""Clients that are extras: imported when a URL asks for them, with what to install where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spaseq.errors import SourceError


def required(module: str, extra: str) -> Any:
    """A module of an extra. Raises SourceError with what installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise SourceError(
            f"{extra}:// needs {missing}, which is not installed: pip install 'spaseq[{extra}]'"
        ) from None
