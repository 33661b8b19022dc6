"""Streams, answers, letters and checkpoints in a bucket: an object store of moto's, which speaks S3."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from spaseq import SourceError  # after the skip
from spaseq.spark.source import _files
from spaseq.spark.source._files import delete, info, listed, move, names, opened, write
from tests.spark.maven import jars, unavailable
from tests.spark.test_spark_files import SMALL, planned, reader

if TYPE_CHECKING:
    from moto.server import ThreadedMotoServer

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


#: What was given its name by a copy of something else.
copied: list[str] = []


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server without a bucket's data, where this process and those it starts look for S3."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask_cors") is None:
        unavailable("s3", "moto is not installed (the extra test brings it)")
    from moto.server import ThreadedMotoServer
    from werkzeug.serving import WSGIRequestHandler

    with pytest.MonkeyPatch.context() as patched:
        # Or "100 Continue" is said twice, by it and by Python's server, and Amazon's client takes the second
        # one for the answer.
        patched.setattr(WSGIRequestHandler, "handle_expect_100", lambda _: True)
        patched.setattr(WSGIRequestHandler, "run_wsgi", _noting_copies(WSGIRequestHandler.run_wsgi))
        yield from _served(ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False))


def _noting_copies(answer: Callable[[Any], None]) -> Callable[[Any], None]:
    def noting(handler: Any) -> None:
        if "x-amz-copy-source" in handler.headers:
            copied.append(handler.path)
        answer(handler)

    return noting


def _served(server: ThreadedMotoServer) -> Iterator[str]:
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty one."""
    said = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    _files._there.cache_clear()
    urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
    where = b"<CreateBucketConfiguration><LocationConstraint>eu-central-1</LocationConstraint>"
    where += b"</CreateBucketConfiguration>"
    urlopen(Request(f"{endpoint}/ticks", data=where, method="PUT")).close()
    yield "s3a://ticks"
    _files._there.cache_clear()


def test_files_in_a_bucket(bucket: str) -> None:
    paths = [f"{bucket}/in/{name}" for name in ("a.nq", "b.nq.gz", "deep/c.nq", "notes.txt")]
    for path in paths:
        write(path, b"one\ntwo\n")
    a, b, c, notes = paths
    for location, wanted in {
        "in": [a, b],
        "in/": [a, b],
        "in/a.nq": [a],
        "in/*.nq": [a],
        "in/*": [a, b, notes],
        "*/*.txt": [notes],
        "in/**/*.nq": [a, c],
        "in/z*": [],
    }.items():
        assert list(listed(f"{bucket}/{location}")) == wanted, location
    for nowhere in (f"{bucket}/none", "s3a://none/in"):
        with pytest.raises(SourceError, match=f"{nowhere}: no such file, folder or pattern"):
            listed(nowhere)
    with opened(a) as file:
        file.seek(4)
        assert file.readline() == b"two\n"
    move(a, f"{bucket}/in/d.nq")
    assert list(names(f"{bucket}/in")) == [b, f"{bucket}/in/d.nq", notes]
    assert info(a) is None
    delete(b)
    delete(b)
    assert list(listed(f"{bucket}/in")) == [f"{bucket}/in/d.nq"]


def test_offsets_of_a_stream_in_a_bucket(bucket: str) -> None:
    """As those of files: see ``test_spark_files``."""
    write(f"{bucket}/in/a.ndjson", b"%099d\n" % 0 * 10)
    first = reader(f"{bucket}/in", **SMALL)
    zero, one = first.initialOffset(), first.latestOffset()
    done = planned(first, zero, one)
    assert done == [("a.ndjson", at, at + 100, at) for at in (0, 100, 200)]
    again = reader(f"{bucket}/in", **SMALL)
    assert planned(again, zero, one) == done
    (task, *_) = again.partitions(one, again.latestOffset())
    write(f"{bucket}/in2/b.ndjson", b"")
    with pytest.raises(SourceError, match="in2: the checkpoint is of another stream"):
        reader(f"{bucket}/in2", **SMALL).partitions(one, one)
    for change, told in (
        (lambda: write(f"{bucket}/in/a.ndjson", b"x" * 350), "shortened"),
        (lambda: delete(f"{bucket}/in/a.ndjson"), "deleted"),
    ):
        change()
        with pytest.raises(SourceError, match=rf"a\.ndjson: {told} after 300 of its 1,000 bytes"):
            reader(f"{bucket}/in", **SMALL).partitions(one, one)
        with pytest.raises(SourceError, match=rf"a\.ndjson: {told} before bytes 300 to 400 were read"):
            list(again.read(task))


def test_all_of_a_query_in_a_bucket(bucket: str, endpoint: str, tmp_path: Path) -> None:
    """In its own process: checkpoints are kept by Hadoop's S3A, whose jars a session gets as it starts."""
    found = jars("s3")
    if isinstance(found, str):
        unavailable("s3", found)
    given = [endpoint, ",".join(map(str, found)), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.s3_session", *given],
        cwd=ROOT,
        env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result["expected"]) > 20
    assert result["stream"] == result["expected"]
    assert result["once"] == result["expected"]
    assert result["driven"] == result["expected"]
    assert len(result["letters"]) == result["expected_letters"] >= 2
    assert all(f"{bucket}/in/" in json.loads(letter)["position"] for letter in result["letters"])
    assert result["drafts"] == []
    assert result["checkpoint"] > 3
    assert f"writes with checkpoint {bucket}/cp: go on with that one" in result["refused"]
    assert result["local"] == ["in", "trades.nq"]
    # Spark's committer for object stores: no file of a checkpoint is a copy, unless it is not there.
    begins = {path.split("/")[2] for path in copied}
    assert "out" in begins
    assert not {"cp", "cp2"} & begins
    assert result["warned"] == [f"{bucket}/cp3"]
    assert "cp3" in begins
