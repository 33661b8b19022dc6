"""One event at a time: ``push``, and the routes of a GPM: ``gpm``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyoxigraph as ox
import rdflib
from rdflib.plugins.sparql import prepareQuery

import spaseq
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.language.syntax import Group
from spaseq.language.syntax.printing import print_group
from spaseq.patterns.oxigraph import General
from spaseq.patterns.spectra.joins import Spectra
from spaseq.patterns.spectra.rowwise import Facts, Rowwise
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement, check, side_by_side
from tests.benchmarks.trades import STREAM, E, Trade, graph, rising_and_falling, v_shape, v_shapes

#: What an event may cost, in microseconds, at the 99th percentile.
_BOUND = 150.0


def push(quick: bool) -> Iterator[Measurement]:
    """``Engine.push`` of one event after another with a query of three GPMs, as text and as ready triples.

    With nobody asking, with matches read after each event (what that takes is counted), with a callback.
    """
    events = 1_000 if quick else 20_000
    trades = rising_and_falling(events, companies=100)
    expected = v_shapes(trades, _tick, 600)
    texts = ["".join(f"{triple} .\n" for triple in graph(t, 2, n)) for n, t in enumerate(trades)]
    ready = [[quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)] for text in texts]
    for read in ("in the end", "after each", "by a callback"):
        for case, given in (("text", texts), ("triples", ready)):
            taken, worked, found = _pushed(given, read)
            check("V shapes", found, expected)
            p50, p99 = np.percentile(taken[events // 10 :], [50, 99])
            # What other processes take shows in the one, and not in the other.
            facts = {"p50 µs": float(p50), "p99 µs": float(p99), "max µs": max(taken)}
            facts["mean µs of CPU"] = float(np.mean(worked[events // 10 :]))
            facts["p99 µs of CPU"] = float(np.percentile(worked[events // 10 :], 99))
            against = f"below {_BOUND:.0f} µs at p99"
            yield Measurement("push", f"{case}, read {read}", _BOUND / float(p99), against, {}, facts)
    yield _several(ready)
    yield _concerned(500 if quick else 10_000)
    yield _registered(20 if quick else 200)


def _pushed(
    given: Sequence[str] | Sequence[list[ox.Triple]], read: str
) -> tuple[list[float], list[float], int]:
    """The microseconds of every event by the clock and of this thread, and how many matches there were."""
    engine = spaseq.Engine()
    matches: list[spaseq.Match] = []
    handle = engine.register(v_shape(2), matches.append if read == "by a callback" else None)
    taken, worked = [], []
    for number, event in enumerate(given):
        begin, busy = time.perf_counter_ns(), time.thread_time_ns()
        engine.push(STREAM, event, _tick(number))
        if read == "after each":
            matches += handle.matches()
        worked.append((time.thread_time_ns() - busy) / 1_000)
        taken.append((time.perf_counter_ns() - begin) / 1_000)
    return taken, worked, len(matches) + sum(1 for _ in handle.matches())


def _several(events: Sequence[list[ox.Triple]]) -> Measurement:
    """``push_many`` of hundreds against ``push``."""

    def singly() -> int:
        engine = spaseq.Engine()
        handle = engine.register(v_shape(2))
        for number, event in enumerate(events):
            engine.push(STREAM, event, _tick(number))
        return sum(1 for _ in handle.matches())

    def together() -> int:
        engine = spaseq.Engine()
        handle = engine.register(v_shape(2))
        numbered = [(event, _tick(number)) for number, event in enumerate(events)]
        for begin in range(0, len(events), 500):
            engine.push_many(STREAM, numbered[begin : begin + 500])
        return sum(1 for _ in handle.matches())

    check("matches", together(), singly())
    one, many = side_by_side(3, singly, together)
    rates = {"push_many events": len(events) / many, "push events": len(events) / one}
    return Measurement("push", "push_many of 500", one / many, "push", rates)


def _rises(company: int, seconds: int) -> str:
    """A query of one company; those whose windows are unlike are of no common template."""
    price = f"<{E}company/{company}> :price"
    return f"""
        PREFIX : <{E}> SELECT * WITHIN {seconds} SECONDS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A ; B)
          DEFINE GPM A ON S {{ {price} ?p1 }}
          DEFINE GPM B ON S {{ {price} ?p2 . FILTER(?p2 > ?p1 + 20) }} }}"""


def _concerned(events: int) -> Measurement:
    """Queries of which an event concerns one, and a query alone that each event concerns."""
    trades = rising_and_falling(events, companies=100)
    alone = rising_and_falling(events, companies=1)

    def pushed(given: Sequence[Trade], queries: Sequence[str]) -> list[float]:
        """CPU microseconds of each event, all that was left for later among them."""
        engine = spaseq.Engine()
        for query in queries:
            engine.register(query)
        ready = [
            [quad.triple for quad in ox.parse(f"{graph(t, 1, 0)[0]} .", format=ox.RdfFormat.N_TRIPLES)]
            for t in given
        ]
        taken = []
        for number, event in enumerate(ready):
            busy = time.thread_time_ns()
            engine.push(STREAM, event, number)
            taken.append((time.thread_time_ns() - busy) / 1_000)
        return taken[events // 10 :]

    one = pushed(alone, [_rises(0, 20)])
    hundred = pushed(trades, [_rises(company, 2_000 + company) for company in range(100)])
    facts = {
        f"{what} µs of CPU, {number}": float(value)
        for number, taken in (("1 query", one), ("100 queries", hundred))
        for what, value in (("p50", np.median(taken)), ("mean", np.mean(taken)), ("max", np.max(taken)))
    }
    ratio = float(np.mean(hundred) / np.mean(one))
    return Measurement("push", "100 queries, of which it concerns one", ratio, "1 query", {}, facts)


def _registered(queries: int) -> Measurement:
    """Whether four times as many queries take four times as long to register."""

    def registered(count: int) -> None:
        engine = spaseq.Engine()
        for number in range(count):
            engine.register(_rises(number, 2_000 + number))

    registered(1)
    few, many = side_by_side(1, lambda: registered(queries), lambda: registered(4 * queries))
    rates = {"queries": 4 * queries / many}
    return Measurement("push", f"register {4 * queries} unlike queries", many / few / 4, "linear", rates)


def _tick(number: int) -> int:
    """The time of a pushed event: its window of 600 seconds holds 2,400."""
    return number // 4


#: GPMs of the kinds that the routes differ in.
_PATTERNS = {
    "2 triples, FILTER": "{ ?c :price ?p ; :volume ?v . FILTER(?p > 120) }",
    "star of 6": "{ ?c :price ?p ; :volume ?v ; :venue ?w ; :side ?s ; :sequence ?q ; :currency ?u }",
    "OPTIONAL, UNION": "{ ?c :price ?p OPTIONAL { ?c :side :up } { ?c :volume ?v } UNION { ?c :venue ?v } }",
}


def gpm(quick: bool) -> Iterator[Measurement]:
    """A GPM's stateless part on every event: joins of views, joins of rows, Oxigraph, rdflib."""
    events = 200 if quick else 10_000
    for case, text in _PATTERNS.items():
        dictionary = Dictionary()
        batch = _batch(events, dictionary)
        few = batch.take(np.arange(min(events, 200)))
        pattern = _group(text)
        spectra, general = Spectra(pattern, dictionary, None), General(pattern, dictionary, None)
        rows = Rowwise(pattern, dictionary, None)
        query = prepareQuery(f"PREFIX : <{E}> SELECT * WHERE {print_group(pattern)}")
        graphs = [_rdflib(few, event) for event in range(len(few))]
        answers: dict[str, Callable[[], int]] = {
            "SPECTRA": lambda b=batch, s=spectra: len(s.evaluate(b)),
            "general": lambda b=batch, g=general: len(g.evaluate(b)),
            "by rows": lambda b=few, r=rows: sum(
                len(r.rows(Facts(b.triples(event)), {})) for event in range(len(b))
            ),
            "rdflib": lambda gs=graphs, q=query: sum(len(g.query(q)) for g in gs),
        }
        check("general's solutions", answers["general"](), answers["SPECTRA"]())
        check("rdflib's solutions", answers["rdflib"](), len(spectra.evaluate(few)))
        check("solutions by rows", answers["by rows"](), len(spectra.evaluate(few)))
        taken = side_by_side(1 if quick else 5, *answers.values())
        sizes = (events, events, len(few), len(few))
        rates = {name: size / seconds for name, size, seconds in zip(answers, sizes, taken, strict=True)}
        against = rates["SPECTRA"] / rates["rdflib"]
        yield Measurement("gpm", case, against, "rdflib", {f"{name} events": r for name, r in rates.items()})


def _batch(events: int, dictionary: Dictionary) -> EventBatch:
    builder = BatchBuilder(dictionary, ox.NamedNode(STREAM), Clock.TICKS)
    for number, trade in enumerate(rising_and_falling(events, companies=100)):
        text = "".join(f"{triple} .\n" for triple in graph(trade, 6, number))
        triples = [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)]
        builder.add(number, number, triples)
    return builder.build()


def _rdflib(batch: EventBatch, event: int) -> rdflib.Graph:
    term = batch.dictionary.term
    text = "".join(f"{ox.Triple(*map(term, ids))} .\n" for ids in batch.triples(event))
    return rdflib.Graph().parse(data=text, format="nt")


def _group(text: str) -> Group:
    query = spaseq.prepare(
        f"PREFIX : <{E}> ASK WITHIN 9 EVENTS FROM STREAM S <{STREAM}> "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {text} }}"
    )
    return query.gpm("A").pattern
