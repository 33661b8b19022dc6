"""Queries that others have published: SPAseq's authors', CityBench's, and the vectors'."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spaseq.errors import QueryMeaningError
from spaseq.language import checked, prepare
from spaseq.language import syntax as s
from spaseq.language.reading.parser import parse, parse_group
from spaseq.language.scope import variables
from tests.language.marked import asked

Shared = Callable[[str], Path]

#: The sequence of each of the authors' scenarios, as we print it.
SCENARIOS = {
    "conjunction/queryConjunction.q": "A , (B & C) , D",
    "credit-card/queryCardFB.q": "A ; B",
    "disjunction/queryDisjunction.q": "A , (B | C) , D",
    "externalknowledgebase/queryKB.q": "A , B , C",
    "kleeneplus/queryKleene.q": "A ; B+ ; C",
    "multistreams-powergeneration/queryMultiStream.q": "A ; B ; C",
    "negation/queryNegation.q": "A , !B , C",
    "optional/queryOptional.q": "A , B? , C",
    "skip-till-next/queryFB.q": "A ; B ; C",
    "strict-contiguity/queryIF.q": "A , B , C",
    "traffic/queryTraffic.q": "A ; B",
}


def test_all_scenarios_of_the_authors_parse(shared: Shared) -> None:
    folder = shared("spaseq-original-tests") / "tests-jar"
    found = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.q")}
    sequences = {}
    for name, text in found.items():
        query = parse(text, name)
        assert parse(str(query)) == query
        sequences[name] = re.findall(r"SEQ\((.*)\)", str(query))[0]
    assert sequences == SCENARIOS


def test_what_the_checks_say_of_them(shared: Shared) -> None:
    folder = shared("spaseq-original-tests") / "tests-jar"
    warned = {}
    for name in SCENARIOS:
        if name != "credit-card/queryCardFB.q":
            warned[name] = checked((folder / name).read_text(encoding="utf-8"), name).warnings
    assert {name for name, warnings in warned.items() if warnings} == {"negation/queryNegation.q"}
    assert "this negation says nothing" in warned["negation/queryNegation.q"][0]


def test_the_authors_slip(shared: Shared) -> None:
    path = shared("spaseq-original-tests") / "tests-jar" / "credit-card" / "queryCardFB.q"
    with pytest.raises(QueryMeaningError) as caught:
        prepare(path.read_text(encoding="utf-8"), "queryCardFB.q")
    problem = caught.value
    assert (problem.msg, problem.hint) == ("no GPM binds ?id1", "did you mean ?id?")
    assert (problem.filename, problem.lineno, problem.offset) == ("queryCardFB.q", 26, 21)


def test_the_authors_spellings() -> None:
    text = """prefix : <http://e/> select ?x within 1 Second Partition by (?x) from stream S1 :s
        where seq (A,B!,(C<>D);E) { define gpm A on S1 { ?x :p 1. Filter (?x > 1). }
        DEFINE GPM B ON S1 {} DEFINE GPM C ON S1 {} DEFINE GPM D ON S1 {} DEFINE GPM E ON S1 {} }"""
    query = parse(text)
    a, b, c, d, e = map(s.Ref, "ABCDE")
    strict, after = s.Strategy.STRICT, s.Strategy.NEXT
    assert query.sequence == s.Sequence((a, s.Not(b), s.Conjunction((c, d)), e), (strict, strict, after))
    assert query.window == s.Window(1, "SECONDS", s.WindowKind.TUMBLING)
    assert query.partition == (s.Var("x"),)


_STREAM = re.compile(r"stream\s*<[^>]*>\s*\[[^\]]*\]\s*(\{[^{}]*\})")


def test_the_patterns_of_citybench_parse(shared: Shared) -> None:
    count = 0
    for path in sorted((shared("citybench") / "cqels_query").glob("*.txt")):
        text = re.sub(r"(?m)(^|\s)#.*$", r"\1", path.read_text(encoding="utf-8"))
        where = re.search(r"where\s*(\{.*\})", text, re.DOTALL)
        assert where is not None, path.name
        bodies = _STREAM.findall(where[1])
        rest = _STREAM.sub("", where[1])
        for pattern in (*bodies, rest):
            group = parse_group(f"BASE <http://example.org/>\n{pattern}", path.name)
            assert variables(group) == set(re.findall(r"\?(\w+)", pattern)) - filtered(pattern)
            count += 1
        gpms = "\n".join(f"DEFINE GPM G{i} ON S {body}" for i, body in enumerate(bodies))
        sequence = " & ".join(f"G{i}" for i in range(len(bodies)))
        if len(bodies) > 1:
            assert len(prepare(asked(f"WHERE {{ SEQ({sequence}) {gpms} }}")).gpms) == len(bodies)
    assert count == 41 + 18  # streams, and what is left of each query


def filtered(pattern: str) -> set[str]:
    """The variables that only a FILTER of the pattern has."""
    inside = "".join(re.findall(r"(?i)filter.*", pattern))
    outside = re.sub(r"(?i)filter.*", "", pattern)
    return set(re.findall(r"\?(\w+)", inside)) - set(re.findall(r"\?(\w+)", outside))


def test_the_vectors_are_sound(shared: Shared) -> None:
    cases = json.loads((shared("seq-vectors") / "vectors-2.json").read_text(encoding="utf-8"))["cases"]
    for case in cases[::4]:
        query = checked(case["query"])
        assert parse(str(query)) == query


def test_our_own_queries_are_sound() -> None:
    """Those of the use cases, in ``streams/``."""
    queries = sorted((Path(__file__).parents[2] / "streams").glob("*.rq"))
    assert queries
    for path in queries:
        query = prepare(path.read_text(encoding="utf-8"), path.name)
        assert query.warnings == ()
        assert parse(str(query)) == query
