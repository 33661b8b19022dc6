"""Random queries and streams within the kernel's tables, and how they are given to it, split into batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pyoxigraph import Literal, NamedNode

from spaseq.automaton.pattern import SequencePattern, normalise
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.gpm.solutions import Solutions
from spaseq.language.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.host import Key, Matcher
from spaseq.matching.kernel.evaluator import Kernel
from spaseq.matching.model import Bounds, Found, Occurrence, Row
from spaseq.matching.reference import Reference
from spaseq.terms import Dictionary

_XSD = "http://www.w3.org/2001/XMLSchema#"

#: Terms whose order and equality are easy, hard, and none at all.
PLAIN = [Literal(i) for i in range(4)]
ODD = [
    Literal("14.35", datatype=NamedNode(_XSD + "decimal")),
    Literal("14.350", datatype=NamedNode(_XSD + "decimal")),
    Literal("14.3500000000000000001", datatype=NamedNode(_XSD + "decimal")),
    Literal(2**53),
    Literal(2**53 + 1),
    Literal("3", datatype=NamedNode(_XSD + "decimal")),
    Literal("0.1", datatype=NamedNode(_XSD + "decimal")),
    Literal("0.2", datatype=NamedNode(_XSD + "decimal")),
    Literal("0.3", datatype=NamedNode(_XSD + "decimal")),
    Literal("0.3", datatype=NamedNode(_XSD + "double")),
    Literal("2.0", datatype=NamedNode(_XSD + "double")),
    Literal("NaN", datatype=NamedNode(_XSD + "double")),
    Literal("0.1", datatype=NamedNode(_XSD + "float")),
    Literal("2"),
    Literal("x"),
    NamedNode("http://example.org/x"),
    Literal("2020-01-01T00:00:00Z", datatype=NamedNode(_XSD + "dateTime")),
]


@dataclass(frozen=True)
class Query:
    """A random query: its GPMs' types and streams, and whether they bind ``?k`` and ``?j``."""

    text: str
    pattern: SequencePattern
    types: dict[str, str]
    streams: dict[str, tuple[int, ...]]
    binds: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Sample:
    """A query, its window, and a stream."""

    query: Query
    dictionary: Dictionary
    bounds: Bounds
    events: tuple[Occurrence, ...]

    def __str__(self) -> str:
        term = self.dictionary.term
        shown = [
            f"{e.stamp} "
            + str({g: [{n: str(term(i)) for n, i in s.items()} for s in ss] for g, ss in e.solutions.items()})
            for e in self.events
        ]
        return "\n".join([self.query.text, str(self.bounds), *shown])


def random_query(rng: random.Random, *, depth: int = 1) -> Query:
    """A sequence of GPMs, Kleene closures and groups, with joins and correlated filters."""
    types: dict[str, str] = {}
    binds: dict[str, tuple[str, ...]] = {}
    streams: dict[str, tuple[int, ...]] = {}
    partition = rng.random() < 0.3
    # Where heaps are used: one stream, and one ordering filter at each GPM.
    ordered = rng.random() < 0.3
    one_stream = ordered or rng.random() < 0.4

    def name() -> str:
        if len(types) == 5 or (types and rng.random() < 0.1):
            return rng.choice(sorted(types))
        new = "ABCDE"[len(types)]
        types[new] = rng.choice("xxxy")
        both = (1,) if one_stream else (1, 2)
        streams[new] = both if one_stream or rng.random() < 0.7 else (rng.choice(both),)
        shared = ["k"] if partition or rng.random() < 0.2 else []
        binds[new] = tuple(shared + (["j"] if rng.random() < 0.15 else []))
        return new

    def operator() -> str:
        return rng.choice([";", ";", ";", ",", ":"])

    def element(left: int) -> str:
        kind = rng.random()
        if kind < 0.3:
            inner = name() if left == 0 or rng.random() < 0.8 else f"({chain(left - 1)})"
            bounds = rng.choice(["+", "+", "+", "{2,}", "{1,2}", "{2}", "{1,3}"])
            return inner + bounds + rng.choice(["", "[;]", "[,]", "[:]"])
        if left and kind < 0.4:
            return f"({chain(left - 1)} | {chain(left - 1)})"
        if left and kind < 0.45:
            return f"({chain(left - 1)})"
        return name()

    def chain(left: int) -> str:
        text = element(left)
        for _ in range(rng.choice([0, 1, 1, 2]) if left < depth else rng.choice([1, 1, 2, 2, 3])):
            text += f" {operator()} {element(left)}"
        return text

    seq = chain(depth)
    names = sorted(types)
    filters = {n: _condition(rng, n, names) for n in names if rng.random() < 0.5}
    if ordered:
        filters = {
            n: f"?v{n} {rng.choice(['<', '>', '<=', '>='])} ?v{names[0]}"
            for n in names[1:]
            if rng.random() < 0.8
        }
    where = f"FILTER({_comparison(rng, rng.choice(names), names)})" if rng.random() < 0.25 else ""
    gpms = "\n".join(
        f"DEFINE GPM {n} ON {', '.join(f'S{i}' for i in streams[n])} "
        f"{{ [] :v ?v{n}{''.join(f' ; :{b} ?{b}' for b in binds[n])} "
        f"{f'FILTER({filters[n]})' if n in filters else ''} }}"
        for n in names
    )
    declared = " ".join(
        f"FROM STREAM S{i} <http://example.org/s{i}>" for i in ((1,) if one_stream else (1, 2))
    )
    text = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS "
        f"{'PARTITION BY ?k' if partition else ''} {declared}\nWHERE {{ SEQ({seq})\n{gpms}\n{where} }} "
        f"{rng.choice(['', '', '', '', 'EMIT NEXT', 'EMIT LAST', 'EMIT MAX'])}"
    )
    return Query(text, normalise(parse(text)), types, streams, binds)


def _condition(rng: random.Random, own: str, names: Sequence[str]) -> str:
    return " && ".join(_comparison(rng, own, names) for _ in range(rng.choice([1, 1, 1, 2])))


def _comparison(rng: random.Random, own: str, names: Sequence[str]) -> str:
    operator = rng.choice(["<", ">", "<=", ">=", ">", "=", "!="])
    sides = [f"?v{own}", _operand(rng, own, names)]
    if rng.random() < 0.15:
        sides = [_operand(rng, own, names), _operand(rng, own, names)]
    if rng.random() < 0.2:
        sides.reverse()
    return f"{sides[0]} {operator} {sides[1]}"


def _operand(rng: random.Random, own: str, names: Sequence[str]) -> str:
    other = rng.choice(names)
    match rng.randrange(12):
        case 0:
            return f"PREV(?v{own})"
        case 1:
            function = rng.choice(["MIN", "MAX", "SUM", "COUNT", "AVG", "FIRST", "LAST"])
            return f"{function}(?v{other})"
        case 2:
            return f"LAST(?v{other})"
        case 3:
            return f"?v{other} {rng.choice('+-*/')} {rng.choice(['1', '0.5', '0.1', '?v' + own])}"
        case 4:
            return rng.choice(["2", "1.0", "0.3", "-1", "2e0"])
        case _:
            return f"?v{other}"


def random_sample(rng: random.Random, query: Query, size: int) -> Sample:
    """A stream for a query, with ties, events of several solutions, and sometimes odd values."""
    dictionary = Dictionary()
    plain = [dictionary.intern(term) for term in PLAIN]
    odd = [dictionary.intern(term) for term in ODD]
    numbers = sorted(rng.sample(odd, 4)) if rng.random() < 0.3 else plain
    several = rng.random() < 0.3
    time, counts = 0, {1: 0, 2: 0}
    single = all(s == (1,) for s in query.streams.values())
    events = []
    for position in range(rng.randrange(size // 2, size + 1)):
        time += rng.choice([0, 1, 1, 2])
        stream = 1 if single else rng.choice([1, 2])
        kind = rng.choice("xxxy")
        rows = rng.choice([1, 2]) if several else 1
        values = [(rng.choice(numbers), rng.choice(plain[:2]), rng.choice(plain[:2])) for _ in range(rows)]
        solutions = {}
        for name, wanted in query.types.items():
            if wanted == kind and stream in query.streams[name] and rng.random() < 0.9:
                solutions[name] = tuple(
                    {f"v{name}": v, **{b: {"k": k, "j": j}[b] for b in query.binds[name]}}
                    for v, k, j in values
                )
        events.append(Occurrence(Stamp(time, stream, counts[stream]), position, solutions))
        counts[stream] += 1
    bounds = Bounds(rng.randrange(1, 16), rng.random() < 0.4, rng.random() < 0.6, 0)
    return Sample(query, dictionary, bounds, tuple(events))


def batches(
    events: Sequence[Occurrence], dictionary: Dictionary, sizes: Iterable[int]
) -> Iterator[tuple[EventBatch, int, dict[str, Solutions]]]:
    """Events as the kernel takes them, in batches of these sizes; the last one has the rest."""
    start = 0
    for size in (*sizes, len(events)):
        part = events[start : start + size]
        if part:
            yield _batch(part, dictionary), part[0].position, _solutions(part)
        start += size


def _batch(events: Sequence[Occurrence], dictionary: Dictionary) -> EventBatch:
    none = np.zeros(0, dtype=np.int64)
    time, stream, n = np.array([event.stamp for event in events], dtype=np.int64).T.copy()
    empty = np.zeros(len(events) + 1, dtype=np.int64)
    graph = np.zeros(len(events), dtype=np.int64)
    return EventBatch(dictionary, Clock.TICKS, stream, graph, time, n, empty, none, none, none)


def _solutions(events: Sequence[Occurrence]) -> dict[str, Solutions]:
    found = {}
    for gpm in {name for event in events for name in event.solutions}:
        rows = [(i, s) for i, event in enumerate(events) for s in event.solutions.get(gpm, ())]
        names = {name for _, s in rows for name in s}
        columns = {name: np.array([s.get(name, 0) for _, s in rows], dtype=np.int64) for name in names}
        found[gpm] = Solutions(len(rows), np.array([i for i, _ in rows], dtype=np.int64), columns)
    return found


def _row(one: Row) -> object:
    iterations = {
        kleene: tuple(frozenset(frozenset(s.items()) for s in solutions) for solutions in completed)
        for kleene, completed in one.iterations.items()
    }
    return frozenset(one.binding.items()), frozenset(iterations.items())


def shown(found: Iterable[tuple[Key, Found]]) -> list[object]:
    """Matches as a comparable value, in the order of delivery."""
    return [(key, match.chosen, frozenset(map(_row, match.rows))) for key, match in found]


def by_kernel(sample: Sample, sizes: Iterable[int]) -> list[object]:
    pattern = sample.query.pattern
    context = Context(pattern, sample.dictionary, lambda *_: False)
    kernel = Kernel(pattern, sample.dictionary, context, sample.bounds)
    found = []
    for batch in batches(sample.events, sample.dictionary, sizes):
        found += shown(kernel.process(*batch))
    return found + shown(kernel.close())


def by_reference(sample: Sample) -> list[object]:
    pattern, bounds = sample.query.pattern, sample.bounds
    context = Context(pattern, sample.dictionary, lambda *_: False)
    matcher = Matcher(pattern, bounds, lambda: Reference(pattern, context, bounds))
    found = []
    for event in sample.events:
        found += shown(matcher.push(event))
    return found + shown(matcher.close())
