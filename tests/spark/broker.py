"""A real Kafka broker for a test run: one node in KRaft mode on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

_SECONDS = 120
_TRIES = 3

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""

#: Any 16 bytes in base 64 name a cluster.
_CLUSTER = "c3Bhc2VxLXRlc3RzLTAwMQ"


@contextmanager
def broker(folder: Path, jars: Sequence[Path]) -> Iterator[str]:
    """Runs a broker with its data in a folder; gives its address, and stops it at the end."""
    with (folder / "log").open("wb") as log:
        process, port = _started(folder, jars, log)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _started(folder: Path, jars: Sequence[Path], log: IO[bytes]) -> tuple[subprocess.Popen[bytes], int]:
    """A broker that answers, and its port. It tries again: a free port may be another's when it is bound."""
    java = [shutil.which("java") or "java", "-Xmx256m", "-cp", os.pathsep.join(map(str, jars))]
    for attempt in range(_TRIES):
        port, controller = _free_ports()
        properties = folder / f"server{attempt}.properties"
        data = folder / f"data{attempt}"
        properties.write_text(_PROPERTIES.format(port=port, controller=controller, data=data))
        setup = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties)]
        if subprocess.run(setup, check=False, stdout=log, stderr=log).returncode == 0:
            process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
            if _answers(process, port):
                return process, port
            process.kill()
            process.wait()
    said = (folder / "log").read_text(errors="replace")
    raise RuntimeError(f"no broker after {_TRIES} tries, the last of which said: {said[-2000:]}")


def _free_ports() -> tuple[int, int]:
    with closing(socket.socket()) as one, closing(socket.socket()) as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until a broker takes connections; whether it does, rather than end or stay silent."""
    limit = time.monotonic() + _SECONDS
    while time.monotonic() < limit and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False
