"""Terms of events that are gone are forgotten, and nothing that is still needed is."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine import core
from spaseq.engine.core import Core
from spaseq.language import checked
from spaseq.matching.nfa import matcher as kernel
from spaseq.matching.nfa import sizing
from spaseq.matching.nfa.memory import memory as make_memory
from spaseq.terms.values import RDF_TYPE, XSD
from tests.streams import NS, letters, query

_DECIMAL = ox.NamedNode(XSD + "decimal")

KB = {NS + "kb": f"<{NS}x> <{NS}big> true . <{NS}y> <{NS}big> false ."}

#: GPM bodies whose solutions have terms that no event has, in every way in which they come about.
COMPUTING = {
    "bind": "BIND(?bv * 1000 + 7 AS ?n)",
    "values": "VALUES (?bv ?n) { (2 'two') (5 'five') (8 'eight') }",
    "subquery": "{ SELECT (MAX(?o) + 0.5 AS ?n) { ?s :v ?o } }",
    "plain subquery": "{ SELECT (?o + 0.25 AS ?n) { ?s :v ?o } }",
    "knowledge": "?b :k ?k GRAPH :kb { ?k :big ?n }",
    "path": "?b (:v|:k)* ?n",
    "constant": "FILTER(?bv > 2 && ?bv != 5.5) BIND('c' AS ?n)",
    "optional": "OPTIONAL { ?b :w ?w } BIND(COALESCE(?w, STR(?b)) AS ?n)",
}

EVENTS = " ".join(f"a{i}/x b{i + 1}/y c{i + 2}/x" for i in range(1, 31, 3))


def answers(text: str, matcher: str) -> list[object]:
    """What a query finds, its matches held until the end."""
    engine = spaseq.Engine(kb=KB, matcher=matcher)
    handle = engine.register(checked(text))
    for letter in letters(EVENTS):
        engine.push(NS + "S", letter.turtle, letter.time, name=f"{NS}{letter.name}")
    engine.close()
    return [
        (match.start, match.end, sorted(map(str, row.items())), [len(e.triples()) for e in match.events["B"]])
        for match in list(handle.matches())
        for row in match.bindings
    ]


@pytest.mark.parametrize("matcher", ["interpreter", "reference"])
@pytest.mark.parametrize("body", COMPUTING.values(), ids=COMPUTING)
@pytest.mark.few(1, ci=4)
def test_nothing_needed_is_forgotten(body: str, matcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = query("A ; B+ ; C", "20 SECONDS", {"B": body}, where="FILTER(BOUND(?n))").replace(
        "GPM A ON S", "GPM A ON S AT ?at AS ?graph"
    )
    expected = answers(text, matcher)
    assert expected
    monkeypatch.setattr(Core, "forget", lambda self: self.dictionary.sweep())
    assert answers(text, matcher) == expected


@pytest.mark.parametrize("kleene", ["B+", "B+[,]", "B"])
@pytest.mark.parametrize("body", COMPUTING.values(), ids=COMPUTING)
@pytest.mark.few(1, ci=6)
def test_nothing_that_the_kernel_needs_is_forgotten(
    body: str, kleene: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its matches are read long after their batches, and those of all runs, are gone."""
    text = query(f"A ; {kleene} ; C", "6 SECONDS SLIDING", {"B": body})
    text = text.replace("GPM A ON S", "GPM A ON S AT ?at AS ?graph")
    expected = answers(text, "reference")
    assert expected
    monkeypatch.setattr(Core, "forget", lambda self: self.dictionary.sweep())
    assert answers(text, "nfa") == expected


@pytest.mark.slow
@pytest.mark.parametrize("form", ["triples", "text"])
@pytest.mark.parametrize("is_called", [True, False], ids=["callback", "unread"])
def test_events_leave_the_garbage_collector_no_objects(form: str, is_called: bool) -> None:
    """Each has a subject and a value of its own: objects for them would have it look at the whole process."""
    engine, found = spaseq.Engine(), list[object]()
    text = query("A ; B", "10 SECONDS SLIDING", {"B": "FILTER(?bv < ?av)"})
    engine.register(text, (lambda match: found.append(match.end)) if is_called else None)

    def push(begin: int, end: int) -> int:
        for i in range(begin, end):
            kind, value = f"{NS}{'ab'[i % 2]}", f"{i * 7919 % 10_007}.5"
            if form == "text":
                graph: str | list[ox.Triple] = (
                    f"<urn:{i}> <{RDF_TYPE.value}> <{kind}> . <urn:{i}> <{NS}v> {value} ."
                )
            else:
                subject, number = ox.NamedNode(f"urn:{i}"), ox.Literal(value, datatype=_DECIMAL)
                graph = [
                    ox.Triple(subject, RDF_TYPE, ox.NamedNode(kind)),
                    ox.Triple(subject, ox.NamedNode(NS + "v"), number),
                ]
            engine.push(NS + "S", graph, i)
        gc.collect()
        return len(gc.get_objects())

    before = push(0, 5_000)
    assert push(5_000, 9_000) - before < 400
    assert bool(found) == is_called


@pytest.mark.slow
def test_memory_is_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event has terms of its own: after ten times as many, there are no more of them."""
    monkeypatch.setattr(core, "_SWEEP_AFTER", 500)
    engine = spaseq.Engine()
    handle = engine.register(query("A ; B", "10 SECONDS SLIDING"))
    sizes = []
    for i in range(12_000):
        kind = "ab"[i % 2]
        engine.push(NS + "S", f"<urn:{i}> a <{NS}{kind}> ; <{NS}v> {i} .", i, name=f"urn:g{i}")
        if i % 7 == 0:
            assert all(len(match.events["A"][0].triples()) == 2 for match in handle.matches())
        sizes.append(len(engine._dictionary))
    # The first 2,000 events are kept, to say why there is no match.
    assert max(sizes[6_000:]) <= 1.05 * max(sizes[:6_000])


#: Pages that were asked for, each time that some 18 MiB are written and given back.
_PAGES = """
import resource
import numpy as np, spaseq
spaseq.Engine()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(3 << 17) for _ in range(6)]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    del arrays
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="what is freed is given back as another libc does"
)
@pytest.mark.slow
def test_what_is_freed_stays_for_what_comes_next() -> None:
    """Each array is less than what is mapped huge pages for, and more than what glibc keeps by itself."""
    told = subprocess.run([sys.executable, "-c", _PAGES], capture_output=True, text=True, check=True)
    _, *later = map(int, told.stdout.split())
    assert max(later) < 1_000  # of 4,600


@pytest.mark.parametrize("events", [300, 3_000])
def test_the_memory_of_a_kernel_is_made_once(events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has room for what begins in the first batch; to make one is to write to all of it."""
    made: list[object] = []

    def counted(*given: object) -> object:
        made.append(given)
        return make_memory(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sizing, "memory", counted)
    monkeypatch.setattr(kernel, "memory", counted)
    engine = spaseq.Engine(matcher="nfa")
    handle = engine.register(
        f"""SELECT * WITHIN 10 SECONDS SLIDING FROM STREAM S <{NS}S> WHERE {{ SEQ(A ; B)
        DEFINE GPM A ON S {{ ?a <urn:a> ?va }} DEFINE GPM B ON S {{ ?b <urn:b> ?vb }} }}"""
    )
    assert not made
    engine.push_many(NS + "S", [(f"<urn:x> <urn:{'ab'[i % 2]}> {i} .", i) for i in range(events)])
    assert len(list(handle.matches())) == events // 2
    assert len(made) == 1
