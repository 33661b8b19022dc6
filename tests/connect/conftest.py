"""Certificates of the tests' own."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Tls:
    """What a server has, and the file of the authority that signed it."""

    server: ssl.SSLContext
    ca: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    trustme = pytest.importorskip("trustme", reason="trustme is not installed (the extra test brings it)")
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    ca, certificate, key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    authority.cert_pem.write_to_path(str(ca))
    issued.private_key_pem.write_to_path(str(key))
    for part in issued.cert_chain_pems:
        part.write_to_path(str(certificate), append=True)
    return Tls(context, ca, certificate, key)
