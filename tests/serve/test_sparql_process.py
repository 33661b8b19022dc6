"""The process that answers questions of SPARQL: what ends it, and what does not outlive the server."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.serve.running import PATIENCE, limited, running, until
from tests.serve.test_process import serving
from tests.serve.test_sparql import FALLS, KB, PROV, refused, rows, trades

#: 2,000 triples, of which two questions ask all pairs, all triples.
MANY = " ".join(f"<urn:s{n}> <urn:p> {n} ." for n in range(2_000))
#: One takes time, the other one memory.
LONG = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }"
LARGE = "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?a ?d { ?a ?p ?b . ?c ?q ?d } }"
SMALL = "SELECT ?n { <urn:s7> ?p ?n }"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")


def children(parent: int) -> set[int]:
    """The processes for questions that a process has."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text(encoding="utf-8", errors="replace")
            words = (path / "cmdline").read_bytes()
        except OSError:
            continue
        state, ppid = stat.rpartition(")")[2].split()[:2]
        if int(ppid) == parent and state != "Z" and b"spaseq.serve.sparql.worker" in words:
            found.add(int(path.name))
    return found


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_question_over_its_memory_ends_and_the_next_is_answered() -> None:
    with running(limited(sparql_bytes=64 << 20), kb={KB: MANY}) as server:
        server.register(FALLS, "falls")
        trades(server, ("a", 20, 0), ("a", 18, 1))
        all_kinds = (
            f"{PROV} SELECT ?p2 ?time ?n {{ SERVICE <urn:x-spaseq:falls> {{ ?match s:matchedEvent ?e }} "
            f"?e prov:generatedAtTime ?time . <urn:s7> <urn:p> ?n }} ORDER BY ?time ?p2"
        )
        expected = [{"p2": "18", "time": time, "n": "7"} for time in ("0", "1")]
        assert rows(server, all_kinds, window="falls") == expected
        (first,) = children(os.getpid())
        status, error = refused(server, LARGE)
        assert (status, error["kind"]) == (503, "limit")
        assert "too much memory: the server's limit sparql_bytes" in error["message"]
        assert not lives(first)
        assert rows(server, all_kinds, window="falls") == expected
        (second,) = children(os.getpid())
        assert second != first
        trades(server, ("a", 17, 2))
        assert [row["p2"] for row in rows(server, all_kinds, window="falls")] == ["18", "17", "18", "17"]
        assert children(os.getpid()) == {second}
        # It may keep what it has, and is not charged for it again and again.
        for _ in range(20):
            assert rows(server, SMALL) == [{"n": "7"}]
    assert not lives(second)


def test_a_question_over_its_time_ends_and_frees_its_place() -> None:
    """Two aggregates blocked the resource until a restart: they went on after their 503."""
    with running(limited(seconds=2), kb={KB: MANY}) as server:
        assert children(os.getpid()) == set()  # nothing was asked
        assert rows(server, SMALL) == [{"n": "7"}]
        (first,) = children(os.getpid())
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(refused, server, LONG) for _ in range(2)]
            for one in asked:
                status, error = one.result(PATIENCE)
                assert (status, error["kind"]) == (503, "limit")
        until(lambda: not lives(first))
        until(lambda: server.http.post("/sparql", data={"query": SMALL}).status_code == 200)
        assert rows(server, SMALL) == [{"n": "7"}]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.few(0, ci=1)
def test_it_ends_with_the_server_in_the_middle_of_a_question(end: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(MANY, encoding="utf-8")
    with serving("--kb", f"{KB}={tmp_path / 'kb.ttl'}") as (process, url):
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            assert http.post("/sparql", data={"query": SMALL}).status_code == 200
        (worker,) = children(process.pid)

        def ask() -> None:
            with suppress(httpx.TransportError):  # as the server is gone
                httpx.post(f"{url}/sparql", data={"query": LONG}, timeout=PATIENCE)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            before = processor(worker)
            until(lambda: processor(worker) > before + 20)
            process.send_signal(end)
            until(lambda: not lives(worker))
            assert process.wait(PATIENCE) == (0 if end is not signal.SIGKILL else -signal.SIGKILL)
        finally:
            process.kill()
            asking.join(PATIENCE)
        assert process.stderr is not None
        assert process.stderr.read() == ""


def processor(process: int) -> int:
    """How many ticks of the processor a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_process_that_is_killed_is_started_again() -> None:
    with running(kb={KB: MANY}) as server:
        assert rows(server, SMALL) == [{"n": "7"}]
        (first,) = children(os.getpid())
        os.kill(first, signal.SIGKILL)
        until(lambda: not lives(first))
        assert rows(server, SMALL) == [{"n": "7"}]
