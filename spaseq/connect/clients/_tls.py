"""TLS options of URLs: the system's certificates, or those of ``?ca=``."""

from __future__ import annotations

import ssl

from spaseq.connect.address import Address
from spaseq.errors import SourceError


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
