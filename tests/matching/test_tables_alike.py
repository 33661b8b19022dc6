"""Queries that differ in constants have the tables that each would have by itself."""

import random
from dataclasses import fields

import pytest
from pyoxigraph import Literal

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.language import checked
from spaseq.matching.filters.postfix import BeyondTables
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.matching.nfa.tables.compiling import compile_tables, tables_alike
from spaseq.terms.dictionary import Dictionary
from tests.matching.random_sequences import random_query

#: Fields that name places in a query, and ``looks``, which is filled when the tables are used.
_OF_ANOTHER = ("analysis", "candidates", "accepts", "looks")


def of_itself(pattern: SequencePattern, dictionary: Dictionary) -> NfaTables | str:
    """The tables of one query alone, or why it has none."""
    try:
        return compile_tables(pattern, dictionary.pin)
    except BeyondTables as reason:
        return str(reason)


def alike(ours: NfaTables, own: NfaTables) -> None:
    """Checks that tables are those of a query, number by number."""
    assert ours.tables.tolist() == own.tables.tolist()
    assert set(ours.constants) == set(own.constants)
    for field in fields(NfaTables):
        if field.name not in ("tables", "constants", *_OF_ANOTHER):
            assert getattr(ours, field.name) == getattr(own, field.name), field.name
    assert [c.unit.id for c in ours.candidates] == [c.unit.id for c in own.candidates]
    assert len(ours.accepts) == len(own.accepts)


@pytest.mark.parametrize("sequence", ["A ; B", "A : B+[;] , A", "A , !C , B", "A ; (B & C)", "A ; (B | C)"])
@pytest.mark.parametrize("window", ["10 SECONDS SLIDING", "7 EVENTS TUMBLING"])
def test_of_other_numbers(sequence: str, window: str) -> None:
    rng = random.Random(3)
    dictionary = Dictionary()
    for i in range(12):
        # Some of them are equal, one is what tables have of their own, and one stands inside a function.
        one, other, inside = (rng.choice(["0", "1", "2", "0.5", "'x'", "<urn:x>"]) for _ in range(3))
        query = checked(f"""
            PREFIX : <urn:> SELECT * WITHIN {window} FROM STREAM S <urn:s> WHERE {{ SEQ({sequence})
              DEFINE GPM A ON S {{ ?x :p{i} ?a . FILTER(?a != {inside}) }}
              DEFINE GPM B ON S {{ ?x :q{i} ?b . FILTER(?b > ?a + {one} || -?b = {other} * ?a) }}
              DEFINE GPM C ON S {{ :n{i} :p ?c . FILTER(?c < ?a && ?c IN ({inside}, ?a)) }} }}""")
        pattern = normalise(query)
        alike(tables_alike(pattern, dictionary.pin), compile_tables(pattern, dictionary.pin))


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize("part", range(4))
def test_of_any_query(part: int) -> None:
    dictionary = Dictionary()
    for seed in range(100 * part, 100 * part + 100):
        pattern = random_query(random.Random(seed), rich=seed % 2 > 0, whole_language=seed % 3 > 1).pattern
        own = of_itself(pattern, dictionary)
        if isinstance(own, str):
            with pytest.raises(BeyondTables) as raised:
                tables_alike(pattern, dictionary.pin)
            assert str(raised.value) == own
            continue
        for _ in range(2):
            alike(tables_alike(pattern, dictionary.pin), own)
    assert dictionary.find(Literal("urn:x-spaseq:constant:0")) == 0
