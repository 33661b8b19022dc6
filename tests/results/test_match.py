"""Matches as values, made when they are looked at."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Iterator

import pytest
from rdflib.term import Literal, URIRef

import spaseq
from spaseq.results.batch import Match
from spaseq.results.event import TermView
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.interop import from_rdflib, to_rdflib
from tests.results.making import EX, match, query, select
from tests.streams import NS, letters
from tests.streams import query as letter_query

TEXT = letter_query("A ; B+ ; C", "6 SECONDS SLIDING")
EVENTS = " ".join(f"a{i} b{i + 1} b{i + 2} c{i + 3}" for i in range(1, 60, 4))


@pytest.fixture(params=["nfa", "interpreter", "reference"])
def found(request: pytest.FixtureRequest) -> list[Match]:
    engine = spaseq.Engine(matcher=request.param)
    return list(matches(engine, engine.register(TEXT), EVENTS))


def matches(engine: spaseq.Engine, handle: spaseq.Handle, text: str) -> Iterator[Match]:
    for letter in letters(text):
        engine.push(NS + "S", letter.turtle, letter.time, name=f"{NS}{letter.name}")
        yield from handle.matches()


def test_what_is_read_is_what_was_found(found: list[Match]) -> None:
    assert [(m.start, m.end) for m in found[:2]] == [(1, 4), (1, 4)]
    assert [[e.time for e in m.events["B"]] for m in found[:2]] == [[2, 3], [2]]
    assert [len(m.bindings) for m in found[:2]] == [2, 1]
    assert [str(m.events["C"][0].graph) for m in found[:2]] == [NS + "c4", NS + "c4"]


def test_matches_are_values(found: list[Match]) -> None:
    first, second = found[:2]
    made = Match(
        query=first.query,
        start=first.start,
        end=first.end,
        events=first.events,
        variables=first.variables,
        bindings=first.bindings,
        partition=first.partition,
    )
    assert made == first
    assert first == made
    assert repr(made) == repr(first)
    assert first != second
    assert not hasattr(first, "surprise")
    with pytest.raises(AttributeError):
        first.surprise = 7  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        first.start = 7  # type: ignore[misc]  # it has no setter
    with pytest.raises(TypeError):
        hash(first)


def test_a_pickled_match_is_whole(found: list[Match]) -> None:
    kept = found[:3]
    again = pickle.loads(pickle.dumps(kept))
    assert again == kept
    assert repr(again) == repr(kept)
    triples = [event.triples() for one in again for events in one.events.values() for event in events]
    assert [*map(set, triples)] == [
        set(event.triples()) for one in kept for events in one.events.values() for event in events
    ]
    assert pickle.loads(pickle.dumps(again)) == copy.deepcopy(again) == kept


def test_a_pickled_match_has_terms_as_they_were_written() -> None:
    """Blank nodes and lexical forms, in rows and in events, of a graph with a name; what CONSTRUCT made."""
    engine = spaseq.Engine()
    handle = engine.register("""CONSTRUCT { ?s <urn:w> ?x, [] } WITHIN 10 SECONDS PARTITION BY ?k
        FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:v> ?x . ?s <urn:k> ?k } }""")
    for text in ("'01'^^<http://www.w3.org/2001/XMLSchema#integer>", "'a'@en", "'nought'^^<urn:t>"):
        engine.push("urn:s", f"_:b <urn:v> {text} ; <urn:k> 'k' .", 3, name="urn:g")
    for one in handle.matches():
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        (row,) = again.bindings
        assert row["x"].n3() == one.bindings[0]["x"].n3()
        (event,) = again.events["A"]
        assert event.graph == URIRef("urn:g")
        assert set(event.triples()) == set(one.events["A"][0].triples())
        assert (row["s"], URIRef("urn:v"), row["x"]) in event.triples()
        assert set(again.graph()) == set(one.graph())


def test_each_part_is_made_once(found: list[Match]) -> None:
    assert found[0].bindings is found[0].bindings
    assert found[0].events is found[0].events


def test_a_match_made_by_hand_has_all_its_parts() -> None:
    made = match(query(select("x")), [{"x": URIRef(EX + "a")}])
    assert list(made.constructed) == []
    assert made.bindings == [{"x": URIRef(EX + "a")}]


def test_matches_are_read_after_everything_was_forgotten() -> None:
    """Terms of all events but the matches' are gone, and their ids are those of others."""
    for matcher in ("nfa", "interpreter", "reference"):
        engine = spaseq.Engine(matcher=matcher)
        handle = engine.register(TEXT)
        kept = list(matches(engine, handle, EVENTS))
        assert kept
        for number in range(1_000, 1_100):
            engine.push(NS + "S", f"<urn:x{number}> <urn:p> {number} .", number)
            engine._dictionary.sweep()
        for one in kept:
            assert [str(e.graph) for e in one.events["A"]] == [f"{NS}a{one.start}"]
            assert all(len(e.triples()) > 1 for events in one.events.values() for e in events)
            assert {row["av"] for row in one.bindings} == {Literal(one.start)}


@pytest.mark.slow
def test_batches_go_with_the_matches() -> None:
    engine = spaseq.Engine()
    handle = engine.register(TEXT)
    handle.keep(0)  # of the first events, those that say why there is no match
    kept = list(matches(engine, handle, EVENTS))
    batch = weakref.ref(kept[0].events["A"][0]._at[0])
    # Events that come alone are gathered, some 256 at a time: as many are kept longer than their window.
    for _ in matches(engine, handle, " ".join(f"b{900 + n}" for n in range(520))):
        pass
    assert batch() is not None
    kept.clear()
    gc.collect()
    assert batch() is None


def test_shown_terms_follow_the_dictionary() -> None:
    dictionary = Dictionary()
    shown = TermView(dictionary)
    letters_ = [URIRef(f"urn:{i}") for i in range(20)]
    for letter in letters_:
        identifier = dictionary.intern(from_rdflib(letter))
        assert shown(identifier) == letter == to_rdflib(dictionary.term(identifier))
        dictionary.sweep()
