"""An event that comes alone and concerns one query is a few numbers up to the kernel: nobody can tell."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine import core
from spaseq.engine.pipelines import stream_set
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stream_set import StreamSet
from spaseq.matching.columns import history
from spaseq.matching.columns.alone._kernel_alone import LARGE
from spaseq.matching.columns.alone.singles import Singles
from spaseq.matching.columns.alone.taking import Joins, Taking
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.lazy import matches as by_lazy
from spaseq.matching.nfa import matches as by_kernel
from spaseq.matching.tecs import reading
from spaseq.why.sample import Sample
from tests.conftest import examples
from tests.streams import events_of

STREAM = "http://example.org/s"
OTHER = "http://example.org/t"
KINDS = "abcd"

_GRAPHS = ("urn:kb", "urn:other")
#: What background graphs are asked: one, two, the same thing of one twice, and one for what it has.
_KNOWN = [
    "GRAPH <urn:kb> { ?x <urn:of> ?w }",
    "GRAPH <urn:kb> { ?x <urn:of> ?w } GRAPH <urn:other> { ?w <urn:of> ?v }",
    "GRAPH <urn:kb> { ?x <urn:of> ?w . ?b <urn:of> ?w } FILTER(?b > ?a)",
    "GRAPH ?g { ?x <urn:of> [] }",
    "GRAPH <urn:kb> { ?x <urn:of> ?w } FILTER(?w > 2)",
    "GRAPH <urn:kb> { ?x <urn:of> ?w } FILTER(?b > ?w && ?w != 1)",
]
#: What filters ask of an event alone: of numbers, of other terms, and what no number decides.
_TESTED = [
    "FILTER(?b > 3)",
    "FILTER(2.5 <= ?b)",
    "FILTER(?b != 2 && ?b < 5)",
    "FILTER(?b = ?b)",
    "FILTER(?x = <urn:x>)",
    "FILTER(?x != ?b) FILTER(?b >= 1)",
    'FILTER(?b < "b")',
    'FILTER(?b = "a")',
    "FILTER(?b > 9007199254740992)",
    "FILTER(?b <= 1e0)",
    "FILTER(?b < 2 || ?b > 4)",
    "FILTER(?nothing > 1)",
    "FILTER(?b * 2 != 5 && (?b < 4 || ?x = <urn:y>))",
    "FILTER(?b IN (1, 2.5, <urn:x>)) FILTER(!(?x = ?b))",
    "FILTER(?b IN (1, 2.5) || isBlank(?b))",
]
#: What is more than a join of triples, and filters of numbers.
_MORE = [
    "OPTIONAL { ?x <urn:w> ?w }",
    "OPTIONAL { ?x <urn:w> ?w FILTER(?w > ?b) } FILTER(!BOUND(?w) || ?w > 1)",
    "BIND(?b + 1 AS ?w)",
    "OPTIONAL { ?x <urn:w> ?w } BIND(COALESCE(?w, 'none') AS ?v)",
    "{ ?x <urn:w> ?w } UNION { ?x <urn:a> ?v }",
    "MINUS { ?x <urn:w> ?b }",
    "VALUES ?b { 1 2 3 <urn:x> }",
    "FILTER NOT EXISTS { ?x <urn:w> ?b }",
    "FILTER(STR(?x) != 'urn:x')",
    "?x <urn:w>|<urn:d> ?w",
    "?x <urn:w>+ ?w",
    "?x <urn:w>* ?w",
    "?w <urn:a>/<urn:w>? ?b",
    "?x !(<urn:w>|^<urn:d>) ?w",
    "GRAPH <urn:kb> { ?x <urn:of>* ?w }",
    "GRAPH <urn:kb> { ?x <urn:of> ?w } OPTIONAL { ?x <urn:w> ?v }",
]


#: What queries of a template ask of A besides, with a constant each.
_HOLES = [
    "FILTER(?a > §)",
    "FILTER(?x = §)",
    "FILTER(?a = §)",
    "FILTER(?a + § != 3)",
    "FILTER(§ <= ?a && ?x != §)",
    "§ <urn:w> ?w2",
    "OPTIONAL { ?x <urn:w> ?w2 } FILTER(?a > §)",
]
_CONSTANTS = ["0", "1", "2", "2.5", "<urn:x>", "<urn:x>", "<urn:y>"]


def _triples(rng: random.Random) -> list[ox.Triple]:
    """What a background graph knows; much of one thing, perhaps."""
    nodes = [ox.NamedNode("urn:x"), ox.NamedNode("urn:y")]
    terms: list[ox.NamedNode | ox.Literal] = [*nodes, *(ox.Literal(number) for number in range(6))]
    most = 40 if rng.random() < 0.1 else 1
    return [
        ox.Triple(rng.choice(nodes), ox.NamedNode("urn:of"), term)
        for term in [*rng.sample(terms, rng.randint(0, 6)), *map(ox.Literal, range(most))]
    ]


#: By ``nfa``, ``tecs``, ``lazy``, and others: ``,`` alone is for ``kmp``.
_SEQUENCES = [
    *("A ; B", "A ; B+ , C", "A ; !C ; B", "A"),
    *("A : B", "A : B+[:] : C", "A : (B | C)", "A : A2"),
    *("ALL(A, B)", "A : B : C"),
    *("A , B", "A , B , C", "A , B , A2", "A ; B , C", "A ; B? , C"),
    *("A ; !C", "A ; B?", "A , !B", "A ; B ; !C"),
]


def _text(rng: random.Random, *, skips_over_two: bool = False) -> str:
    first, second = rng.sample(KINDS, 2)
    sequence = rng.choice(_SEQUENCES)
    window = rng.choice(["9 SECONDS SLIDING", "9 SECONDS SLIDING", "7 EVENTS", "5 SECONDS TUMBLING"])
    further = rng.choice(["", "FILTER(?b > ?a)", "FILTER(?b != ?a)", *_KNOWN, *_TESTED, *_MORE])
    # Of one stream, mostly; of two, GPMs are of one of them, or of both.
    is_one = rng.random() < 0.6 and not skips_over_two
    on = ["S"] * 3 if is_one else [rng.choice(["S", "T", "S, T"]) for _ in range(3)]
    streams = rng.choice([STREAM, STREAM, OTHER]) if is_one else STREAM
    gpms = {
        "A": f"DEFINE GPM A ON {on[0]} {{ ?x <urn:{first}> ?a }}",
        "B": f"DEFINE GPM B ON {on[1]} {{ ?x <urn:{second}> ?b . {further if 'B' in sequence else ''} }}",
        "C": f"DEFINE GPM C ON {on[2]} {{ ?x <urn:{first}> ?c }}",
        "A2": f"DEFINE GPM A2 ON {on[1]} {{ ?x <urn:{first}> ?a2 }}",
    }
    by = rng.choice(["", "PARTITION BY ?x"])
    used = " ".join(gpm for name, gpm in gpms.items() if name in sequence)
    read = f"FROM STREAM S <{streams}>" + ("" if is_one else f" FROM STREAM T <{OTHER}>")
    skips = ["PAST LAST EVENT", "TO NEXT EVENT", "TO LAST B" if "B" in sequence else "TO FIRST A"]
    skip = f"AFTER MATCH SKIP {rng.choice(skips)}" if skips_over_two or rng.random() < 0.2 else ""
    return f"SELECT * WITHIN {window} {by} {read} WHERE {{ SEQ({sequence}) {used} }} {skip}"


def _graph(rng: random.Random) -> str | list[ox.Triple]:
    if rng.random() < 0.05:
        return "no graph"
    count = rng.choice([0, 1, 1, 1, 2, 2, 3, 20])
    subjects, objects = ["<urn:x>", "<urn:y>", "_:b"], [*range(6), "2.5", "<urn:x>", "_:b"]
    if rng.random() < 0.3:
        objects += ['"a"', '"b"', "1e0", "3.0", "9007199254740993", '"x"@en', "true", '"7"^^<urn:t>']
    triples = [
        f"{rng.choice(subjects)} <urn:{rng.choice(KINDS + 'w')}> {rng.choice(objects)} ."
        for _ in range(count)
    ]
    text = "\n".join(triples)
    if rng.random() < 0.5:
        return text
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.TURTLE)]


def _shown(match: spaseq.Match) -> tuple[object, ...]:
    # Blank nodes have other names in each engine.
    rows = sorted(
        sorted((name, "" if isinstance(term, rdflib.BNode) else str(term)) for name, term in row.items())
        for row in match.bindings
    )
    return match.start, match.end, events_of(match), rows


class _Told:
    """An engine whose callbacks raise and push as numbers that are drawn say, and all that is told."""

    def __init__(self) -> None:
        self.engine = spaseq.Engine(kb=dict.fromkeys(_GRAPHS, "<urn:x> <urn:of> 1, <urn:y> ."))
        self.handles: list[spaseq.Handle] = []
        self.log: list[Any] = []
        # Matches that nobody looks at before the end.
        self.kept: list[spaseq.Match] = []
        self.rng = random.Random(0)

    def register(self, text: str) -> None:
        self.handles.append(self.engine.register(text, partial(self._match, len(self.handles))))

    def _match(self, query: int, match: spaseq.Match) -> None:
        shown = () if self.rng.random() < 0.2 else _shown(match)
        if not shown:
            self.kept.append(match)
        self.log.append((query, shown))
        # Those that were found with it may be counted, too.
        assert self.handles[query].stats.matches >= sum(told[0] == query for told in self.log)
        # Where each match pushes an event that completes several, a script would never end.
        if self.rng.random() < 0.1 and len(self.log) < 1_000:
            self.engine.push(STREAM, f"<urn:x> <urn:{self.rng.choice(KINDS)}> 1 .", match.end)
        if self.rng.random() < 0.1:
            raise ValueError(str(match.end))

    def do(self, what: str, *given: Any) -> None:
        try:
            if what == "register":
                self.register(*given)
            elif what == "cancel":
                for handle in self.handles[given[0] % 3 :][:1]:
                    handle.cancel()
            else:
                getattr(self.engine, what)(*given)
                if what == "advance":
                    self.log.append((what, *given))  # what waits for that has come by then
        except (ValueError, spaseq.SpaseqError) as error:
            self.log.append(repr(error))

    def end(self) -> tuple[object, ...]:
        self.do("close")
        engine = self.engine
        return (
            self.log,
            list(map(_shown, self.kept)),
            [asdict(handle.stats) | {"limit": None} for handle in self.handles],
            engine.arrived,
            engine.late,
            engine.bad,
        )


def _script(rng: random.Random) -> Iterator[tuple[Any, ...]]:
    for _ in range(rng.randint(1, 3)):
        text, hole = _text(rng), rng.choice(["", *_HOLES])
        for _ in range(
            rng.choice([1, 1, 1, 2, 3, 3, 5, 40])
        ):  # equal ones run as one, and those of a template
            constant = rng.choice(_CONSTANTS)
            yield "register", text.replace("?a }", f"?a . {hole.replace('§', constant)} }}")
    time = 0
    for _ in range(rng.randint(10, 60)):
        time += rng.choice([0, 1, 1, 2, 3])
        at = time - 5 if rng.random() < 0.03 else time
        named = ["urn:g"] if rng.random() < 0.1 else []
        yield "push", rng.choice([STREAM, STREAM, OTHER]), _graph(rng), at, *named
        if rng.random() < 0.04:
            time += rng.choice([0, 0, 4, 9])
            yield "advance", time
        if rng.random() < 0.04:
            yield "register", _text(rng)
        if rng.random() < 0.05:
            yield "change", rng.choice(_GRAPHS), None if rng.random() < 0.1 else _triples(rng)
        if rng.random() < 0.02:
            yield "cancel", rng.randrange(9)


def _answer(
    seed: int,
    *,
    by_dicts: bool = False,
    by_columns: bool = False,
    is_ordered: bool = False,
) -> tuple[object, ...]:
    """Return everything that a script's engine delivers and counts.

    ``by_dicts``: single events are joined in Python; ``by_columns``: each is processed as a batch, like a
    large event; ``is_ordered``: each goes through the reordering, as if it waited for other events.
    """
    told, rng = _Told(), random.Random(seed)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        patch.setattr(core, "_SWEEP_AFTER", 5)
        patch.setattr(stream_set, "Sample", partial(Sample, 1, 1))
        if by_dicts:
            patch.setattr(Joins, "take", lambda *_: LARGE)
        if by_columns:
            patch.setattr(Taking, "take", lambda *_, **__: None)
        if is_ordered:
            patch.setattr(Dispatcher, "_next", lambda *_: None)
            patch.setattr(Pipeline, "heeds", lambda *_: True)
        for what in _script(rng):
            told.do(*what)
        return told.end()


@settings(max_examples=examples(150))
@given(st.integers(0, 2**64 - 1))
@pytest.mark.slow
def test_nobody_can_tell(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            # Many matches at once, of many events, are rare here.
            for module in (reading, by_kernel, by_lazy):
                patch.setattr(module, "FEW", seed % 3)
            patch.setattr(history, "_WORTH", 5)
        answer = _answer(seed)
    assert answer == _answer(seed, by_dicts=True)
    assert answer == _answer(seed, by_columns=True)
    assert answer == _answer(seed, is_ordered=True)


@settings(max_examples=examples(40))
@given(st.integers(0, 2**64 - 1))
@pytest.mark.slow
def test_nobody_can_tell_who_is_held(seed: int) -> None:
    """With SKIP, events of the same time wait for those of streams before theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "_text", partial(_text, skips_over_two=True))
        patch.setattr(history, "_WORTH", 5)
        answer = _answer(seed)
        assert answer == _answer(seed, by_columns=True)
        assert answer == _answer(seed, is_ordered=True)


@pytest.mark.slow
def test_many_are_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, next_of = Counter[bool](), Dispatcher._next

    def counted(*given: Any) -> Sequence[StreamSet] | None:
        readers = next_of(*given)
        ways[readers is not None] += 1
        return readers

    monkeypatch.setattr(Dispatcher, "_next", counted)
    for seed in range(20):
        _answer(seed)
    assert ways[True] > 100


@pytest.mark.parametrize("kinds", [2, 40])
def test_those_that_concern_a_query_are_kept_by_the_hundred(
    kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if there are many others between them: one batch each took three times as long."""
    rng, batches, take = random.Random(1), 0, Singles.take

    def counted(singles: Singles) -> tuple[SolvedBatch, int]:
        nonlocal batches
        batches += 1
        return take(singles)

    monkeypatch.setattr(Singles, "take", counted)
    monkeypatch.setattr(stream_set, "Sample", partial(Sample, 1, 1))
    engine = spaseq.Engine()
    text = f"""SELECT * WITHIN 900 SECONDS
        FROM STREAM S <{STREAM}> FROM STREAM T <{OTHER}>
        WHERE {{ SEQ(A ; B)
          DEFINE GPM A ON S {{ ?x <urn:k0> ?a }} DEFINE GPM B ON T {{ ?x <urn:k1> ?a }} }}"""
    handle = engine.register(text, lambda _: None)
    concerned = 0
    for time in range(60 * kinds):
        kind, stream = rng.randrange(kinds), rng.choice([STREAM, OTHER])
        concerned += (kind, stream) in ((0, STREAM), (1, OTHER))
        engine.push(stream, f"<urn:x> <urn:k{kind}> {time} .", time)
    assert batches < concerned / 10 < 10
    assert handle.stats.relevant == concerned


@pytest.mark.parametrize("sequence", ["A ; B", "A : B", "ALL(A, B)"])
@pytest.mark.few(1)
def test_a_kept_match_keeps_the_terms_of_its_events(sequence: str) -> None:
    engine, kept = spaseq.Engine(), []

    def keep(match: spaseq.Match) -> None:
        # One whose events are in a batch of many keeps them all.
        if isinstance(match.end, int) and match.end % 70 == 1:
            kept.append(match)

    handle = engine.register(
        f"""SELECT * WITHIN 3 SECONDS SLIDING FROM STREAM S <{STREAM}> WHERE {{ SEQ({sequence})
        DEFINE GPM A ON S {{ ?x <urn:a> ?a }} DEFINE GPM B ON S {{ ?y <urn:b> ?b }} }}""",
        keep,
    )
    handle.keep(0)
    for at in range(0, 20_000, 10):
        engine.push(STREAM, f"<urn:x{at}> <urn:a> {at} .", at)
        engine.push(STREAM, f"<urn:y{at}> <urn:b> {at + 1} .", at + 1)
    engine._dictionary.sweep()
    begun = range(0, 20_000, 70)
    assert [int(row["b"]) for match in kept for row in match.bindings] == [at + 1 for at in begun]
    graphs = [event.triples() for match in kept for event in match.events["A"]]
    assert [str(s) for graph in graphs for s in graph.subjects()] == [f"urn:x{at}" for at in begun]
