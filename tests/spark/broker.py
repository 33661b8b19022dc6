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

_SECONDS = 180

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
    port, controller = _free_port(), _free_port()
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(port=port, controller=controller, data=folder / "data"))
    java = [shutil.which("java") or "java", "-Xmx256m", "-cp", os.pathsep.join(map(str, jars))]
    setup = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties)]
    subprocess.run(setup, check=True, capture_output=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            _wait(process, port, folder / "log")
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    limit = time.monotonic() + _SECONDS
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise RuntimeError(f"the broker stopped: {log.read_text(errors='replace')[-2000:]}")
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the broker does not answer: {log.read_text(errors='replace')[-2000:]}")
