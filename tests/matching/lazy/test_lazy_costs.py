"""What the lazy matcher keeps, in what order it looks, and which queries fit (see also ``test_lazy``)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

import pytest
from pyoxigraph import Literal

from spaseq.events import Stamp
from spaseq.matching.context import Context
from spaseq.matching.filters.derived import split
from spaseq.matching.lazy import memory
from spaseq.matching.lazy.demands import chain_order, demands, is_better
from spaseq.matching.lazy.matcher import LazyMatcher
from spaseq.matching.lazy.plans import plans
from spaseq.matching.lazy.records import counter, ordering
from spaseq.matching.lazy.tables import fits
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.terms.dictionary import Dictionary
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, by_runs, whole
from tests.matching.lazy.test_lazy import by_lazy
from tests.matching.lazy_cases import random_lazy_query
from tests.matching.random_sequences import pattern_of, random_sample

ABOVE = {"B": "?b > ?a", "C": "?c > ?b"}


def text(seq: str, filters: dict[str, str] | None = None, more: str = "", partition: str = "") -> str:
    """A query whose GPMs bind ``?a``, ``?b``, … and ``?k``."""
    names = [name for name in "ABCD" if name in seq.replace("ALL", "")]
    conditions = {name: f"FILTER({f})" for name, f in (filters or {}).items()}
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :v ?{name.lower()} ; :k ?k{'' if partition else name} . "
        f"{conditions.get(name, '')} }}"
        for name in names
    )
    return (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 1 SECONDS {partition} "
        f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }} {more}"
    )


class Stream:
    """A matcher of one query, and events for it: a tick each."""

    def __init__(self, query: str, window: int, *, tree: bool = False, partition: bool = False) -> None:
        pattern = pattern_of(query)
        self._dictionary = Dictionary()
        context = Context(pattern, self._dictionary, lambda *_: False)
        self.lazy = LazyMatcher(
            pattern, self._dictionary, context, StreamWindow(window, False, True, 0), tree=tree
        )
        self._count = 0
        self._keyed = partition

    def push(
        self, rows: Iterable[tuple[str, int]], *sizes: int, m: Mapping[str, int] | None = None
    ) -> list[list[int]]:
        """The positions of the matches' events. A row is the GPMs an event is for, and its value.

        ``m`` are the values of ?m, by GPM.
        """
        intern = self._dictionary.intern
        events = []
        for gpms, value in rows:
            solutions = {
                name: (
                    {
                        name.lower(): intern(Literal(value)),
                        "k" + name * (not self._keyed): intern(Literal(0)),
                        **({"m": intern(Literal(m[name]))} if m and name in m else {}),
                    },
                )
                for name in gpms
            }
            events.append(Occurrence(Stamp(self._count, 1, self._count), self._count, solutions))
            self._count += 1
        return [
            [event.position for _, event in match.events]
            for batch in batches(events, self._dictionary, sizes)
            for _, match in singly(self.lazy.process(*batch))
        ]


def letters(events: str) -> list[tuple[str, int]]:
    return [(name.upper(), 0) for name in events]


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize(
    ("events", "seq", "matches"),
    [
        ("aabb", "A : B", [[0, 2], [1, 2], [0, 3], [1, 3]]),
        ("abbc", "A : B+[:] : C", [[0, 1, 2, 3], [0, 1, 3], [0, 2, 3]]),
        ("cab", "ALL(A, B, C)", [[0, 1, 2]]),
        ("abc", "A : (B | C)", [[0, 1], [0, 2]]),
        ("abcac", "A : !B : C", [[3, 4]]),
        ("bac", "!B : A : C", []),
        ("dbcabd", "ALL(A, B : C) : D", [[1, 2, 3, 5]]),
        ("abdc", "A : B? : C", [[0, 1, 3]]),
        ("abab", "ALL(A, B)", [[0, 1], [1, 2], [0, 3], [2, 3]]),
    ],
)
def test_by_hand(events: str, seq: str, matches: list[list[int]], tree: bool) -> None:
    assert Stream(text(seq), 10, tree=tree).push(letters(events)) == matches


@pytest.mark.parametrize(
    ("seq", "entries"),
    [
        ("A : B", 1),
        ("A : B : C", 2),
        ("ALL(A, B)", 2),
        ("A : (B | C)", 1),
        ("A : B+[:]", 2),
        ("A : B : A", 2),
    ],
)
@pytest.mark.parametrize("tree", [False, True])
def test_what_comes_last_of_all_is_not_indexed(seq: str, entries: int, tree: bool) -> None:
    """An entry a GPM, as all keys are equal; nobody looks for events of what ends every match."""
    stream = Stream(text(seq, partition="PARTITION BY ?k"), 10, tree=tree, partition=True)
    stream.push(letters("abcabc"))
    assert stream.lazy.memory.counters[counter.ENTRIES] == entries


@pytest.mark.parametrize("tree", [False, True])
def test_conditions_are_asked_as_in_the_order_of_the_sequence(tree: bool) -> None:
    """What comes later is not seen, although it may be taken earlier: an error, and no match."""
    query = text("A : B", {"A": "?a < ?b"})
    assert Stream(query, 10, tree=tree).push([("A", 1), ("B", 2)]) == []
    query = text("ALL(A, B)", {"A": "?a < ?b"})
    assert Stream(query, 10, tree=tree).push([("A", 1), ("B", 2), ("A", 0), ("A", 3)]) == [[0, 1], [1, 2]]


@pytest.mark.parametrize("between", [1, 2])
def test_what_must_not_be_does_not_see_what_comes_later(between: int) -> None:
    """A may bind ?m and does not: whatever B's ?m is, it is there before C, also if D has another one."""
    query = text("A : !B : C : D")
    for name, optional in (("A", True), ("B", False), ("D", False)):
        more = "OPTIONAL { [] :m ?m }" if optional else "[] :m ?m ."
        query = query.replace(f"?k{name} . ", f"?k{name} . {more} ")
    stream = Stream(query, 10)
    assert fits(pattern_of(query)) is None
    assert stream.push([("A", 0), ("B", 0), ("C", 0), ("D", 0)], m={"B": between, "D": 1}) == []


def test_an_operand_of_all_hears_the_others_also_of_what_it_binds_later_itself() -> None:
    """Operands are matched in their joint context, whatever the order of events: here A and C have D's ?m."""
    query = text("ALL(A : C, D)", {"A": "?m > 0"})
    for name in "CD":
        query = query.replace(f"?k{name} . ", f"?k{name} . [] :m ?m . ")
    assert fits(pattern_of(query)) is None
    assert Stream(query, 10).push([("D", 0), ("A", 0), ("C", 0)], m={"C": 1, "D": 1}) == [[0, 1, 2]]
    assert Stream(query, 10).push([("D", 0), ("A", 0), ("C", 0)], m={"C": 0, "D": 0}) == []


def test_tables_decide_what_operands_of_all_ask_of_each_other() -> None:
    pattern = pattern_of(text("ALL(A, B : C)", ABOVE))
    (plan,) = plans(pattern)
    assert demands(split(pattern), plan).exact


def test_what_is_rarest_is_first() -> None:
    (plan,) = plans(pattern := pattern_of(text("A : B : C", ABOVE)))
    demanded = demands(split(pattern), plan)
    assert chain_order(plan, demanded, [100, 100, 1]) == (2, 1, 0)
    assert chain_order(plan, demanded, [1, 100, 90]) == (0, 1, 2)  # B is linked to A, and C is not
    assert chain_order(plan, demanded, [100, 1, 100]) == (1, 0, 2)
    assert is_better((2, 1, 0), (0, 1, 2), [100, 100, 49])
    assert not is_better((2, 1, 0), (0, 1, 2), [100, 100, 50])
    (repeated,) = plans(pattern := pattern_of(text("A : B+[:] : C", ABOVE)))
    assert chain_order(repeated, demands(split(pattern), repeated), [1, 1, 1]) == ()


@pytest.mark.slow
def test_nothing_waits_for_what_is_rare() -> None:
    """Common events are kept, and no partial matches of them."""
    stream = Stream(text("A : B : C", ABOVE), 1_000)
    rng = random.Random(1)
    common = [(rng.choice("AB"), rng.randrange(100)) for _ in range(2_000)]
    stream.push([("C", 0), *common], 500, 500, 500)
    assert stream.lazy.memory.buffered <= 1_001
    assert stream.lazy.memory.waiting <= 1
    assert stream.lazy.memory.counters[counter.PEAK] <= 1
    assert len(stream.push([("C", 1_000)])) > 1_000


@pytest.mark.slow
def test_the_order_changes_with_the_stream() -> None:
    """And what waits is made again: matches begun in the old order are found in the new one."""
    rng = random.Random(2)
    changing = [("A", 0)]
    for kinds in ("AAAAAAB", "BBCCCCC" + "A", "AAAB" * 3 + "C"):
        changing += [(rng.choice(kinds), rng.randrange(20)) for _ in range(300)]
        changing.append(("C", 19))
    found = []
    for sizes in ((100,) * 9, (1_000,), (7,) * 130):
        for tree in (False, True):
            stream = Stream(text("A : B : C", ABOVE), 60, tree=tree)
            found.append(stream.push(changing, *sizes))
            assert bool(stream.lazy.memory.orders[0, ordering.CHAIN]) is not tree
    assert all(one == found[0] for one in found)
    assert len(found[0]) > 50
    stream = Stream(text("A : B : C", ABOVE), 60)
    orders = []
    for start in range(0, len(changing), 100):
        stream.push(changing[start : start + 100])
        orders.append(tuple(stream.lazy.memory.orders[0, ordering.ORDER : ordering.ORDER + 3].tolist()))
    assert len(set(orders)) > 1


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize("seq", ["A : B : C", "ALL(A, B, C)", "A : B{1,2}[:] : C", "A : !C : B"])
@pytest.mark.parametrize("partition", ["", "PARTITION BY ?k"])
def test_memory_is_used_again(seq: str, partition: str) -> None:
    filters = {"A": "?a < 3"} if "ALL" in seq or "!" in seq else ABOVE
    stream = Stream(text(seq, filters, partition=partition), 20, partition=bool(partition))
    rng = random.Random(1)
    sizes = []
    for _ in range(10):
        stream.push([(rng.choice(["A", "B", "C", "D"]), rng.randrange(50)) for _ in range(500)], 200, 200)
        m = stream.lazy.memory
        sizes.append((len(m.rows), len(m.index), len(m.waits), len(m.frames)))
    assert sizes[-1] == sizes[4]
    # What is found is given in blocks, for which there is as much room as many matches want, and no more.
    assert len(m.found) <= 1 << 14


@pytest.mark.few(2, ci=4)
@pytest.mark.parametrize("seed", range(8))
def test_long_streams(seed: int) -> None:
    """So long that the buffers turn round and expire."""
    rng = random.Random(f"long {seed}")
    sample = random_sample(rng, random_lazy_query(rng), 300)
    sizes = [rng.randrange(1, 90) for _ in range(5)]
    sample = whole(sample, StreamWindow(5, False, True, sample.window.start), *sizes)
    assert by_lazy(sample) == by_runs(sample)


@pytest.mark.parametrize(
    ("seq", "more", "reason"),
    [
        ("A : B", "", None),
        ("ALL(A : B, !C : D)", "", None),
        ("A ; B", "", "an operator is ';'"),
        ("ALL(A, B , C)", "", None),
        ("ALL(A, (B , C))", "", "an operator is ','"),
        ("A : B+ : C", "", "the iterations of B follow each other by ';'"),
        ("(A : B)+[:] : C", "", "a group is repeated"),
        ("A : (B & C)", "", "& gathers events of one time"),
        ("A : !B", "", "a negation or ? comes last, and matches wait for the end of their window"),
        ("A : B", "CONSUME ANY", "CONSUME ANY drops partial matches, which are not kept"),
        ("((A | B) : (A | B) : (A | B) : (A | B) : (A | B))", "", "there are more than 24 alternatives"),
    ],
)
def test_fits(seq: str, more: str, reason: str | None) -> None:
    assert fits(pattern_of(text(seq, more=more))) == reason


def test_all_of_what_an_event_completes_comes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little room there is for it."""
    monkeypatch.setattr(memory, "_FOUND", 1)
    rows: Sequence[tuple[str, int]] = [("A", 1)] * 40 + [("B", 2)]
    assert Stream(text("A : B", ABOVE), 100).push(rows) == [[i, 40] for i in range(40)]
    emitted = Stream(text("A : B", ABOVE, "EMIT LAST"), 100).push(rows)
    assert emitted == [[39, 40]]
