"""What clients share: optional libraries, imported on first use, and the TLS options of URLs."""

from __future__ import annotations

import ssl
from importlib import import_module
from typing import Any

from spaseq.connect.address import Address
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


def context(address: Address) -> ssl.SSLContext | None:
    """Return the TLS context that checks the server's certificate; None if the connection is not encrypted.

    Raises SourceError if the file of ``ca=`` has no certificate, or the connection is not encrypted.
    """
    file = address.text("ca")
    if not address.is_secure:
        if file:
            raise SourceError(f"{address}: ca= is for {address.scheme}s://, which is encrypted")
        return None
    try:
        return ssl.create_default_context(cafile=file or None)
    except (ssl.SSLError, OSError) as error:
        raise SourceError(f"{address}: ca={file!r} has no certificate that can be read: {error}") from None
