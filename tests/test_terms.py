"""The dictionary of terms: ids, what is forgotten and what is not, and threads."""

from __future__ import annotations

import gc
import random
import threading
from io import BytesIO

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from spaseq.events import BatchBuilder, Clock, EventBatch, concatenate
from spaseq.sources import SourceOptions, open_source
from spaseq.sources.formats import lines
from spaseq.sources.scan.fast import FastLines
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.texts import term_of
from spaseq.terms.values import EXACT_ORDER, IS_DOUBLE, XSD, decode
from tests.conftest import examples

from .sources.reading import Trickle, pieces

_XSD = "http://www.w3.org/2001/XMLSchema#"
STREAM = ox.NamedNode("http://example.org/stream")
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_TERMS = st.one_of(
    st.integers(0, 40).map(lambda n: ox.NamedNode(f"http://example.org/{n}")),
    st.sampled_from("abc").map(ox.BlankNode),
    _TEXTS.map(ox.Literal),
    _TEXTS.map(lambda text: ox.Literal(text, language="en-GB")),
    _TEXTS.map(lambda text: ox.Literal(text, datatype=ox.NamedNode("http://example.org/type"))),
)


@given(_TERMS)
def test_a_term_comes_back_from_its_bytes(term: Term) -> None:
    dictionary = Dictionary()
    identifier = dictionary.intern(term)
    assert term_of(dictionary.table().read(identifier)) == dictionary.term(identifier) == term


class _Model(RuleBasedStateMachine):
    """A dictionary beside a Python dict, with and without a table, through sweeps."""

    def __init__(self) -> None:
        super().__init__()
        self.dictionary = Dictionary()
        self.ids: dict[Term, int] = {}
        self.unnamed: set[int] = set()

    @initialize(early=st.booleans())
    def start(self, early: bool) -> None:
        if early:
            self.dictionary.table()

    @rule(term=_TERMS)
    def intern(self, term: Term) -> None:
        identifier = self.dictionary.intern(term)
        if term in self.ids:
            assert identifier == self.ids[term]
        else:
            assert identifier > UNBOUND
            assert identifier not in [*self.ids.values(), *self.unnamed]
            self.ids[term] = identifier

    @rule(first=st.integers(0, 10_000), count=st.integers(1, 3000))
    def intern_many(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.intern(ox.NamedNode(f"http://example.org/many/{number}"))

    @rule(term=_TERMS)
    def find(self, term: Term) -> None:
        assert self.dictionary.find(term) == self.ids.get(term, UNBOUND)

    @rule()
    def fresh(self) -> None:
        identifier = self.dictionary.fresh()
        assert identifier not in [*self.ids.values(), *self.unnamed]
        self.unnamed.add(identifier)

    @precondition(lambda self: self.unnamed)
    @rule()
    def name(self) -> None:
        identifier = self.unnamed.pop()
        term = self.dictionary.term(identifier)
        assert isinstance(term, ox.BlankNode)
        assert term not in self.ids
        self.ids[term] = identifier

    @rule()
    def enter_table(self) -> None:
        self.dictionary.table()

    @rule(data=st.data())
    def sweep(self, data: st.DataObject) -> None:
        every = data.draw(st.integers(1, 5))
        kept = [identifier for identifier in (*self.ids.values(), *self.unnamed) if identifier % every == 0]
        freed = self.dictionary.sweep([np.array(kept, dtype=np.int64)])
        assert freed == len(self.ids) + len(self.unnamed) - len(kept)
        gone = [identifier for identifier in self.ids.values() if identifier % every]
        if gone and self.dictionary._table is not None:
            with pytest.raises(KeyError):
                self.dictionary.term(gone[0])
        self.ids = {term: identifier for term, identifier in self.ids.items() if identifier % every == 0}
        self.unnamed = {identifier for identifier in self.unnamed if identifier % every == 0}
        assert self.dictionary.unswept == 0

    @invariant()
    def agree(self) -> None:
        assert len(self.dictionary) == len(self.ids) + len(self.unnamed)
        assert all(self.dictionary.term(identifier) == term for term, identifier in self.ids.items())

    def teardown(self) -> None:
        assert all(self.dictionary.find(term) == identifier for term, identifier in self.ids.items())


_Model.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=20)
test_model = _Model.TestCase


def _batch(dictionary: Dictionary, first: int, count: int = 1) -> EventBatch:
    builder = BatchBuilder(dictionary, STREAM, Clock.TICKS)
    for number in range(first, first + count):
        triple = ox.Triple(
            ox.NamedNode(f"http://example.org/{number}"), ox.NamedNode("urn:p"), ox.Literal(number)
        )
        builder.add(number, number, [triple], ox.NamedNode(f"http://example.org/g{number}"))
    return builder.build()


@pytest.fixture(params=[False, True], ids=["no table", "table"])
def dictionary(request: pytest.FixtureRequest) -> Dictionary:
    found = Dictionary()
    if request.param:
        found.table()
    return found


@pytest.mark.slow
def test_batches_keep_their_terms_as_long_as_they_are_referenced(dictionary: Dictionary) -> None:
    kept, lost = _batch(dictionary, 0), _batch(dictionary, 1)
    part = concatenate([kept, _batch(dictionary, 2)]).take(np.array([1]))
    before = [str(dictionary.term(int(i))) for i in (kept.graph[0], kept.s[0], kept.o[0], part.s[0])]
    gone = int(lost.s[0])
    del lost
    gc.collect()
    assert dictionary.sweep() == 3, "graph, subject and object of the one that is gone"
    assert [str(dictionary.term(int(i))) for i in (kept.graph[0], kept.s[0], kept.o[0], part.s[0])] == before
    with pytest.raises(KeyError):
        dictionary.term(gone)
    assert dictionary.term(int(kept.stream[0])) == STREAM


def test_what_a_builder_gathers_is_kept(dictionary: Dictionary) -> None:
    builder = BatchBuilder(dictionary, STREAM, Clock.TICKS)
    builder.add(1, 0, [ox.Triple(ox.BlankNode(), ox.NamedNode("urn:p"), ox.Literal("kept"))], ox.BlankNode())
    assert dictionary.sweep() == 0
    batch = builder.build()
    assert dictionary.sweep() == 0
    assert dictionary.term(int(batch.o[0])) == ox.Literal("kept")


def test_pinned_terms_stay(dictionary: Dictionary) -> None:
    kept, lost = dictionary.pin(ox.NamedNode("urn:a")), dictionary.intern(ox.NamedNode("urn:b"))
    assert dictionary.sweep() == 1
    assert dictionary.find(ox.NamedNode("urn:a")) == kept
    assert dictionary.find(ox.NamedNode("urn:b")) == UNBOUND
    assert dictionary.intern(ox.NamedNode("urn:c")) == lost, "its id is given again"


def test_an_id_that_is_given_again_has_the_value_of_its_new_term(dictionary: Dictionary) -> None:
    old = dictionary.intern(ox.Literal(1))
    ids = np.array([UNBOUND, old])
    assert dictionary.numbers(ids)[0].tolist() == [0, 1]
    assert dictionary.value(old).data == 1
    dictionary.sweep()
    assert dictionary.intern(ox.Literal(2)) == old
    assert dictionary.numbers(ids)[0].tolist() == [0, 2]
    assert dictionary.value(old).data == 2


def _numeral(chance: random.Random) -> str:
    """Something like a number, of any length."""
    digits = "".join(chance.choices("0123456789", k=chance.choice([0, 1, 2, 5, 10, 15, 16, 20])))
    text = chance.choice(["", "", "-", "+"]) + digits
    if chance.random() < 0.6:
        text += "." + "".join(chance.choices("0123456789", k=chance.choice([0, 1, 2, 5, 10])))
    if chance.random() < 0.4:
        text += chance.choice("eE") + chance.choice(["", "-", "+"])
        text += str(chance.choice([0, 1, 2, 10, 22, 23, 100, 400, "", "1x"]))
    return chance.choice([" " + text, text + " ", "INF", "NaN", ".", "e5"]) if chance.random() < 0.1 else text


def test_numbers_are_read_as_python_reads_them() -> None:
    chance = random.Random(3)
    types = [ox.NamedNode(_XSD + name) for name in ("integer", "decimal", "double", "int", "string", "float")]
    literals = [ox.Literal(_numeral(chance), datatype=kind) for kind in 5000 * types]
    slow, fast = Dictionary(), Dictionary()
    fast.table()
    ids = [np.array([dictionary.intern(term) for term in literals]) for dictionary in (slow, fast)]
    (expected, expected_ranks), (found, ranks) = slow.numbers(ids[0]), fast.numbers(ids[1])
    assert ranks.tolist() == expected_ranks.tolist()
    assert np.count_nonzero(ranks == EXACT_ORDER) > 1000 < np.count_nonzero(ranks == IS_DOUBLE)
    assert np.array_equal(found, expected, equal_nan=True)


def _nquads(count: int, start: int = 0) -> bytes:
    return b"".join(
        b'<http://example.org/s%d> <http://example.org/p> "%d" <http://example.org/g%d> .\n'
        b'<http://example.org/g%d> <http://www.w3.org/ns/prov#generatedAtTime> '
        b'"%d"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' % (n, n % 100, n, n, n)
        for n in range(start, start + count)
    )  # fmt: skip


def test_an_endless_stream_needs_no_more_than_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.sources.assembly.delivered.REMEMBERED", 1 << 10)
    fast = 0
    deliver = FastLines._deliver

    def counted(self: FastLines, count: int) -> bool:
        nonlocal fast
        fast += count
        return deliver(self, count)

    monkeypatch.setattr(FastLines, "_deliver", counted)
    dictionary = Dictionary()
    ends: list[int] = []
    sizes: list[int] = []
    batches = open_source(
        BytesIO(_nquads(60_000)), STREAM, dictionary, SourceOptions(format="nq"), on_bad=print
    )
    count = 0
    for batch in batches:
        count += len(batch)
        ends.append(dictionary.limit)
        if dictionary.unswept > 5000:
            dictionary.sweep()
            sizes.append(len(dictionary))
            event = len(batch) // 2
            graph = dictionary.term(int(batch.graph[event]))
            assert graph.value.removeprefix("http://example.org/g") == str(batch.time[event])
    assert count == 60_000
    assert fast > 59_900, "an id that is given again is not taken for the graph that had it"
    assert len(sizes) > 5
    assert max(ends) < 60_000, "ids are given again: there are 180,000 terms in all"
    assert max(sizes[1:]) < 2 * sizes[0]


def test_threads_share_a_dictionary() -> None:
    """Two fast readers, one slow one, and sweeps all the while: every event has its own terms."""
    dictionary = Dictionary()
    wrong: list[object] = []
    counts: list[int] = []

    def consume(start: int, slow: bool) -> None:
        # Blocks that are too small are read slowly.
        pipe = Trickle(pieces(_nquads(4000, start), lines.SMALL - 1 if slow else 1 << 16))
        source = open_source(pipe, STREAM, dictionary, SourceOptions(format="nq"), on_bad=wrong.append)
        try:
            for batch in source:
                for event in range(0, len(batch), 50):
                    name = f"http://example.org/g{batch.time[event]}"
                    if dictionary.term(int(batch.graph[event])) != ox.NamedNode(name):
                        wrong.append(name)
                counts.append(len(batch))
        except BaseException as error:  # a thread's error would be lost
            wrong.append(error)

    threads = [threading.Thread(target=consume, args=(10_000 * n, n == 2)) for n in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        dictionary.sweep()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sum(counts) == 12_000


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (ox.Literal("07", datatype=ox.NamedNode(XSD + "integer")), "07"),
        (ox.Literal("x"), '"x"'),
        (ox.Literal("x", language="en"), '"x"@en'),
        (ox.Literal("1e3", datatype=ox.NamedNode(XSD + "double")), '"1e3"^^xsd:double'),
        (ox.Literal("seven", datatype=ox.NamedNode(XSD + "integer")), '"seven"^^xsd:integer'),
        (ox.Literal("1", datatype=ox.NamedNode("urn:t")), '"1"^^<urn:t>'),
        (ox.NamedNode("urn:a"), "<urn:a>"),
    ],
)
def test_a_value_is_shown_as_one_writes_it(term: Term, text: str) -> None:
    assert str(decode(term)) == text
