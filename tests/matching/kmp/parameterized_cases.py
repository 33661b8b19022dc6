"""Random queries that are parameterized patterns, streams for them, and how matchers are given both."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from pyoxigraph import Literal, NamedNode

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Stamp
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.host import Matcher
from spaseq.matching.kmp.matcher import KmpMatcher
from spaseq.matching.kmp.query import obstacles
from spaseq.matching.model import Occurrence, PartitionMatcher, StreamWindow
from spaseq.matching.reference import Reference
from spaseq.terms.dictionary import Dictionary, Term
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, shown

_XSD = "http://www.w3.org/2001/XMLSchema#"


def _number(text: str, kind: str) -> Literal:
    return Literal(text, datatype=NamedNode(_XSD + kind))


PLACES: tuple[Term, ...] = tuple(NamedNode(f"http://example.org/{name}") for name in "abc")

#: Terms of the same value, of none, and those that `!=` refuses.
ODD: tuple[Term, ...] = (
    _number("1", "integer"),
    _number("01", "integer"),
    _number("1.0", "decimal"),
    _number("-0.0", "decimal"),
    _number("0", "integer"),
    _number("0.1000000000000000000001", "decimal"),
    _number("0.1", "decimal"),
    _number("1e0", "double"),
    _number("NaN", "double"),
    _number("what", "integer"),
    Literal("1"),
    Literal("x", language="en"),
    PLACES[0],
)


@dataclass(frozen=True)
class Asks:
    """A GPM: the predicates it asks for, each a variable or a constant; those of ``maybe`` are optional."""

    objects: Mapping[str, str | Term]
    maybe: Mapping[str, str]
    filters: str = ""

    def __str__(self) -> str:
        shown = [f"[] :{p} {f'?{o}' if isinstance(o, str) else o} ." for p, o in self.objects.items()]
        shown += [f"OPTIONAL {{ [] :{p} ?{o} }}" for p, o in self.maybe.items()]
        return " ".join([*shown, self.filters])

    def solutions(
        self, facts: Mapping[str, tuple[Term, ...]], intern: Callable[[Term], int]
    ) -> tuple[dict[str, int], ...]:
        """What it finds in an event, without its filters."""
        parts: list[list[dict[str, int]]] = []
        for p, o in self.objects.items():
            if isinstance(o, str):
                parts.append([{o: intern(term)} for term in facts[p]])
            else:
                parts.append([{} for term in facts[p] if term == o])
        parts += [[{o: intern(term)} for term in facts[p]] or [{}] for p, o in self.maybe.items()]
        joined = []
        for rows in product(*parts):
            union: dict[str, int] = {}
            if all(union.setdefault(name, term) == term for row in rows for name, term in row.items()):
                joined.append(union)
        return tuple(joined)


@dataclass(frozen=True)
class Case:
    """A query."""

    text: str
    pattern: SequencePattern
    gpms: Mapping[str, Asks]


def random_case(rng: random.Random) -> Case:
    """A query that fits."""
    while True:
        case = _case(rng)
        if not any(obstacles(case.pattern)):
            return case


def _case(rng: random.Random) -> Case:
    partition = rng.choice(["", "", "", "k", "k", "kj"])
    names = "ABCDE"[: rng.randrange(1, 6)]
    places = [*names, *rng.choices(names, k=rng.choice([0, 0, 1, 2]))][:5]
    rng.shuffle(places)
    names = "".join(sorted(set(places)))
    gpms = {name: _asks(rng, partition) for name in names}
    bound: list[str] = []
    first = {name: places.index(name) for name in names}
    for name in sorted(names, key=lambda name: first[name]):
        asks = gpms[name]
        mine = [o for o in (*asks.objects.values(), *asks.maybe.values()) if isinstance(o, str)]
        bound += [o for o in mine if o not in bound]
        gpms[name] = Asks(asks.objects, asks.maybe, _filter(rng, bound, 0.3))
    where = _filter(rng, bound, 0.15)
    seq = " , ".join(places)
    if len(places) > 2 and rng.random() < 0.1:
        seq = f"{places[0]} , ({' , '.join(places[1:])})"
    defined = "\n".join(f"DEFINE GPM {name} ON S {{ {gpms[name]} }}" for name in names)
    by = f"PARTITION BY {' '.join(f'?{name}' for name in partition)}" if partition else ""
    text = (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS {by}\n"
        f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq})\n{defined}\n{where} }}"
        f"{rng.choice(['', '', ' EMIT NEXT', ' EMIT LAST', ' EMIT MAX'])}"
    )
    return Case(text, normalise(parse(text)), gpms)


def _asks(rng: random.Random, partition: str) -> Asks:
    objects: dict[str, str | Term] = {}
    for predicate in rng.choice(["p", "p", "p", "pq", "q"]):
        objects[predicate] = rng.choice("xyz") if rng.random() < 0.75 else rng.choice(PLACES)
    # Sometimes two GPMs ask the same, and give the key to another variable.
    keys = "jk" if len(partition) == 2 and rng.random() < 0.3 else "kj"
    objects.update({predicate: key for predicate, key in zip(keys, "kj", strict=True) if key in partition})
    return Asks(objects, {"r": "w"} if rng.random() < 0.15 else {})


def _filter(rng: random.Random, bound: list[str], likely: float) -> str:
    if len(bound) < 2 or rng.random() > likely:
        return ""
    pairs = [rng.sample(bound, 2) for _ in range(rng.choice([1, 1, 2]))]
    return f"FILTER({' && '.join(f'?{x} != ?{y}' for x, y in pairs)})"


@dataclass(frozen=True)
class Stream:
    """A window and the events of a stream."""

    dictionary: Dictionary
    window: StreamWindow
    events: tuple[Occurrence, ...]


def random_stream(rng: random.Random, case: Case, size: int) -> Stream:
    """A stream with ties; sometimes with events of several solutions, of odd terms, of several keys."""
    dictionary = Dictionary()
    terms = ODD if rng.random() < 0.25 else PLACES[: rng.choice([1, 2, 2, 3])]
    several = rng.choice([0, 0, 0.1, 0.5])
    missing = rng.choice([0, 0.1, 0.4])
    time, events = 0, []
    keys = PLACES[: rng.choice([1, 2])]
    for position in range(rng.randrange(size // 2, size + 1)):
        time += rng.choice([0, 1, 1, 2])
        facts = {}
        for predicate in "pqrjk":
            count = 0 if rng.random() < missing else 2 if rng.random() < several else 1
            facts[predicate] = tuple(rng.choices(keys if predicate in "jk" else terms, k=count))
        found = {name: asks.solutions(facts, dictionary.intern) for name, asks in case.gpms.items()}
        solutions = {name: rows for name, rows in found.items() if rows}
        events.append(Occurrence(Stamp(time, 1, position), position, solutions))
    window = StreamWindow(rng.randrange(1, 16), rng.random() < 0.4, rng.random() < 0.6, 0)
    return Stream(dictionary, window, tuple(events))


def by_parameterized(case: Case, stream: Stream, sizes: Iterable[int]) -> list[object]:
    """In batches of these sizes."""
    context = Context(case.pattern, stream.dictionary, lambda *_: False)
    matcher = KmpMatcher(case.pattern, stream.dictionary, context, stream.window)
    found = []
    for batch in batches(stream.events, stream.dictionary, sizes):
        found += shown(singly(matcher.process(*batch)))
    return found + shown(matcher.close())


def by_reference(case: Case, stream: Stream) -> list[object]:
    """Event by event."""
    context = Context(case.pattern, stream.dictionary, lambda *_: False)
    return by_matcher(case, stream, lambda: Reference(case.pattern, context, stream.window))


def by_matcher(case: Case, stream: Stream, make: Callable[[], PartitionMatcher]) -> list[object]:
    """By a matcher for each partition."""
    texts = Context(case.pattern, stream.dictionary, lambda *_: False).texts
    matcher = Matcher(case.pattern, stream.window, make, texts=texts)
    return [match for event in stream.events for match in shown(matcher.push(event))]
