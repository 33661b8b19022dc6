"""Matches to a URL with a state: into Kafka each exactly once, elsewhere at least once."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition

import spaseq
from spaseq.connect.sinks import SinkRecord
from spaseq.connect.transactions import Transactions
from spaseq.engine.durable import outbox, summary
from spaseq.engine.durable.store import Store
from spaseq.errors import SinkError
from tests.connect.events import event
from tests.connect.servers import PATIENCE, Answer, http
from tests.connect.test_connect_cli import here, process, run
from tests.connect.topics import produce, records

__all__ = ["here"]

#: By a real broker alone: librdkafka's mock has neither the count of a transaction nor fencing.
real = pytest.mark.parametrize("cluster", [pytest.param("servers", marks=pytest.mark.slow)], indirect=True)


class Sending:
    """Engines with one state, one after the other, that send records of a query ``q``."""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.url = path, url

    def send(self, *numbers: int, commits: bool = True) -> None:
        """An engine that sends these; it ends without a commit, if it is not to make one."""
        engine = spaseq.Engine(state=self.path, commit_every=None)
        try:
            engine.outbox(self.url).write([SinkRecord("q", n, b"%d" % n) for n in numbers])
            if commits:
                engine.commit()
        finally:
            engine.abandon()


@pytest.fixture
def sending(tmp_path: Path, cluster: str, request: pytest.FixtureRequest) -> Sending:
    topic = f"out-{request.node.originalname}"
    produce(cluster, topic, b"before")
    return Sending(tmp_path / "s", f"kafka://{cluster}/{topic}?connect=60s")


def sent(sending: Sending, count: int) -> list[int]:
    server, _, topic = sending.url.removeprefix("kafka://").partition("/")
    return [number for _, number in records(server, topic.partition("?")[0], count)]


def test_what_a_commit_has_is_sent_once(sending: Sending) -> None:
    sending.send(1, 2)
    sending.send(3, commits=False)
    sending.send(3, 4)
    sending.send()
    assert sent(sending, 4) == [1, 2, 3, 4]
    (name,) = summary(sending.path).outputs
    assert name in sending.url
    assert summary(sending.path).outputs[name] == 4


def test_what_was_committed_and_not_sent_is_sent_by_the_next(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "send", killed)
        with pytest.raises(RuntimeError, match="killed"):
            sending.send(1, 2)
    sending.send(3)
    assert sent(sending, 3) == [1, 2, 3]


@real
def test_what_was_sent_and_not_taken_out_is_not_sent_again(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget = Store.forget_records

    def killed(self: Store, *, before: int = 0, after: int | None = None) -> None:
        if before:
            raise RuntimeError("killed")
        forget(self, before=before, after=after)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "forget_records", killed)
        with pytest.raises(RuntimeError, match="killed"):
            sending.send(1, 2)
    sending.send(3)
    assert sent(sending, 3) == [1, 2, 3]


def test_a_broker_that_has_just_started_is_asked_again(
    mock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody coordinates its groups yet, it says so at once, and in a moment it answers."""
    produce(mock, "young", b"before")
    asked = []

    class Young(confluent_kafka.Consumer):
        def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
            asked.append(partitions)
            if len(asked) < 3:
                code = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)[len(asked) - 1]
                raise confluent_kafka.KafkaException(KafkaError(code))
            return super().committed(partitions, timeout=timeout)

    monkeypatch.setattr(confluent_kafka, "Consumer", Young)
    Sending(tmp_path / "s", f"kafka://{mock}/young?connect=60s").send(1)
    assert len(asked) == 3


def test_records_that_wait_in_the_file_without_a_commit_are_not_sent(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_IN_MEMORY", 3)
    monkeypatch.setattr(outbox, "_AT_ONCE", 2)
    sending.send(1, 2, 3, 4, 5, commits=False)
    sending.send(*range(1, 8))
    sending.send(8)
    assert sent(sending, 8) == [*range(1, 9)]


@real
def test_an_older_copy_is_refused(sending: Sending, tmp_path: Path) -> None:
    sending.send(1)
    shutil.copy(sending.path, tmp_path / "copy")
    sending.send(2)
    sending.path = tmp_path / "copy"
    with pytest.raises(
        spaseq.EngineError, match=r"2 records of this state came there.* knows of 1: .*older copy"
    ):
        sending.send(2)


@real
def test_of_two_engines_with_copies_the_later_sends(sending: Sending, tmp_path: Path) -> None:
    sending.send(1)
    shutil.copy(sending.path, tmp_path / "copy")
    first = spaseq.Engine(state=sending.path, commit_every=None)
    box = first.outbox(sending.url)
    other = Sending(tmp_path / "copy", sending.url)
    other.send(2)
    box.write([SinkRecord("q", 2, b"2")])
    with pytest.raises(SinkError, match="another engine with this state, or with a copy of it"):
        first.commit()
    first.abandon()
    assert sent(sending, 2) == [1, 2]


def test_records_go_on_elsewhere_with_another_state_only(mock: str, tmp_path: Path) -> None:
    produce(mock, "one", b"")
    produce(mock, "two", b"")
    Sending(tmp_path / "s", f"kafka://{mock}/one").send(1)
    with pytest.raises(spaseq.EngineError, match=r"records went to kafka://.*/one: go on there"):
        Sending(tmp_path / "s", f"kafka://{mock}/two").send(2)
    with pytest.raises(SinkError, match=r"kafka://.*/none: "):
        Sending(tmp_path / "t", f"kafka://{mock}/none").send(2)
    with spaseq.Engine() as engine, pytest.raises(spaseq.EngineError, match="an outbox is part of a state"):
        engine.outbox(f"kafka://{mock}/one")


def test_by_http_what_a_commit_has_is_sent(tmp_path: Path) -> None:
    with http(Answer()) as server:
        sending = Sending(tmp_path / "s", f"http://127.0.0.1:{server.port}/in")
        sending.send(1, 2, commits=False)
        sending.send(1, 2)
        sending.send(3)
        sending.send()
        assert server.bodies == [b"12", b"3"]


def test_the_command_line_goes_on(mock: str, here: Path) -> None:
    produce(mock, "cli", b"")
    url = f"kafka://{mock}/cli"
    done = run("q.rq", "-s", "S=s.nq", "--state", "st", "-o", url)
    assert done.exit_code == 0, done.stderr
    with (here / "s.nq").open("ab") as file:
        file.write(event(4))
    assert run("q.rq", "-s", "S=s.nq", "--state", "st", "-o", url).exit_code == 0
    assert [number for _, number in records(mock, "cli", 5)] == [1, 2, 3, 4, 5]
    refused = run("q.rq", "-s", "S=s.nq", "--state", "st", "-f", "ndjson", "-o", "out.ndjson")
    assert refused.exit_code == 2
    assert "with this state the output was kafka://" in refused.stderr
    assert run("q.rq", "-s", "S=s.nq", "--state", "file", "-f", "ndjson", "-o", "out").exit_code == 0
    refused = run("q.rq", "-s", "S=s.nq", "--state", "file", "-o", url)
    assert refused.exit_code == 2
    assert "with this state the output was" in refused.stderr


@pytest.mark.slow
def test_killed_runs_send_each_match_once(servers: str, here: Path) -> None:
    """SIGKILL at random moments, between commits and inside transactions."""
    produce(servers, "killed", b"")
    (here / "ticks").mkdir()
    (here / "s.nq").unlink()
    files, each = 100, 50
    for number in range(files):
        text = b"".join(map(event, range(number * each, (number + 1) * each)))
        (here / "ticks" / f"{number:03}.nq").write_bytes(text)
    arguments = (
        *("-s", "S=ticks", "--state", "st", "--commit-every", "1"),
        *("-o", f"kafka://{servers}/killed?connect=60s"),
    )
    rng = random.Random(3)
    kills = 0
    while True:
        with process(here, *arguments) as running:
            try:
                running.wait(timeout=rng.uniform(1.5, 6.0) if kills < 8 else PATIENCE)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
                kills += 1
                continue
            _, errors = running.communicate()
            assert running.returncode == 0, errors
            break
    assert kills
    assert [number for _, number in records(servers, "killed", files * each)] == [*range(1, files * each + 1)]
