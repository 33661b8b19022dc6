"""Who is compared: in which forms each takes events, the command that runs it, and who is absent, and why."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import spaseq
from tests.benchmarks.peers.workloads import Unsaid, Workload
from tests.spark.maven import jars

_HERE: Final = Path(__file__).parent
#: More than the defaults of two cores: what collects fastest, and room.
_JAVA: Final = ("-Xmx4g", "-XX:+UseParallelGC")
#: Of each peer, the jar whose version is told, and its driver.
_DRIVERS: Final = {
    "esper": ("Esper", "esper-runtime", "EsperDriver"),
    "flink": ("Flink CEP", "flink-cep", "FlinkDriver"),
}
#: What was looked for and is not run here: where it would be.
ELSEWHERE: Final = {
    "OpenCEP": "https://pypi.org/simple/opencep/",
    "CORE": "https://github.com/CORE-cer/CORE",
    "Siddhi": "https://maven.wso2.org/nexus/content/groups/wso2-public/org/wso2/orbit/com/lmax/disruptor/",
}


@dataclass(frozen=True, slots=True)
class System:
    """``peer`` is None for ours."""

    name: str
    version: str
    peer: str | None
    forms: tuple[str, ...]
    #: Behind it come the form and the file of events; for ours the workload, the form and how many events.
    command: tuple[str, ...]

    def asked(self, workload: Workload) -> tuple[str, ...] | Unsaid:
        """The forms in which it runs a workload, or why it does not."""
        if self.peer is not None and isinstance(text := workload.peers[self.peer], Unsaid):
            return text
        return ("push",) if workload.single else self.forms

    def line(self, workload: Workload, form: str, events: int, files: Path) -> list[str]:
        """The command of a run; its files are in a folder, see ``written``."""
        if self.peer is None:
            return [*self.command, workload.name, form, str(events)]
        return [*self.command, form, str(files / "events.csv"), str(files / f"{self.peer}.txt")]


def ours() -> System:
    """This engine."""
    forms = ("columns", "columns-objects", "nq", "csv")
    command = (sys.executable, "-m", "tests.benchmarks.peers.ours")
    return System("spaseq", spaseq.__version__, None, forms, command)


@cache
def classes() -> tempfile.TemporaryDirectory[str]:
    """Where drivers are compiled to; goes when this process ends."""
    return tempfile.TemporaryDirectory(prefix="spaseq-peers-")


def peer(key: str) -> System | Unsaid:
    """A peer, its driver compiled; or why it is not to be had."""
    name, jar, driver = _DRIVERS[key]
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        return Unsaid(f"{name}: there is no java or javac")
    found = jars(key, _HERE / "jars")
    if isinstance(found, str):
        return Unsaid(f"{name}: {found}")
    folder = Path(classes().name) / key
    path = ":".join(map(str, found))
    sources = [str(_HERE / "drivers" / f"{part}.java") for part in ("Common", "Event", driver)]
    done = subprocess.run(
        [javac, "-nowarn", "-d", str(folder), "-cp", path, *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return Unsaid(f"{name}: javac: {done.stderr.strip()}")
    (version,) = (m[1] for f in found if (m := re.fullmatch(rf"{jar}-([0-9.]+)\.jar", f.name)))
    command = (java, *_JAVA, "-cp", f"{folder}:{path}", driver)
    return System(name, version, key, ("beans", "csv"), command)


def peers() -> Iterator[System | Unsaid]:
    """Each peer, or the reason why it is absent: for those not run here what their address says."""
    for key in _DRIVERS:
        yield peer(key)
    for name, url in ELSEWHERE.items():
        yield Unsaid(f"{name}: {url} {status(url)}")


def status(url: str) -> str:
    """What an address answers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=20) as answer:
            return f"answers {answer.status}"
    except urllib.error.HTTPError as error:
        return f"answers {error.code}"
    except OSError as error:
        return f"cannot be reached: {getattr(error, 'reason', error)}"


def written(folder: Path, workload: Workload, events: bytes, of: Sequence[System]) -> None:
    """The files that peers read."""
    (folder / "events.csv").write_bytes(events)
    for system in of:
        if system.peer is not None and isinstance(text := workload.peers[system.peer], str):
            (folder / f"{system.peer}.txt").write_text(text)
