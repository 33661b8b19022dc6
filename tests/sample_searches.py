"""Plain searches for the matches of the use cases' queries, over their files.

One function a query, each written from the query's text and semantics.md by looping over records;
no code of spaseq takes part but the generator's writers of the files that are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from spaseq.results.event import Event
from spaseq.samples import SampleStream, UseCase, files

GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"


# --- events as plain records ------------------------------------------------------------------


@dataclass
class Record:
    """An event: its properties by local name, whatever node of the event has them."""

    graph: str
    stream: str
    n: int
    time: datetime
    values: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return self.values.get(name)

    def precedes(self, other: Record) -> bool:
        return self.time < other.time or (
            self.time == other.time and self.stream == other.stream and self.n < other.n
        )


def local(iri: str) -> str:
    return iri.replace("#", "/").rpartition("/")[2]


def python(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Any:
    if isinstance(term, ox.NamedNode):
        return local(term.value)
    if isinstance(term, ox.Literal) and term.datatype.value.endswith(("#integer", "#decimal")):
        return Decimal(term.value)
    return term.value if isinstance(term, ox.Literal) else None


def quads_of(stream: SampleStream, text: str) -> list[Any]:
    """The quads of a stream's file; a graph per subject for N-Triples, which have no graph names."""
    extension = stream.file.rpartition(".")[2]
    if extension == "messages":
        first, _, text = text.partition("\n")
        assert first == 'VERSION "1.2-messages"'
        text = text.replace("\nMESSAGE\n", "\n")
        extension = "trig"
    quads: list[Any] = list(ox.parse(text, format=ox.RdfFormat.from_extension(extension)))
    if extension == "nt":
        name = {q.subject: ox.NamedNode(q.subject.value.removesuffix("-notice")) for q in quads}
        quads = [
            ox.Quad(name[q.subject], q.predicate, q.object)
            if q.predicate.value == GENERATED_AT
            else ox.Quad(q.subject, q.predicate, q.object, name[q.subject])
            for q in quads
        ]
    return quads


def records(case: UseCase) -> dict[str, list[Record]]:
    """The events of each file, in order; the name is the last part of the stream's IRI."""
    written = files(case)
    found: dict[str, list[Record]] = {}
    for stream in case.streams:
        events: dict[str, Record] = {}
        quads = quads_of(stream, written[Path("streams", stream.file)])
        for quad in quads:
            if quad.predicate.value == GENERATED_AT:
                time = datetime.fromisoformat(quad.object.value).astimezone(UTC)
                events[quad.subject.value] = Record(quad.subject.value, stream.iri, len(events), time)
        for quad in quads:
            if quad.predicate.value != GENERATED_AT:
                key = local(quad.predicate.value)
                events[quad.graph_name.value].values[key] = python(quad.object)
        found[local(stream.iri)] = list(events.values())
    return found


class Knowledge:
    """The background graph: ``kb.all(subject, property)`` by local names."""

    def __init__(self, case: UseCase) -> None:
        self.facts: dict[tuple[str, str], list[Any]] = {}
        for quad in ox.parse(files(case)[Path("kb", f"{case.name}.ttl")], format=ox.RdfFormat.TURTLE):
            key = local(quad.subject.value), local(quad.predicate.value)
            self.facts.setdefault(key, []).append(python(quad.object))

    def all(self, subject: str, name: str) -> list[Any]:
        return self.facts.get((subject, name), [])

    def one(self, subject: str, name: str) -> Any:
        (value,) = self.all(subject, name)
        return value


def found(**gpms: Record | Iterable[Record | Event]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A match as its GPMs and the graph names of their events, in a form that can be compared."""
    lists: dict[str, Iterable[Record | Event]] = {
        gpm: [events] if isinstance(events, Record) else events for gpm, events in gpms.items()
    }
    return tuple((gpm, tuple(str(event.graph) for event in lists[gpm])) for gpm in sorted(lists))


def nexts(last: Record, events: Iterable[Record]) -> list[Record]:
    """The events after ``last`` that no other of them stands before: ``;`` for relevant events."""
    after = [e for e in events if last.precedes(e)]
    return [e for e in after if not any(g.precedes(e) for g in after)]


def chains(last: Record, events: list[Record]) -> Iterator[list[Record]]:
    """``X+`` after ``last``: every chain of next events."""
    for event in nexts(last, events):
        yield [event]
        yield from ([event, *rest] for rest in chains(event, events))


def by(events: Iterable[Record], key: str) -> list[list[Record]]:
    """The events that have the property, a list for each value (in the order of the input)."""
    groups: dict[Any, list[Record]] = {}
    for event in events:
        if (value := getattr(event, key)) is not None:
            groups.setdefault(value, []).append(event)
    return list(groups.values())


# --- a plain search for each query ------------------------------------------------------------


def smart_grid(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    hour = timedelta(hours=1)
    for a in streams["power"]:
        if a.price <= Decimal("0.30"):
            continue
        station = kb.one(a.house, "nearestStation")
        weather = [w for w in streams["weather"] if w.madeBySensor == station]
        sunny = [w for w in weather if w.numericValue >= 450]
        power = [p for p in streams["power"] if p.house == a.house]
        states = [s for s in streams["storage"] if s.house == a.house]
        reach = [w for w in sunny if w.time - a.time <= hour]
        for b in chains(a, reach):
            for c in states:
                if b[-1].precedes(c) and c.time - a.time <= hour and c.price < a.price:
                    partition = (*weather, *power, *states)
                    if not any(b[-1].precedes(g) and g.precedes(c) for g in partition):
                        yield found(A=a, B=b, C=c)


def smart_grid_advice(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    assert kb.facts
    start = streams["power"][0].time
    for p in streams["power"]:
        for s in streams["storage"]:
            if not (p.time == s.time and p.house == s.house and p.demand >= 4000 and s.charge >= 90):
                continue
            for q in nexts(p, [x for x in streams["power"] if x.house == p.house and x.demand >= 4000]):
                between = (d for d in streams["storage"] if d.house == p.house and d.discharge > 0)
                blocked = any(p.precedes(d) and s.precedes(d) and d.precedes(q) for d in between)
                if not blocked and window(p, start, hours=1) == window(q, start, hours=1):
                    yield found(P=p, S=s, Q=q)


def window(event: Record, start: datetime, **size: float) -> int:
    return (event.time - start) // timedelta(**size)


def trajectories(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    for reports in by(streams["positions"], "vessel"):

        def leaves(r: Record) -> bool:
            return r.place is not None and "Harbour" in kb.all(r.place, "type") and r.speed > 3

        def stops(r: Record) -> bool:
            return r.place is not None and "FishingArea" in kb.all(r.place, "type") and r.speed < 1

        part = reports
        for i, j in combinations(range(len(part)), 2):
            a, b, c = part[i], part[i + 1 : j], part[j]
            if (
                leaves(a)
                and stops(c)
                and b
                and c.time - a.time <= timedelta(hours=6)
                and all(r.speed >= 6 for r in b)
                and all(abs(q.course - p.course) <= 10 for p, q in pairwise(b))
                and all(abs(q.speed - p.speed) <= 2 for p, q in pairwise(b))
            ):
                yield found(A=a, B=b, C=c)


def trajectories_overdue(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    for reports in by(streams["positions"], "vessel"):
        for a in reports:
            if a.place and "Harbour" in kb.all(a.place, "type") and a.speed > 3:
                within = [r for r in reports if a.precedes(r) and r.time - a.time <= timedelta(hours=4)]
                if not any(r.place and r.speed < 1 for r in within):
                    yield found(A=a)


def card_fraud(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    assert kb.facts
    for payments in by(streams["payments"], "card"):
        amounts = [p for p in payments if p.price is not None]
        for b in amounts:
            if b.price < 300:
                continue
            near = [p for p in amounts if p.precedes(b) and b.time - p.time <= timedelta(hours=1)]
            small = [p for p in near if p.price <= 5]
            runs = [
                set(range(i, j))
                for i in range(len(small))
                for j in range(i + 3, len(small) + 1)
                if b.price >= 100 * max(p.price for p in small[i:j])
                and not any(  # a large payment before b would have been the next one
                    small[j - 1].precedes(g)
                    and g.precedes(b)
                    and g.price >= max(300, *(100 * p.price for p in small[i:j]))
                    for g in near
                )
            ]
            for run in runs:
                if not any(run < other for other in runs):
                    yield found(A=[small[i] for i in sorted(run)], B=b)


def card_fraud_travel(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    def place(payment: Record) -> tuple[Any, Decimal, Decimal]:
        city = kb.one(payment.terminal, "city")
        return kb.one(city, "addressCountry"), kb.one(city, "lat"), kb.one(city, "long")

    for payments in by(streams["payments"], "card"):
        present = [p for p in payments if p.channel == "Present"]
        for a, b in pairwise(present):
            one, two = place(a), place(b)
            apart = (two[1] - one[1]) ** 2 + (two[2] - one[2]) ** 2
            if b.time - a.time <= timedelta(hours=2) and one[0] != two[0] and apart > 400:
                yield found(A=a, B=b)


def card_fraud_stolen(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    start = streams["payments"][0].time

    def abroad(p: Record) -> bool:
        return bool(kb.one(kb.one(p.terminal, "city"), "addressCountry") != kb.one(p.card, "country"))

    for payments in by(streams["payments"], "card"):
        for r in (p for p in payments if p.type == "TheftReport"):
            suspect = [p for p in payments if p.type == "Payment" and (p.price >= 200 or abroad(p))]
            for p in nexts(r, suspect):
                if window(p, start, days=1) == window(r, start, days=1):
                    if p.price >= 200:
                        yield found(R=r, L=p)
                    if abroad(p):
                        yield found(R=r, X=p)


def stocks(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    assert kb.facts
    for trades in by(streams["trades"], "company"):
        for i in range(len(trades)):
            j = i + 1
            while j < len(trades) and trades[j].price < trades[j - 1].price:
                j += 1
            # b is trades[i + 1 : j]; a shorter one would be followed by a lower price, not a higher.
            k = j
            while k < len(trades) and j > i + 1 and trades[k].price > trades[k - 1].price:
                k += 1
                a, b, c = trades[i], trades[i + 1 : j], trades[j:k]
                if b[-1].price <= Decimal("0.97") * a.price <= Decimal("0.97") * c[-1].price and c[
                    -1
                ].time - a.time <= timedelta(minutes=5):
                    yield found(A=a, B=b, C=c)


def stocks_head_and_shoulders(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    assert kb.facts
    steps: list[Callable[[dict[str, Decimal], Decimal], bool]] = [
        lambda m, p: p > Decimal("1.03") * m["A"],
        lambda m, p: p < Decimal("0.98") * m["B"],
        lambda m, p: p > Decimal("1.04") * m["B"],
        lambda m, p: p < Decimal("0.96") * m["D"],
        lambda m, p: p > Decimal("1.01") * m["E"],
        lambda m, p: p < Decimal("0.99") * m["E"],
    ]
    for trades in by(streams["trades"], "company"):
        for a in (t for t in trades if t.volume >= 10_000):
            match = {"A": a}
            for name, step in zip("BCDEFG", steps, strict=True):
                prices = {gpm: t.price for gpm, t in match.items()}
                last = list(match.values())[-1]
                following = nexts(last, (t for t in trades if step(prices, t.price)))
                if not following:
                    break
                (match[name],) = following
            else:
                f, g, head = match["F"], match["G"], match["D"].price
                higher = (t for t in trades if f.precedes(t) and t.precedes(g) and t.price > head)
                if not any(higher) and g.time - a.time <= timedelta(minutes=20):
                    yield found(**match)


def stocks_sector(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    start = streams["trades"][0].time
    for a, b in combinations([t for t in streams["trades"] if t.change < -1], 2):
        same = kb.one(a.company, "sector") == kb.one(b.company, "sector")
        if same and a.company != b.company and window(a, start, minutes=10) == window(b, start, minutes=10):
            yield found(A=a, B=b)


def traffic(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    slow = [r for r in (*streams["north"], *streams["south"]) if r.speed < 15]
    for a in slow:
        upstream = [
            r
            for r in slow
            if a.segment in kb.all(r.segment, "flowsInto") and r.time - a.time <= timedelta(minutes=10)
        ]
        for b in chains(a, upstream):
            yield found(A=a, B=b)


def traffic_unexplained(streams: dict[str, list[Record]], kb: Knowledge) -> Iterator[Any]:
    assert kb.facts
    start = streams["north"][0].time
    for reports in by((*streams["north"], *streams["south"]), "segment"):
        for a in reports:
            for b in nexts(a, (r for r in reports if r.speed < a.speed < 15)):
                incidents = (i for i in streams["incidents"] if i.segment == a.segment)
                explained = any(a.precedes(i) and i.precedes(b) for i in incidents)
                if not explained and window(a, start, minutes=30) == window(b, start, minutes=30):
                    yield found(A=a, B=b)


SEARCHES: dict[str, Callable[[dict[str, list[Record]], Knowledge], Iterator[Any]]] = {
    "card-fraud": card_fraud,
    "card-fraud-stolen": card_fraud_stolen,
    "card-fraud-travel": card_fraud_travel,
    "smart-grid": smart_grid,
    "smart-grid-advice": smart_grid_advice,
    "stocks": stocks,
    "stocks-head-and-shoulders": stocks_head_and_shoulders,
    "stocks-sector": stocks_sector,
    "traffic": traffic,
    "traffic-unexplained": traffic_unexplained,
    "trajectories": trajectories,
    "trajectories-overdue": trajectories_overdue,
}
