"""Several threads on one engine, callbacks that use it, interrupts in the middle of it, and fork."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta

import pyoxigraph as ox
import pytest
import rdflib

import spaseq
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.interrupts import DEFERRAL
from spaseq.rdf import connect
from tests.streams import NS, events_of, query

#: A sequence for every matcher; each event of type a is a match of SEQ(A), which few of them can run.
MATCHERS = {
    "interpreter": "A",
    "reference": "A",
    "nfa": "A",
    "tecs": "A : B",
    "lazy": "A : B",
    "tree": "A : B",
    "kmp": "A , B",
}


def event(kind: str, name: str) -> list[ox.Triple]:
    node = ox.NamedNode(f"{NS}e/{name}")
    type_ = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    number = ox.Literal("1", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
    return [ox.Triple(node, type_, ox.NamedNode(NS + kind)), ox.Triple(node, ox.NamedNode(NS + "v"), number)]


@contextmanager
def switching(seconds: float) -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(threads: int, work: Callable[[int], object]) -> list[object]:
    """Does something in so many threads at once; raises what one of them raised."""
    start = threading.Barrier(threads)

    def run(number: int) -> object:
        start.wait()
        return work(number)

    with switching(1e-5), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def pushed_by_threads(matcher: str, threads: int, each: int) -> None:
    """Threads push events of one tick, while one more drains; nothing is lost, nothing doubled."""
    sequence = MATCHERS[matcher]
    engine = spaseq.Engine(matcher=matcher)
    alone = engine.register(query(sequence, "5 EVENTS"))
    called: list[spaseq.Match] = []
    engine.register(query(sequence, "5 EVENTS"), on_match=called.append)
    drained: list[spaseq.Match] = []

    def work(number: int) -> None:
        if number == threads:
            for _ in range(each):
                drained.extend(alone.matches())
            return
        for i in range(each):
            engine.push(NS + "S", event("ab"[i % 2], f"{number}_{i}"), 1, name=f"{NS}{number}_{i}")

    together(threads + 1, work)
    engine.close()
    drained.extend(alone.matches())
    assert (engine.events, engine.bad, engine.late) == (threads * each, 0, 0)
    assert alone.stats.events == threads * each
    found = Counter(map(events_of, drained))
    # In whatever order the events came: all engines that see them in that order agree.
    assert found == Counter(map(events_of, called))
    assert max(found.values()) == 1
    if sequence == "A":
        expected = {f"{number}_{i}" for number in range(threads) for i in range(0, each, 2)}
        assert set(found) == expected


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.few(1, ci=3)
def test_threads_push_into_one_engine(matcher: str) -> None:
    pushed_by_threads(matcher, 4, 100)


@pytest.mark.slow
@pytest.mark.parametrize("matcher", [name for name in MATCHERS if name != "reference"])
def test_many_threads_push_into_one_engine(matcher: str) -> None:
    pushed_by_threads(matcher, 8, 500)


@pytest.mark.long
@pytest.mark.parametrize("matcher", [name for name in MATCHERS if name != "reference"])
def test_many_threads_push_very_much(matcher: str) -> None:
    pushed_by_threads(matcher, 8, 10_000)


@pytest.mark.long
def test_threads_again_and_again() -> None:
    for _ in range(20):
        pushed_by_threads("nfa", 8, 1_000)


def test_threads_push_register_cancel_drain_and_advance() -> None:
    """A fixed budget of everything at once: each query sees the events between its two ends, each once."""
    engine = spaseq.Engine()
    always = engine.register(query("A"))

    def work(number: int) -> None:
        for i in range(60):
            if number < 4:
                engine.push(NS + "S", event("a", f"{number}_{i}"), 1)
            elif number == 4:
                engine.advance(1)
            else:
                handle = engine.register(query("A"))
                seen = sum(1 for _ in handle.matches())
                handle.cancel()
                seen += sum(1 for _ in handle.matches())
                assert seen == handle.stats.matches <= handle.stats.events

    together(6, work)
    assert always.stats.events == always.stats.matches == 240 == sum(1 for _ in always.matches())


def fuzzed(seed: int, threads: int, each: int) -> None:
    """Threads do anything at any time; of queries that were there all the time nothing is lost or doubled."""
    rng = random.Random(seed)
    matcher = rng.choice([None, "interpreter", "nfa"])
    engine = spaseq.Engine(matcher=matcher, lateness=timedelta(seconds=rng.choice([0, 3])))
    always = engine.register(query("A"))
    maker = query("A", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :c ; :v 2 }}")
    engine.register(maker)
    derived = engine.register(query("C", streams=["T"]))
    called: list[str] = []

    def answer(match: spaseq.Match) -> None:
        called.append(events_of(match))
        if len(called) % 10 == 0:
            engine.push(NS + "U", event("a", "answer"), 1)

    engine.register(query("A"), answer)
    heard = engine.register(query("A", streams=["U"]))
    drained: list[spaseq.Match] = []
    pushed = [0] * threads

    def work(number: int) -> None:
        own = random.Random(f"{seed} {number}")
        for i in range(each):
            match own.randrange(8):
                case 0 | 1 | 2 | 3:
                    engine.push(NS + "S", event("a", f"{number}_{i}"), 1, name=f"{NS}{number}_{i}")
                    pushed[number] += 1
                case 4:
                    engine.register(query(own.choice(["A", "A ; B", "A ; B+"]))).cancel()
                case 5:
                    drained.extend(always.matches())
                case 6:
                    engine.advance(1, own.choice([None, NS + "S", NS + "U"]))
                case 7:
                    assert engine.late == engine.bad == 0
                    assert repr(engine).startswith("<Engine: open")

    together(threads, work)
    engine.close()
    drained.extend(always.matches())
    count = sum(pushed)
    assert sorted(map(events_of, drained)) == sorted(called)
    assert len(called) == len(set(called)) == count == always.stats.events
    assert sum(1 for _ in derived.matches()) == count
    assert sum(1 for _ in heard.matches()) == count // 10
    assert (engine.bad, engine.late) == (0, 0)


def test_a_fuzz_of_threads() -> None:
    fuzzed(0, 4, 60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 21))
def test_a_long_fuzz_of_threads(seed: int) -> None:
    fuzzed(seed, 8, 400)


def test_a_drain_that_is_not_gone_on_with_keeps_nobody_waiting() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    engine.push(NS + "S", event("a", "1"), 1)
    engine.push(NS + "S", event("a", "2"), 2)
    held = handle.matches()
    next(held)
    together(1, lambda _: engine.push(NS + "S", event("a", "3"), 3))
    assert [match.start for match in held] == [2, 3]


def test_two_live_datasets_on_one_engine() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    sets = [rdflib.Dataset(), rdflib.Dataset()]
    connections = [connect(data, engine, stream=NS + "S") for data in sets]

    def work(number: int) -> None:
        for i in range(100):
            with connections[number].event(f"{NS}g{number}_{i}", 1) as graph:
                graph.add((rdflib.URIRef(f"{NS}x"), rdflib.RDF.type, rdflib.URIRef(NS + "a")))
                graph.add((rdflib.URIRef(f"{NS}x"), rdflib.URIRef(NS + "v"), rdflib.Literal(1)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's own
        together(2, work)
    assert [connection.pushed for connection in connections] == [100, 100]
    assert len({events_of(match) for match in handle.matches()}) == 200


# --- callbacks ----------------------------------------------------------------------------------


def test_a_callback_pushes_registers_and_cancels() -> None:
    engine = spaseq.Engine()
    seen: list[str] = []
    later: list[spaseq.Handle] = []

    def on_match(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        if len(seen) < 3:
            engine.push(NS + "S", event("a", f"more{len(seen)}"), match.end, name=f"{NS}more{len(seen)}")
            later.append(engine.register(query("A")))
            assert list(handle.matches()) == []
        else:
            handle.cancel()

    handle = engine.register(query("A"), on_match)
    before = engine.register(query("A"))
    engine.push(NS + "S", event("a", "1"), 1, name=f"{NS}first")
    engine.push(NS + "S", event("a", "2"), 2, name=f"{NS}last")
    assert seen == ["first", "more1", "more2"]
    assert [events_of(match) for match in before.matches()] == ["first", "more1", "more2", "last"]
    # Those registered by the callback see what is pushed from then on.
    assert [[events_of(m) for m in h.matches()] for h in later] == [
        ["more1", "more2", "last"],
        ["more2", "last"],
    ]


@pytest.mark.parametrize("call", ["close", "feed"])
def test_a_callback_that_asks_for_what_it_cannot_have(call: str) -> None:
    engine = spaseq.Engine()
    engine.register(query("A"), lambda _: getattr(engine, call)())
    with pytest.raises(spaseq.EngineError, match="inside a callback"):
        engine.push(NS + "S", event("a", "1"), 1)
    engine.close()


def test_a_callback_that_feeds_itself_for_ever_is_stopped() -> None:
    engine = spaseq.Engine(limits=spaseq.Limits(callback_events=50))

    def twice(match: spaseq.Match) -> None:
        engine.push(NS + "S", event("a", "1"), match.end)
        engine.push(NS + "S", event("a", "1"), match.end)

    engine.register(query("A"), twice)
    with pytest.raises(spaseq.LimitError, match="callback-events"):
        engine.push(NS + "S", event("a", "1"), 1)


def test_what_a_callback_raises_comes_out_and_harms_nobody() -> None:
    engine = spaseq.Engine()
    seen: list[str] = []

    def sometimes(match: spaseq.Match) -> None:
        if match.start == 2:
            raise RuntimeError("mine")
        seen.append(events_of(match))

    engine.register(query("A"), sometimes)
    after = engine.register(query("A"))
    for time in (1, 2, 3):
        with pytest.raises(RuntimeError, match="mine") if time == 2 else nullcontext():
            engine.push(NS + "S", event("a", str(time)), time, name=f"{NS}a{time}")
        assert [events_of(match) for match in after.matches()] == [f"a{time}"]
    assert seen == ["a1", "a3"]


def test_a_dead_letter_is_mended_and_pushed_again() -> None:
    engine: spaseq.Engine

    def mend(letter: spaseq.BadEvent) -> None:
        engine.push(letter.stream, event("a", "mended"), 2, name=f"{NS}mended")
        with pytest.raises(spaseq.EngineError, match="only push"):
            engine.register(query("A"))

    engine = spaseq.Engine(dead_letters=mend)
    handle = engine.register(query("A"))
    engine.push(NS + "S", "no Turtle", 2)
    engine.push(NS + "S", event("a", "1"), 3, name=f"{NS}a3")
    assert [events_of(match) for match in handle.matches()] == ["mended", "a3"]


# --- interrupts and errors in the middle --------------------------------------------------------


class Spoiled:
    """Lets the n-th call of a method raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, error: BaseException) -> None:
        self.left = -1
        whole = getattr(owner, name)

        def spoiled(*args: object, **keywords: object) -> object:
            self.left -= 1
            if self.left == 0:
                raise error
            return whole(*args, **keywords)

        monkeypatch.setattr(owner, name, spoiled)


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        ("engine.pipelines.reordering.Reordering", "add", "T"),
        ("engine.pipelines.reordering.Reordering", "release", "T"),
        ("results.reading.Reader", "batches", "T"),
        ("engine.pipelines.query_set.Subscription", "read", "S"),
    ],
)
def test_an_error_in_the_middle_ends_what_it_spoils(
    owner: str, name: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query, also of equal ones; or those over the same streams, whose order they have in common."""
    module, _, kind = owner.rpartition(".")
    spoiled = Spoiled(monkeypatch, getattr(sys.modules[f"spaseq.{module}"], kind), name, MemoryError())
    engine = spaseq.Engine()
    first, second = engine.register(query("A ; B")), engine.register(query("A ; B", streams=[other]))

    def push(type_: str, time: int) -> None:
        for stream in sorted({"S", other}):
            engine.push(NS + stream, event(type_, str(time)), time, name=f"{NS}{type_}{time}")

    push("a", 1)
    spoiled.left = 1
    engine.push(NS + "S", event("b", "2"), 2, name=f"{NS}b2")
    _ = first.done  # who asks does not let it wait
    if other != "S":
        engine.push(NS + other, event("b", "2"), 2, name=f"{NS}b2")
    push("a", 3)
    push("b", 4)
    with pytest.raises(spaseq.LimitError, match=r"SEQ\(A ; B\) is over: no memory was left"):
        list(first.matches())
    assert first.done
    assert [events_of(match).replace("T.", "") for match in second.matches()] == ["a1b2", "a3b4"]
    again = engine.register(query("A"))
    engine.push(NS + "S", event("a", "5"), 5, name=f"{NS}a5")
    assert [events_of(match) for match in again.matches()] == ["a5"]


def test_an_interrupt_that_is_not_deferred_ends_all_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = spaseq.Engine()
    handles = [engine.register(query(sequence)) for sequence in ("A", "A ; B")]
    spoiled = Spoiled(monkeypatch, Dispatcher, "_run", KeyboardInterrupt())
    spoiled.left = 1
    with pytest.raises(KeyboardInterrupt):
        engine.push(NS + "S", event("a", "0"), 0, name=f"{NS}a0")
    for handle in handles:
        with pytest.raises(spaseq.EngineError, match=r"KeyboardInterrupt came .*\. Register it anew"):
            list(handle.matches())
    again = engine.register(query("A"))
    engine.push(NS + "S", event("a", "1"), 1, name=f"{NS}a1")
    assert [events_of(match) for match in again.matches()] == ["a1"]
    assert engine.arrived == {NS + "S": 2}


def test_matches_that_an_interrupt_takes_away_are_given_when_asked_again() -> None:
    """It comes when the lock is let go, between what was taken and who asked for it."""
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    for time in range(5):
        engine.push(NS + "S", event("a", str(time)), time, name=f"{NS}a{time}")
    assert len(next(handle.batches(1))) == 1
    turn, whole = engine.turn, engine.turn.lock

    class Interrupted:
        def __enter__(self) -> None:
            whole.acquire()

        def __exit__(self, *_: object) -> None:
            whole.release()
            turn.lock = whole
            raise KeyboardInterrupt

    turn.lock = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        list(handle.batches(2))
    found = [events_of(match) for batch in handle.batches() for match in batch]
    assert found == ["a1", "a2", "a3", "a4"]
    assert handle.delivered == 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one inside of a finalizer
@pytest.mark.filterwarnings("ignore:no registered query reads stream")  # if the interrupt ended all queries
@pytest.mark.parametrize("matcher", ["nfa", "interpreter"])
@pytest.mark.few(1)
def test_real_interrupts_leave_queries_whole_or_over(matcher: str) -> None:
    """Of a query that goes on, each event that it counts is one match, and no other is."""
    survived = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    for attempt in range(40):
        engine = spaseq.Engine(matcher=matcher)
        handles = [engine.register(query("A")) for _ in range(3)]
        with suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + attempt * 0.0001)
            for i in range(1_000):
                engine.push(NS + "S", event("a", str(i)), i, name=f"{NS}a{i}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        engine.push(NS + "S", event("a", "last"), 10_000, name=f"{NS}last")
        engine.close()
        for handle in handles:
            found: list[str] = []
            with suppress(spaseq.EngineError):
                found.extend(map(events_of, handle.matches()))
            if handle.error is None:
                survived += 1
                assert len(found) == len(set(found)) == handle.stats.events
                assert found[-1] == "last"
    signal.signal(signal.SIGALRM, before)
    assert survived


def test_a_context_that_never_exits_defers_nothing_afterwards() -> None:
    """The handler of another signal raised right behind its entry."""
    done: list[str] = []

    def entered() -> None:
        DEFERRAL.__enter__()

    def turn() -> None:
        with DEFERRAL:
            with DEFERRAL.held():
                signal.raise_signal(signal.SIGINT)
                done.append("held")
            done.append("inside")

    def commit() -> None:
        with DEFERRAL.held():
            with DEFERRAL:
                signal.raise_signal(signal.SIGINT)
            done.append("last")

    entered()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    for call in (turn, commit):
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        entered()
        with pytest.raises(KeyboardInterrupt):
            call()
    assert done == ["held", "inside", "last"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_failing_where_nobody_asks_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from spaseq.engine.delivery import Answers

    spoiled = Spoiled(monkeypatch, Answers, "read", MemoryError())
    engine = spaseq.Engine()
    seen: list[spaseq.Match] = []
    engine.register(query("A"), seen.append)
    spoiled.left = 1
    with pytest.warns(spaseq.SpaseqWarning, match=r"query SEQ\(A\) is over: no memory was left"):
        engine.push(NS + "S", event("a", "1"), 1)
    assert seen == []


# --- fork ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("used", [False, True])
def test_fork(used: bool) -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    if used:
        engine.push(NS + "S", event("a", "1"), 1)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def child() -> None:
        try:
            engine.push(NS + "S", event("a", "2"), 2)
            answers.put(str(len(list(handle.matches()))))
        except spaseq.EngineError as error:
            answers.put(str(error))

    process = context.Process(target=child)
    process.start()
    answer = answers.get()
    process.join()
    assert ("when the process was forked" in answer) if used else (answer == "1")
    engine.push(NS + "S", event("a", "2"), 2)
    assert len(list(handle.matches())) == 1 + used


def test_fork_while_another_thread_is_in_the_engine() -> None:
    """The child has no thread that would release the lock: it must not wait for that."""
    engine = spaseq.Engine()
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: spaseq.Match) -> None:
        inside.set()
        assert go_on.wait(60)

    engine.register(query("A"), wait)
    thread = threading.Thread(target=engine.push, args=(NS + "S", event("a", "1"), 1))
    thread.start()
    assert inside.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads is forked
        child = os.fork()
    if child == 0:
        try:
            engine.push(NS + "S", event("a", "2"), 2)
        except spaseq.EngineError:
            os._exit(0)
        os._exit(1)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.slow
def test_counts_that_others_ask_for_while_events_are_pushed() -> None:
    """Events that come alone are counted together: two threads that ask must not count them twice."""
    engine = spaseq.Engine()
    found: list[spaseq.Match] = []
    handle = engine.register(
        """PREFIX : <urn:> SELECT * WITHIN 5 SECONDS FROM STREAM S <urn:s>
        WHERE { SEQ(A , B) DEFINE GPM A ON S { ?x :p ?a } DEFINE GPM B ON S { ?x :p ?b FILTER(?b > ?a) } }""",
        found.append,
    )
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            assert handle.stats.relevant <= 1_500

    others = [threading.Thread(target=ask) for _ in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for other in others:
            other.start()
        for time in range(1_500):
            engine.push("urn:s", f"<urn:a> <urn:p> {time % 7} .", time)
    finally:
        is_over.set()
        for other in others:
            other.join()
        sys.setswitchinterval(before)
    stats = handle.stats
    assert stats.relevant == stats.events == 1_500
    assert {(gpm.matched, gpm.rows) for gpm in stats.gpms.values()} == {(1_500, 1_500)}
    assert stats.matches == len(found)
