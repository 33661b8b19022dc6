"""Bounds of an engine: what a caller asks for, and what it is told."""

from __future__ import annotations

import math
import random
import re
import sys
import warnings
from contextlib import suppress
from datetime import datetime, timedelta
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from spaseq import Engine
from spaseq.bounds import Bound, Pool, Shed, WorkClock
from spaseq.cli.console import StatusLine
from spaseq.engine.handle import Handle
from spaseq.engine.running import Progress, _given_up
from spaseq.errors import EngineError, SpaseqWarning
from spaseq.language import prepare
from spaseq.limits import Limits
from spaseq.matching.nfa.compiled import _kernel
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.plan import explain
from spaseq.matching.shedding.account import given_up
from spaseq.matching.shedding.overload import LoadMeter

STREAM = "http://example.org/s"
MS = timedelta(milliseconds=1)


def query(sequence: str = "A : B : C", after: str = "") -> str:
    return f"""PREFIX : <http://example.org/>
        SELECT ?a ?b ?c WITHIN 200 EVENTS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ({sequence})
          DEFINE GPM A ON S {{ ?a :a ?k ; :v ?x }}
          DEFINE GPM B ON S {{ ?b :b ?k ; :v ?y . FILTER(?y > ?x) }}
          DEFINE GPM C ON S {{ ?c :c ?k ; :v ?z . FILTER(?z > ?x + ?y) }} }} {after}"""


def found(engine: Engine, handle: Handle, events: int = 400) -> set[str]:
    rng = random.Random(1)
    out = set()
    for t in range(events):
        kind, key, number = rng.choice("abc"), rng.randint(1, 3), rng.randint(0, 100)
        engine.push(
            STREAM,
            f"<urn:{t}> <http://example.org/{kind}> {key} ; <http://example.org/v> {number} .",
            t,
        )
        out |= {str(match.bindings) for match in handle.matches()}
    engine.close()
    return out


@pytest.mark.slow
def test_what_is_found_under_a_bound_is_found_without() -> None:
    engine = Engine(matcher="nfa")
    every = found(engine, engine.register(query()))
    engine = Engine(matcher="nfa", latency=8 * MS, clock=WorkClock(1e-3))
    handle = engine.register(query())
    with pytest.warns(SpaseqWarning) as told:
        some = found(engine, handle)
    assert set() < some < every
    shed = handle.stats.shed
    assert shed is not None
    assert not shed.active
    assert shed.partial_matches == sum(shed.by_state.values()) > 0
    assert set(shed.by_state) <= {"before B", "before C"}
    assert shed.recall is not None
    assert 0 < shed.recall < 1
    begins, ends = (str(warning.message) for warning in told)
    assert begins.startswith("SEQ(A : B : C) sheds partial matches: an event takes ")
    assert ends.startswith(
        f"SEQ(A : B : C) sheds no more: {shed.partial_matches:,} partial matches were shed"
    )


def _pushed(engine: Engine, begin: int, end: int) -> None:
    """Events of few keys, which bring more than can be matched in time."""
    rng = random.Random(begin)
    for t in range(begin, end):
        kind, key, number = rng.choice("abc"), rng.randint(1, 2), rng.randint(0, 100)
        text = f"<urn:{t}> <http://example.org/{kind}> {key} ; <http://example.org/v> {number} ."
        engine.push(STREAM, text, t)


_ALL = pytest.mark.parametrize(
    ("matcher", "after"), [("nfa", ""), ("lazy", ""), (None, "AFTER MATCH SKIP TO NEXT EVENT")]
)


@_ALL
@pytest.mark.few(1)
def test_what_is_said_is_whole_whenever_it_is_read(matcher: str | None, after: str) -> None:
    """Of all that were shed it is known in front of what, and who reads that may do so while more are."""
    engine = Engine(matcher=matcher, latency=4 * MS, clock=WorkClock(1e-3))
    handle = engine.register(query(after=after))
    read = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        for t in range(400):
            _pushed(engine, t, t + 1)
            shed = handle.stats.shed
            assert shed is not None
            assert sum(shed.by_state.values()) == shed.partial_matches
            read.append((shed.by_state, dict(shed.by_state)))
    assert read[-1][0]
    assert all(then == copy for then, copy in read)


@_ALL
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("events", [230, 310, 390])
@pytest.mark.few(1, ci=4)
def test_what_is_said_is_so_when_it_is_read(
    matcher: str | None, after: str, several: bool, events: int
) -> None:
    """Nobody has to wait for the next look, which may be long in coming: as when no event comes."""
    engine = Engine(matcher=matcher, latency=(12 if after else 4) * MS, clock=WorkClock(1e-3))
    handles = [engine.register(query(after=after)) for _ in range(1 + several)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        _pushed(engine, 0, events)
        said = [_said(handle) for handle in handles]
        for handle in handles:
            handle.cancel()
    assert said[0][2] is not None
    assert 0 < said[0][2] < 1
    assert [_said(handle) for handle in handles] == said


def _said(handle: Handle) -> tuple[int, int, float | None]:
    shed = handle.stats.shed
    assert shed is not None
    return shed.partial_matches, shed.passed_over, shed.recall


def test_what_is_given_up_is_told_in_few_words() -> None:
    some = Shed(partial_matches=2_189, passed_over=9_474, recall=0.0612)
    assert list(_given_up([some])) == ["recall 6% (2,189 partial matches shed, passed over 9,474 times)"]
    assert list(_given_up([Shed(passed_over=1, recall=0.5), Shed()])) == ["recall 50% (passed over 1 times)"]
    assert list(_given_up([Shed(partial_matches=3, recall=None)])) == ["3 partial matches shed"]
    assert list(_given_up([Shed()])) == []
    found = "3 partial matches were shed, and about 61% of its matches were found"
    assert given_up(Shed(partial_matches=3, recall=0.612)) == found


def test_a_narrow_status_line_says_what_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", shown := _Terminal())
    given_up = ("recall 6% (12,862 partial matches shed)",)
    StatusLine().show(Progress(124_670, 35_594, 35_594, 0, 0, datetime(2026, 1, 1), given_up))
    assert "recall 6%" in shown.getvalue()


def test_the_status_line_says_which_limit_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(limits=Limits(partial_matches=8), matcher="interpreter")
    handle = engine.register(query())
    assert handle.stats.limit is None
    for tick in range(4):
        engine.push(STREAM, "[] <http://example.org/a> 1 ; <http://example.org/v> 1 .", tick)
    limit = handle.stats.limit
    monkeypatch.setattr(sys, "stderr", shown := _Terminal())
    StatusLine().show(Progress(4, 0, 0, 0, 0, 3, limit=limit))
    assert re.search(r"  partial-matches, \d\d% used  ", shown.getvalue())


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("matcher", ["nfa", "lazy"])
@pytest.mark.slow
def test_what_is_said_of_a_query_that_is_over_stays(matcher: str) -> None:
    """Others that run with it as one go on, and learn of their own matches alone."""
    engine = Engine(matcher=matcher, latency=4 * MS, clock=WorkClock(1e-3))
    handles = [engine.register(query().replace("?x + ?y", f"?x + ?y + {more}")) for more in (0, 20, 40)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        _pushed(engine, 0, 300)
        handles[1].cancel()
        said = _said(handles[1])
        _pushed(engine, 300, 900)
        assert _said(handles[1]) == said
        assert _said(handles[0])[0] > said[0]


def test_memory_is_kept_where_the_limit_would_end_the_query() -> None:
    size = 600_000
    engine = Engine(memory=size, limits=Limits(query_bytes=2 * size))
    handle = engine.register(query("A : B{1,3}[:] : C").replace("?x + ?y", "?x"))
    with pytest.warns(SpaseqWarning) as told:
        found(engine, handle)
    assert "more would take more memory than its" in str(told[0].message)
    assert handle.error is None
    assert handle.stats.shed is not None
    assert handle.stats.shed.partial_matches > 0


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize(
    "bound", [{"latency": 3 * MS}, {"memory": 800_000}, {"latency": timedelta(days=1), "memory": 800_000}]
)
def test_what_comes_to_nothing_is_shed_first(bound: dict[str, Any]) -> None:
    """Three of four begins of sequences are above all that it is compared with."""
    text = f"""PREFIX : <http://example.org/> SELECT ?a ?b WITHIN 2000 EVENTS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A : B) DEFINE GPM A ON S {{ ?a :a ?x }}
                            DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?y > ?x) }} }}"""
    kinds = ["a", "a", "a", "a", "b"]
    values = [10, 90, 91, 92, 50]
    events = [(f"<urn:{t}> <{STREAM[:-1]}{kinds[t % 5]}> {values[t % 5]} .", t) for t in range(4_000)]

    def matches(**given: Any) -> int:
        engine = Engine(clock=WorkClock(1e-5), **given)
        handle = engine.register(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpaseqWarning)
            engine.push_many(STREAM, events)
            count = sum(map(len, handle.batches()))
            engine.close()
        return count

    every = matches(latency=timedelta(days=1))
    some, lots = matches(**bound), matches(**bound, policy="random-state")
    assert lots < 0.9 * every
    assert some > 0.95 * every


@pytest.mark.parametrize(
    ("matcher", "what"), [("nfa", "partial matches"), ("lazy", "buffers"), ("nfa, skip", "first events")]
)
def test_less_memory_than_any_query_takes_is_said(matcher: str, what: str) -> None:
    engine = Engine(matcher=matcher.partition(",")[0], memory=1)
    handle = engine.register(query(after="AFTER MATCH SKIP TO NEXT EVENT" * matcher.endswith("skip")))
    with pytest.warns(SpaseqWarning) as told:
        found(engine, handle, 1)
    assert re.search(rf"keeps its {what} in [\d,]+ bytes at least", str(told[0].message))


@pytest.mark.parametrize("after", ["", "AFTER MATCH SKIP TO NEXT EVENT"])
@pytest.mark.slow
def test_a_bound_below_what_an_event_takes_by_itself_is_said_once_and_with_what_would_do(after: str) -> None:
    for bound, is_told in ((timedelta(microseconds=900), True), (8 * MS, False)):
        engine = Engine(latency=bound, clock=WorkClock(1e-3))
        handle = engine.register(query(after=after))
        with pytest.warns(SpaseqWarning) as told:
            found(engine, handle, 1_500)
        words = [str(w.message) for w in told if "no shedding holds a bound of 0.9 ms" in str(w.message)]
        assert len(words) == is_told
        shed = handle.stats.shed
        assert shed is not None
        assert shed.least is not None
        assert 0.99e-3 < shed.least < 2e-3
        assert shed.too_tight is is_told
        if is_told:
            least, enough = re.findall(r"takes ([\d.]+) ms even .* at least ([\d.]+) ms", words[0])[0]
            assert float(least) < float(enough) < 2
            (status,) = [part for part in _given_up([shed]) if "even if nothing is kept" in part]
            assert status.endswith("the bound is below")
        else:
            assert not any("nothing is kept" in part for part in _given_up([shed]))


@pytest.mark.parametrize("after", ["LIMIT 12", "", "AFTER MATCH SKIP TO NEXT EVENT"])
def test_who_is_over_sheds_no_more_and_says_so(after: str) -> None:
    """Else ``stats.shed`` said for ever that it did, and that partial matches were shed of no state."""
    engine = Engine(latency=4 * MS, clock=WorkClock(1e-3))
    handle = engine.register(query(after=after))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rng = random.Random(1)
        for t in range(400):
            kind, key, number = rng.choice("abc"), rng.randint(1, 3), rng.randint(0, 100)
            graph = f"<urn:{t}> <http://example.org/{kind}> {key} ; <http://example.org/v> {number} ."
            engine.push(STREAM, graph, t)
            list(handle.matches())
            if t == 300 and after != "LIMIT 12":
                handle.cancel()
    shed = handle.stats.shed
    assert shed is not None
    assert not shed.active
    assert sum(shed.by_state.values()) == shed.partial_matches > 0
    assert [" sheds no more" in str(w.message) for w in told].count(True) == 1
    engine.close()


def test_what_many_events_at_once_complete_is_credited_to_what_it_came_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else what is shed seems to be worth nothing, and all seems to have been found."""
    monkeypatch.setattr(LoadMeter, "learn", lambda self, _: setattr(self, "chunk", 40))
    text = f"""PREFIX : <http://example.org/> SELECT ?a ?b WITHIN 200 EVENTS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A : B) DEFINE GPM A ON S {{ ?a :a ?x }}
                            DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?y > ?x) }} }}"""
    graphs = [f"<urn:{t}> <http://example.org/{'ab'[t % 2]}> {t} ." for t in range(2_000)]
    counts = []
    for bound in (timedelta(days=1), MS):
        engine = Engine(latency=bound, clock=WorkClock(1e-3))
        handle = engine.register(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpaseqWarning)
            engine.push_many(STREAM, [(graph, t) for t, graph in enumerate(graphs)])
            counts.append(sum(map(len, handle.batches())))
            engine.close()
    every, some = counts
    shed = handle.stats.shed
    assert shed is not None
    assert shed.recall is not None
    assert some < every
    assert shed.recall < 2.5 * some / every


def test_events_that_come_together_are_taken_together_however_little_time_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call for each took twice as long as a query without a bound, and so much more was shed."""
    calls, taken = count(), count()
    process = NfaMatcher.process

    def counted(self: NfaMatcher, *given: Any) -> Any:
        next(taken)
        return process(self, *given)

    monkeypatch.setattr(NfaMatcher, "process", counted)
    # Whatever is done takes as long as the bound, or longer.
    engine = Engine(matcher="nfa", latency=MS / 1_000, clock=lambda: next(calls) * 1e-6)
    handle = engine.register(query())
    events = [(f"<urn:{t}> <http://example.org/{'abc'[t % 3]}> 1 .", t) for t in range(640)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        engine.push_many(STREAM, events)
        sum(map(len, handle.batches()))
        engine.close()
    assert 0 < next(taken) <= 640 / 16 + 24


def test_events_that_take_long_are_taken_one_by_one() -> None:
    """Of a few at once it was not known what each was to be shown, and they broke the bound together."""
    pace = LoadMeter(Bound(latency=5e-3, clock=lambda: 0.0))
    pace.learn(5e-3)
    assert pace.chunk == 1
    pace.learn(1e-3)
    assert pace.chunk == 4
    pace.learn(1e-4)  # a call takes about as long
    assert pace.chunk == 16


def test_a_bound_that_is_not_met_sheds_nothing() -> None:
    engine = Engine(latency=timedelta(days=1), memory=2**40)
    handle = engine.register(query(), weight=2.0)
    other = Engine(matcher="nfa")
    assert found(engine, handle, 100) == found(other, other.register(query()), 100)
    assert handle.stats.shed is not None
    assert handle.stats.shed.recall == 1.0


@pytest.mark.parametrize("given", [{"latency": timedelta(days=1)}, {"memory": 2**40}])
def test_where_nothing_is_compared_nothing_is_lost_either(given: dict[str, Any]) -> None:
    """A partial match that has bound nothing has no space for what trials bind: they wrote over the next."""
    text = f"""PREFIX : <http://example.org/> SELECT ?a ?b WITHIN 36 EVENTS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A : B) DEFINE GPM A ON S {{ ?a :a ?x }} DEFINE GPM B ON S {{ ?b :b ?y }} }}"""
    events = [(f"<urn:{t}> <http://example.org/{'ab'[t % 2]}> {t} .", t) for t in range(60)]

    def spans(**bounds: Any) -> list[tuple[Any, Any]]:
        engine = Engine(matcher="nfa", **bounds)
        handle = engine.register(text)
        engine.push_many(STREAM, events)
        engine.close()
        return [(match.start, match.end) for match in handle.matches()]

    assert spans(**given) == spans()


@pytest.mark.parametrize(
    "after", ["EMIT LAST", "EMIT NEXT", "CONSUME ANY", "EMIT LAST CONSUME ANY", "LIMIT 30"]
)
@pytest.mark.few(1)
def test_what_may_be_another_match_is_counted_and_explained(after: str) -> None:
    text = query(after=after)
    engine = Engine(matcher="nfa")
    every = found(engine, engine.register(text))
    engine = Engine(matcher="nfa", latency=4 * MS, clock=WorkClock(1e-3))
    handle = engine.register(text)
    with pytest.warns(SpaseqWarning) as told:
        some = found(engine, handle)
    shed = handle.stats.shed
    assert shed is not None
    assert shed.partial_matches > 0
    assert "sheds partial matches" in str(told[0].message)
    if after != "LIMIT 30":  # of which the end comes before shedding's
        assert f"; {shed.doubtful:,} may be others" in str(told[-1].message)
    assert list(_given_up([shed]))[1:] == [f"{shed.doubtful:,} matches may be others"]
    assert (shed.recall is None) is (after != "LIMIT 30")
    assert len(some - every) <= shed.doubtful <= handle.stats.matches
    plan = explain(prepare(text))
    assert plan.bound.sheds
    assert plan.as_json()["bound"]["doubts"] == list(plan.bound.doubts)
    assert " and ".join(plan.bound.doubts) in str(plan)
    assert plan.bound.doubts == {
        "EMIT LAST CONSUME ANY": ("EMIT LAST", "CONSUME ANY"),
        "LIMIT 30": ("LIMIT",),
    }.get(after, (after,))


@pytest.mark.parametrize(("sequence", "is_told"), [("A : B", False), ("A ; B", True), ("A : !B : C", True)])
@pytest.mark.parametrize("reader_first", [True, False])
def test_who_reads_a_stream_made_under_a_bound_and_asks_what_is_absent_in_it_is_told(
    sequence: str, is_told: bool, reader_first: bool
) -> None:
    made = f"""PREFIX : <http://example.org/> REGISTER STREAM <urn:made> AS CONSTRUCT {{ ?a :a ?x }}
        WITHIN 9 SECONDS SLIDING FROM STREAM S <{STREAM}> WHERE {{ SEQ(A : B)
          DEFINE GPM A ON S {{ ?a :a ?x }} DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?y > ?x) }} }}"""
    gpms = " ".join(f"DEFINE GPM {n} ON S {{ ?{n.lower()} :a ?x{n} }}" for n in "ABC" if n in sequence)
    reads = f"""PREFIX : <http://example.org/> SELECT * WITHIN 9 SECONDS SLIDING FROM STREAM S <urn:made>
        WHERE {{ SEQ({sequence}) {gpms} }}"""
    engine = Engine(latency=MS)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for text in (reads, made) if reader_first else (made, reads):
            engine.register(text)
    assert [str(w.message).startswith("<urn:made> is made under a bound") for w in told] == [True] * is_told
    assert "queries that ask what is absent or next in its stream" in explain(prepare(made)).bound.reason


def test_a_query_that_cannot_shed_says_so_and_runs_exactly() -> None:
    text, reason = query(after="AFTER MATCH SKIP PAST LAST EVENT"), "AFTER MATCH SKIP PAST LAST EVENT"
    engine = Engine(latency=MS)
    with pytest.warns(SpaseqWarning, match=f"runs without a bound: it could keep one if .*here {reason}"):
        handle = engine.register(text)
    assert handle.stats.shed is None
    bound = explain(prepare(text)).bound
    assert not bound.sheds
    assert not bound.is_kept


@pytest.mark.filterwarnings("ignore:.*has a value per iteration:spaseq.errors.SpaseqWarning")
@pytest.mark.parametrize(
    ("sequence", "every"), [("A : B+ : C", True), ("(A : B)+ : C", True), ("A : (B+ : A)+ : C", False)]
)
def test_explain_says_that_a_match_may_come_with_fewer_readings(sequence: str, every: bool) -> None:
    plan = explain(prepare(query(sequence)))
    assert plan.bound.sheds
    assert plan.bound.all_readings is every
    assert plan.as_json()["bound"]["all_readings"] is every
    assert ("read in several ways may come with some of them alone" in str(plan)) is not every


@pytest.mark.parametrize(("sequence", "after"), [("A : B : C", "EMIT LAST"), ("A : B+[:] : C", "")])
def test_a_query_for_lazy_that_is_not_for_shedding_events_keeps_its_bound_by_the_kernel(
    sequence: str, after: str
) -> None:
    text = query(sequence, after).replace("?x + ?y", "?x")
    plan = explain(prepare(text))
    assert plan.matcher == "lazy"
    assert plan.bound.sheds
    assert plan.bound.name == "nfa"
    assert "without a bound lazy runs it, which may take less time than that" in plan.bound.reason
    no_lazy = explain(prepare(query("A ; B ; C"))).bound
    assert no_lazy.sheds
    assert "without a bound" not in no_lazy.reason
    handle = Engine(latency=MS).register(text)
    assert handle.stats.shed is not None


@pytest.mark.parametrize("sequence", ["A : B{2}", "A : B+", "A : B", "A : B{1,2}"])
@pytest.mark.few(1)
def test_who_hardly_keeps_anything_does_not_say_that_all_was_found(sequence: str) -> None:
    """Of the last gate nothing was seen; where it is one of a Kleene, too, a match may end there."""
    text = f"""PREFIX : <http://example.org/> SELECT ?a WITHIN 100 EVENTS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?a :a ?k ; :v ?x }}
          DEFINE GPM B ON S {{ ?b :b ?k ; :v ?y . FILTER(?y > ?x) }} }}"""
    every = Engine(matcher="nfa")
    exact = len(found(every, every.register(text)))
    engine = Engine(matcher="nfa", latency=timedelta(microseconds=1), clock=WorkClock(1e-6))
    handle = engine.register(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        some = len(found(engine, handle))
    shed = handle.stats.shed
    assert shed is not None
    assert shed.recall is not None
    assert some < exact / 4
    assert shed.recall < 0.6


def test_a_bound_runs_the_kernel_that_runs_without() -> None:
    """Shedding looks at the arena between two events: see also ``tests/matching/test_unbounded``."""
    engine = Engine(matcher="nfa")
    found(engine, engine.register(query()), 40)
    compiled = list(_kernel.run.signatures)  # type: ignore[attr-defined]
    engine = Engine(matcher="nfa", latency=timedelta(days=1))
    handle = engine.register(query())
    found(engine, handle, 40)
    assert handle.stats.shed is not None
    assert list(_kernel.run.signatures) == compiled  # type: ignore[attr-defined]


def test_tecs_has_nothing_to_shed() -> None:
    text = f"""PREFIX : <http://example.org/> SELECT ?a WITHIN 9 EVENTS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A : B) DEFINE GPM A ON S {{ ?a :a ?k }} DEFINE GPM B ON S {{ ?b :b ?k }} }}"""
    handle = Engine(latency=MS).register(text)
    assert handle.stats.shed is None
    assert "bound      tecs has no partial matches to shed" in str(explain(prepare(text)))


def test_a_state_and_a_bound_refuse_each_other(tmp_path: Path) -> None:
    words = "a query under a bound .* no restart repeats: leave out the state, or latency and memory"
    with pytest.raises(EngineError, match=words):
        Engine(state=tmp_path / "one", latency=MS)
    with Engine(state=tmp_path / "two") as engine, pytest.raises(EngineError, match=words):
        engine.register(query(), name="q", latency=MS)


def test_an_matcher_that_cannot_shed() -> None:
    for matcher, text, why in (
        ("tree", query(), "'tree' cannot shed partial matches: with a bound, ask for 'nfa' or for none"),
        ("lazy", query("A : B{1,3}[:] : C"), r"'lazy' can .* only if nothing is repeated; here B"),
        (
            "lazy",
            query(after="EMIT LAST"),
            "'lazy' can .* only if no match is preferred to another; here EMIT",
        ),
    ):
        with pytest.raises(EngineError, match=why):
            Engine(matcher=matcher, latency=MS).register(text.replace("?x + ?y", "?x"))


@pytest.mark.slow
def test_a_clock_that_goes_back_a_callback_that_raises_and_an_end_in_between_find_nothing_false() -> None:
    engine = Engine(matcher="nfa")
    every = found(engine, engine.register(query()))
    rng = random.Random(3)
    engine = Engine(latency=MS, clock=lambda: rng.random() - 0.5)
    calls = count()

    def raises(match: object) -> None:
        if next(calls) % 3 == 0:
            raise ValueError(match)

    pulled, called = engine.register(query()), engine.register(query(), raises)
    out = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        values = random.Random(1)
        for t in range(400):
            kind, key, number = values.choice("abc"), values.randint(1, 3), values.randint(0, 100)
            graph = f"<urn:{t}> <http://example.org/{kind}> {key} ; <http://example.org/v> {number} ."
            with suppress(ValueError):
                engine.push(STREAM, graph, t)
            out |= {str(match.bindings) for match in pulled.matches()}
            if t == 300:
                called.cancel()
                engine.register(query())
        engine.close()
    assert out <= every
    assert called.is_cancelled


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"latency": 0.05}, r"a bound is a timedelta above 0, as timedelta\(milliseconds=50\)"),
        ({"latency": timedelta(milliseconds=-1)}, "a bound is a timedelta above 0"),
        ({"memory": "2GB"}, "a bound is a whole number of bytes above 0, as 2 << 30"),
        ({"memory": -1}, "a bound is a whole number of bytes above 0"),
        ({"memory": True}, "a bound is a whole number of bytes above 0"),
        ({"latency": timedelta(0)}, "a bound is a timedelta above 0"),
        ({"memory": 0}, "a bound is a whole number of bytes above 0"),
        ({"policy": "best"}, "unknown policy 'best': there are sharp, random-state"),
        ({"latency": MS, "clock": 5}, "clock=5: a clock is called, and gives seconds"),
    ],
)
def test_what_is_no_bound(given: dict[str, object], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        Engine(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "weight", [0, -1, math.inf, math.nan, "2", None, True, pytest.param(10**400, id="huge")]
)
def test_what_is_no_weight(weight: Any) -> None:
    """An infinite one ended the query at its first event, in which parts of the memory were compared."""
    with pytest.raises(EngineError, match="a weight is a number above 0"):
        Engine(memory=2**30).register(query(), weight=weight)


def test_weights_of_any_size_are_shares() -> None:
    engine = Engine(memory=2_000_000)
    handles = [engine.register(query(after=after), weight=1.7e308) for after in ("", "EMIT LAST")]
    found(engine, handles[0], 100)
    assert all(handle.error is None for handle in handles)


def test_a_query_of_the_same_name_with_other_bounds_is_another_one() -> None:
    engine = Engine()
    handle = engine.register(query(), name="x")
    with pytest.raises(EngineError, match=r"another query of the name 'x', .* with other bounds"):
        engine.register(query(), name="x", latency=MS)
    other = engine.register(query(), name="x", latency=MS, replace=True)
    assert handle.is_cancelled
    assert other.stats.shed is not None
    assert engine.register(query(), name="x", latency=MS) is other
    assert engine.register(query(), name="x", replace=True).stats.shed is None


def test_of_the_memory_each_query_has_its_part_and_what_the_others_leave() -> None:
    pool = Pool(1_000)
    light, heavy = Bound(pool=pool), Bound(pool=pool, weight=3.0)
    pool.join(light)
    pool.join(heavy)
    assert pool.share(light, 900) == 1_000
    assert pool.share(heavy, 100) == 750
    assert pool.share(light, 900) == 900
    assert pool.share(heavy, 750) == 750
    assert pool.share(light, 250) == 250
    pool.leave(heavy)
    assert pool.share(light, 250) == 1_000
