"""A damaged state file is refused with one error: it crashes no process, and changes no answer."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.durable import copy, journal, state, summary
from tests.streams import NS, events_of, letters, query

pytestmark = pytest.mark.filterwarnings("ignore:.*left out:spaseq.SpaseqWarning")

KB = f"{NS}kb"
FIRST = f"<{KB}/x> <{NS}is> 1 ."
#: A change of each table of a state; the first six of them have something in these tests.
TABLES = {
    "meta": "UPDATE meta SET value = value || ' ' WHERE key = 'arrivals'",
    "entry": "UPDATE entry SET events = events + 1 WHERE seq = (SELECT max(seq) FROM entry)",
    "query": "UPDATE query SET text = replace(text, ';', ':')",
    "taken": "UPDATE taken SET given = given + 1",
    "reject": "UPDATE reject SET count = count + 1",
    "graph": "UPDATE graph SET triples = NULL",
    "source": "INSERT INTO source VALUES ('s', '{}', 1)",
    "output": "INSERT INTO output VALUES ('p', 1, 1)",
    "record": "INSERT INTO record VALUES (1, 'q', 1, x'00', 1)",
}
QUERIES = {
    "pairs": query("A ; B", "6 SECONDS SLIDING", {"A": f"GRAPH <{KB}> {{ ?x :is ?y }}"}),
    "counted": query("A ; B", "4 EVENTS SLIDING"),
    "limited": query("A ; B", "5 SECONDS SLIDING", tail="LIMIT 200"),
}


def _push(engine: spaseq.Engine, begin: int, end: int) -> None:
    for letter in letters(" ".join(f"{'abx'[t % 3]}{t}" for t in range(begin, end))):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def _take(engine: spaseq.Engine) -> dict[str, list[str]]:
    return {name: [events_of(match) for match in h.matches()] for name, h in engine.queries.items()}


def _work(engine: spaseq.Engine) -> None:
    """Some commits, of all that a state can have but records for a URL."""
    for name, text in QUERIES.items():
        engine.register(text, name=name)
    engine.change(KB, [ox.Triple(ox.BlankNode("b"), ox.NamedNode(f"{NS}is"), ox.Literal("two"))])
    for begin in range(0, 120, 10):
        _push(engine, begin, begin + 10)
        _take(engine)
        engine.commit()
    engine.push(f"{NS}S", "no turtle", 130)
    _push(engine, 130, 160)
    engine.commit()


def _answers(path: Path) -> object:
    """What an engine says that goes on with a state."""
    with spaseq.Engine({KB: FIRST}, state=path) as engine:
        said = [engine.arrived, engine.late, engine.bad, [*map(str, engine.kb.graphs.items())]]
        _push(engine, 160, 166)
        return said, _take(engine)


Files = dict[str, bytes]


def _files(path: Path) -> Files:
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> tuple[Files, Files]:
    """A state as a killed engine leaves it, with a write-ahead log, and as one that was closed leaves it."""
    path = tmp_path_factory.mktemp("states") / "s"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "BLOCK", 8)
        patch.setattr(state, "PER_QUERY", 1)
        engine = spaseq.Engine({KB: FIRST}, state=path, commit_every=None)
        _work(engine)
        killed = _files(path)
        engine.close()
    with closing(sqlite3.connect(path)) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in [*TABLES][:6]]
    assert (0,) not in counts
    return killed, {"s": path.read_bytes()}


def _put(folder: Path, files: Files) -> Path:
    for old in folder.glob("s*"):
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / "s"


def flipped(data: bytes, at: int) -> bytes:
    """The same with another bit: ``at`` counts bits."""
    changed = bytearray(data)
    changed[at // 8] ^= 1 << at % 8
    return bytes(changed)


def _found(path: Path, data: bytes, times: int, seed: int, use: Callable[[Path], object]) -> int:
    """How many damages were found, by what uses a state; the others must change nothing."""
    rng, found = random.Random(seed), 0
    whole = use(_put(path.parent, {"s": data}))
    for number in range(times):
        is_cut = number % 5 == 0
        at = rng.randrange(1, len(data) if is_cut else 8 * len(data))
        _put(path.parent, {"s": data[:at] if is_cut else flipped(data, at)})
        try:
            answers = use(path)
        except spaseq.EngineError as error:
            answers, found = whole if str(path) in str(error) else error, found + 1
        assert answers == whole, (number, at)
    return found


@pytest.mark.slow
def test_damages(states: tuple[Files, Files], tmp_path: Path) -> None:
    """Bits that are flipped, and files that are cut off; of this small file a sixth is in use."""
    data = states[1]["s"]
    assert _found(tmp_path / "s", data, 300, 1, summary) > 80
    assert _found(tmp_path / "s", data, 20, 2, _answers) > 5


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_10_000_damages(states: tuple[Files, Files], tmp_path: Path, part: int) -> None:
    assert _found(tmp_path / "s", states[1]["s"], 2_000, 3 + part, _answers) > 500


def _transactions(log: bytes) -> list[int]:
    """Where the transactions of a write-ahead log end."""
    frame = 24 + 4096
    ends = range(32 + frame, len(log) + 1, frame)
    return [end for end in ends if int.from_bytes(log[end - frame + 4 : end - frame + 8], "big")]


def _logs(folder: Path, killed: Files, times: int, seed: int) -> None:
    """Damages of the log that a killed engine leaves: before its last transaction they are found."""
    log, rng = killed["s-wal"], random.Random(seed)
    ends = _transactions(log)
    assert len(ends) > 5
    newest, before = (_answers(_put(folder, killed | {"s-wal": log[:end]})) for end in (ends[-1], ends[-2]))
    assert newest != before
    for number in range(times):
        at = rng.randrange(8 * len(log))
        path = _put(folder, killed | {"s-wal": flipped(log, at)})
        if at // 8 < ends[-2]:
            with pytest.raises(spaseq.EngineError, match="damaged"):
                spaseq.Engine(state=path)
            assert path.with_name("s-wal").exists()
        else:
            assert _answers(path) in (newest, before), (number, at)


def test_damages_of_the_log(states: tuple[Files, Files], tmp_path: Path) -> None:
    _logs(tmp_path, states[0], 60, 4)


@pytest.mark.long
def test_2_000_damages_of_the_log(states: tuple[Files, Files], tmp_path: Path) -> None:
    _logs(tmp_path, states[0], 2_000, 5)


@pytest.mark.slow
def test_a_torn_end_of_the_log_is_no_damage(states: tuple[Files, Files], tmp_path: Path) -> None:
    """A crash in mid-write: part of the last transaction is there, in any order, or none of it."""
    killed, _ = states
    log = killed["s-wal"]
    *_, begin, end = _transactions(log)
    before = _answers(_put(tmp_path, killed | {"s-wal": log[:begin]}))
    for at in range(begin, end, (end - begin) // 4):
        for torn in (log[:at], log[:begin] + bytes(at - begin) + log[at:], log[:at] + bytes(end - at)):
            if torn != log:
                assert _answers(_put(tmp_path, killed | {"s-wal": torn})) == before, at


@pytest.mark.parametrize("table", TABLES)
def test_the_checksum_of_a_row(states: tuple[Files, Files], tmp_path: Path, table: str) -> None:
    """A row that SQLite finds nothing wrong with, of any table, is found by whatever opens the file."""
    path = _put(tmp_path, states[1])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(TABLES[table])
    for use in (lambda: spaseq.Engine(state=path), lambda: summary(path), lambda: copy(path, tmp_path / "t")):
        with pytest.raises(spaseq.EngineError, match=f"{path}: the state file is damaged: .*{table}"):
            use()
    assert not [*tmp_path.glob("t*")]
