"""Queries of one shape get one matcher: the one that each of them would be given by itself."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spaseq.automaton.normal import normalise
from spaseq.errors import QueryError
from spaseq.language import prepare
from spaseq.matching.planner import choose, chosen
from spaseq.matching.templates.form import shape
from tests.conftest import examples
from tests.judge.generate import random_query

_NUMBERS = ("0", "1", "2", "73", "-1", "1.5", "1e0", "100000000000000000000", '"x"', "true", "<urn:x>")
_CONDITIONS = (
    "?b > ?a + §", "?b / § > ?a", "?b * § < ?a", "?b > § * ?a - §", "?b - ?a = §", "?b < § && ?b > ?a",
    "?a IN (§, ?b)", "math:pow(?b, §) > ?a", "IF(?b > §, ?b, ?a) > 1", "?b != §", "?b = ?a || ?a = §",
)  # fmt: skip
_SEQUENCES = ("A , B", "A ; B", "A : B", "A : A : B", "A : B+[:]", "A ; !A ; B", "ALL(A, B)")


def _differ(rng: random.Random, form: str) -> None:
    """Queries of a form get what each would get, whatever others came before: that is remembered by shape."""
    for _ in range(4):
        text = re.sub("§", lambda _: rng.choice(_NUMBERS), form).replace(":v ", f":v{rng.randint(0, 1)} ")
        with suppress(QueryError):
            pattern = normalise(prepare(text))
            assert chosen(pattern) == choose(pattern).name, text


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@settings(max_examples=examples(80), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_it_is_what_each_would_get_by_itself(seed: int) -> None:
    rng = random.Random(seed)
    _differ(rng, re.sub(r"(?<=[<>=] )\d+(\.\d+)?(?=\))", "§", random_query(rng).text))


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize("sequence", _SEQUENCES)
@pytest.mark.few(1, ci=3)
def test_it_is_so_for_each_condition(sequence: str) -> None:
    for number, condition in enumerate(_CONDITIONS):
        form = (
            "PREFIX : <urn:> PREFIX math: <http://www.w3.org/2005/xpath-functions/math#> "
            f"SELECT * WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE {{ SEQ({sequence}) "
            f"DEFINE GPM A ON S {{ ?x :v ?a }} DEFINE GPM B ON S {{ ?x :v ?b FILTER({condition}) }} }}"
        )
        _differ(random.Random(number), form)


_TEXT = """PREFIX : <urn:> SELECT * WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE {{ SEQ(A {operator} B)
    DEFINE GPM A ON S {{ {name} :{predicate} ?a ; a :{predicate} }}
    DEFINE GPM B ON S {{ ?x :{predicate} ?b FILTER(?b > ?a + {number}) }} }}"""


def _shape(name: str = ":x", predicate: str = "p", number: str = "1", operator: str = ";") -> object:
    return shape(prepare(_TEXT.format(name=name, predicate=predicate, number=number, operator=operator)))


def test_what_a_query_is_about_is_not_its_shape() -> None:
    assert _shape() == _shape(name=":y", predicate="q", number="700")
    assert _shape() != _shape(operator=",")
    assert _shape() != _shape(name="?y")
    assert _shape() != _shape(number="0") != _shape(number="1.0")
