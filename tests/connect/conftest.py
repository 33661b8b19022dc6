"""Certificates of the tests' own, and brokers of Kafka."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.connect.servers import PATIENCE
from tests.spark.broker import broker
from tests.spark.maven import jars, unavailable


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


@pytest.fixture(scope="module")
def mock() -> Iterator[str]:
    """The cluster that librdkafka has for tests: its producer holds it."""
    kafka = pytest.importorskip(
        "confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)"
    )
    holder = kafka.Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    (server,) = holder.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{server.host}:{server.port}"
    holder.flush(PATIENCE)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    there = jars("broker")
    if isinstance(there, str):
        unavailable("kafka", there)
    assert not isinstance(there, str)
    with broker(tmp_path_factory.mktemp("broker"), there) as address:
        yield address


@pytest.fixture(params=["mock", pytest.param("servers", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest) -> str:
    """The address of a broker: of librdkafka's own mock, and, where tests are slow, of a real one."""
    address: str = request.getfixturevalue(request.param)
    return address
