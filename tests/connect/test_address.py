"""What a URL may say, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spaseq
from spaseq.connect import hide, parse_location, source
from spaseq.connect.address import SCHEMES, parse_address
from spaseq.errors import SourceError
from tests.connect.events import QUERY


def test_a_url_says_where_and_how() -> None:
    live = source(
        "kafka://a:9093,b/trades?format=nq&group=g&security.protocol=ssl&connect=500ms&time=arrival"
    )
    assert live.address.hosts == (("a", 9093), ("b", 9092))
    assert live.address.path == "trades"
    assert live.address.text("group") == "g"
    assert live.address.seconds("connect", 9) == 0.5
    assert (live.options.format, live.options.time) == ("nq", "arrival")
    assert str(live.address) == "kafka://a:9093,b:9092/trades"


def test_topics_of_mqtt_have_their_wildcards() -> None:
    assert source("mqtt://h/a/+/b/#?format=ttl").address.path == "a/+/b/#"


def test_the_server_has_its_own_query() -> None:
    assert source("https://h/feed?query=a%3D1%26b%3D2").address.url == "https://h:443/feed?a=1&b=2"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("hdfs://h/t.nq", "files of hdfs:// are not read: paths are, and s3a:// by Spark"),
        ("abfss://me@store/t.nq", "files of abfss:// are not read"),
        ("kafak://h/t", "unknown scheme kafak://: did you mean kafka://?"),
        ("amqp://h/t", "one of kafka://, mqtt://"),
        ("kafka:///t", "no host in 'kafka:///t': write kafka://HOST[:PORT]/TOPIC"),
        ("ws://:8080/x", "no host before :8080"),
        ("mqtt://a b/t", "'a b' cannot be a host"),
        ("mqtt://h:port/t", "what follows h: cannot be a port, a number from 1 to 65535"),
        ("http:/h/x", "http: has two slashes behind it: write http://HOST[:PORT]/PATH"),
        ("http://h/x?token=T%C3%A9", "option 'token' has a character that a header of HTTP cannot have"),
        ("mqtt://h:70000/t", "a number from 1 to 65535"),
        ("mqtt://h", "no topic: write mqtt://HOST[:PORT]/TOPIC"),
        ("kafka://h/a%20b", "cannot be a topic of Kafka's"),
        ("ws://a,b/x", "ws:// has one host, not 2"),
        ("mqtt://@h/t", "no user before the @"),
        ("kafka://h/t?gruop=g", "unknown option 'gruop' of kafka://: did you mean group? known are connect"),
        ("mqtt://h/t?group=g", "unknown option 'group' of mqtt://"),
        ("mqtt://h/t?qos=3", "qos='3' is none of 0, 1, 2"),
        ("mqtt://h/t?qos=1&qos=1", "option 'qos' is given twice"),
        ("kafka://h/t?group=", "option 'group' has no value"),
        ("kafka://h/t?retry=5", "retry='5' is not a duration"),
        ("kafka://h/t?from=monday", "neither earliest nor latest nor a time"),
        ("kafka://h/t?format=nquads", "unknown format 'nquads'"),
        ("kafka://h/t?sasl.kerberos.kinit.cmd=x", "unknown option 'sasl.kerberos.kinit.cmd'"),
        ("wss://h/t?ca=missing.pem", "ca='missing.pem': no such file"),
        ("file://ticks.nq?follow", "names a host: write file:///PATH, or file:PATH"),
        ("file:?follow", "no path in 'file:?follow'"),
        ("file:a.nq?follow=1", "option 'follow' has no value"),
    ],
)
def test_what_is_wrong_is_said(url: str, said: str) -> None:
    with pytest.raises(SourceError) as raised:
        parse_location(url)
    assert said in str(raised.value)
    assert "None" not in str(raised.value)


def test_sinks_have_their_own_options() -> None:
    with pytest.raises(SourceError, match="unknown option 'group'"):
        parse_address("kafka://h/t?group=g", sink=True)
    with pytest.raises(SourceError, match="ws:// is for sources, not for results: one of kafka://, mqtt://"):
        parse_address("ws://h/t", sink=True)


@pytest.mark.parametrize(
    "url",
    [
        "kafka://me:hush@h:x/t",
        "kafka://h/t?sasl.password=hush&sasl.usrname=me",
        "wss://me:hush@/x",
        "https://h/x?token=hush&y=1",
        "kafka://me:hu%2Fhush@/t",
        "kafka://h/t?sasl.pasword=hush",
        "ws://h/x?tokn=hush",
        "http://h/x?apikey=hush",
        "http://h/x?query=apikey%3Dhush&y=1",
        "http://h/x?token=a%0Ahush",
        "http://h/x?token=h%C3%A9hush",
        "http://h/x?query=a%0Ahush",
        "https://me:hush/x",
        "https://me:a/hush@h:x/y",
        "https://me:a?hush@h/x",
        "http://h/x?token=a&hush",
        "kafka:/me:hush@h/t?sasl.password=hush",
        "kafka:h/t?sasl.password=hush",
        "s3a://me:hush@bucket/x?y=hush",
        "file://me:hush@h/x?follow",
    ],
)
def test_credentials_are_never_shown(url: str) -> None:
    with pytest.raises(SourceError) as raised:
        parse_location(url)
    assert "hush" not in str(raised.value)
    assert "hush" not in hide(f"S={url}")


def test_no_representation_of_a_source_has_credentials() -> None:
    for url in ("http://me:hush@h/x?token=hush&query=k%3Dhush", "kafka://h/t?sasl.pasword=hush"):
        assert "hush" not in repr(spaseq.Source("http://example.org/s", url))
    live = spaseq.Source("http://example.org/s", source("http://me:hush@h/x?token=hush&query=k%3Dhush"))
    assert "hush" not in repr(live)
    assert "location='ticks.nq?triples=2'" in repr(spaseq.Source("S", "ticks.nq?triples=2"))


def test_credentials_are_in_no_address_that_is_shown() -> None:
    live = source("https://me:hush@h/x?token=hush2")
    assert "hush" not in f"{live!r} {live.address}"
    assert (live.address.user, live.address.password) == ("me", "hush")


@given(st.text(max_size=30), st.sampled_from(sorted(SCHEMES)))
def test_any_text_is_read_or_refused(text: str, scheme: str) -> None:
    try:
        parse_location(f"{scheme}://{text}")
    except SourceError as error:
        assert str(error)  # noqa: PT017  # whatever else comes is an error of the test


def test_files_are_paths(tmp_path: Path) -> None:
    assert parse_location(f"file://{tmp_path}/a.nq?format=nq")[0] == f"{tmp_path}/a.nq"
    assert parse_location("file:a%20b.nq")[0] == "a b.nq"
    assert parse_location("a.nq?time=arrival")[0] == "a.nq"


def test_messages_need_a_format() -> None:
    with pytest.raises(SourceError, match=r"how are its messages written\? Add \?format="):
        spaseq.run(QUERY, {"S": "kafka://127.0.0.1/t"})
    with pytest.raises(SourceError, match="leave triples= out"):
        spaseq.run(QUERY, {"S": "mqtt://127.0.0.1/t?format=nt&triples=2"})
    with pytest.raises(SourceError, match="order=time waits for the end"):
        spaseq.run(QUERY, {"S": "ws://127.0.0.1/t?format=nt&order=time"})


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(SourceError, match=r"pip install 'spaseq\[kafka\]'"):
        spaseq.run(QUERY, {"S": "kafka://127.0.0.1/t?format=nq"})
