"""The W3C's SPARQL 1.0 and 1.1 queries as GPM bodies: accepted and refused as the W3C says.

A SELECT or ASK becomes a subquery of a group, a CONSTRUCT one of a SPAseq query. rdflib is asked about
the text as it was, so that nothing is accepted or refused only because of how it was embedded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from rdflib.plugins.sparql import prepareQuery

from spaseq.errors import QuerySyntaxError
from spaseq.language.checking.checks import check
from spaseq.language.checking.rules import check_group_rules, check_rules
from spaseq.language.reading.parser import parse, parse_group
from spaseq.language.reading.source import QueryText
from spaseq.language.syntax.printing import print_group
from tests.language.w3c import Case, Embedded, cases, embed

#: What has no place in SPAseq, and how many good and bad queries that leaves out.
OUT_OF_SCOPE = {
    ("DESCRIBE", True): 2,  # a query form of its own
    ("CONSTRUCT WHERE", True): 6,  # the short form, which SPAseq's grammar does not have
    ("CONSTRUCT WHERE", False): 3,
    ("no query form", False): 7,  # updates, which a manifest files under bad queries
}

#: Where we differ from the W3C on purpose.
DIFFERENT = {
    "sparql10/syntax-sparql3/syn-bad-26.rq": "`?x<?a&&?b>?y`: SPARQL reads `<?a&&?b>` as an IRI, for it "
    "takes the longest token; our lexer knows that no IRI can stand after ?x and reads the comparison",
}


@pytest.fixture(scope="module")
def suite(shared: Callable[[str], Path]) -> list[tuple[Case, Embedded | str]]:
    return [(case, embed(case.text)) for case in cases(shared("w3c-rdf-tests") / "sparql")]


def verdict(embedded: Embedded) -> QuerySyntaxError | None:
    try:
        source = QueryText(embedded.text, "w3c")
        if embedded.whole:
            check_rules(parse(embedded.text), source)
        else:
            check_group_rules(parse_group(embedded.text), source)
    except QuerySyntaxError as problem:
        return problem
    return None


def test_what_is_out_of_scope(suite: list[tuple[Case, Embedded | str]]) -> None:
    assert Counter((e, case.positive) for case, e in suite if isinstance(e, str)) == OUT_OF_SCOPE


def test_good_queries_are_accepted(suite: list[tuple[Case, Embedded | str]]) -> None:
    good = [(case, e) for case, e in suite if case.positive and isinstance(e, Embedded)]
    refused = {case.name: str(problem) for case, e in good if (problem := verdict(e)) is not None}
    assert len(good) == 778
    assert refused == {}


def test_bad_queries_are_refused(suite: list[tuple[Case, Embedded | str]]) -> None:
    bad = [(case, e) for case, e in suite if not case.positive and isinstance(e, Embedded)]
    accepted = [case.name for case, e in bad if verdict(e) is None]
    assert len(bad) == 87
    assert accepted == list(DIFFERENT)


@pytest.mark.slow
def test_what_rdflib_says_of_the_original_text(suite: list[tuple[Case, Embedded | str]]) -> None:
    """What it accepts of the good ones we accept embedded, what it refuses of the bad ones we refuse."""
    agreed: Counter[bool] = Counter()
    for case, embedded in suite:
        if isinstance(embedded, Embedded) and case.positive == rdflib_accepts(case.text):
            assert case.name in DIFFERENT or (verdict(embedded) is None) == case.positive, case.name
            agreed[case.positive] += 1
    assert agreed[True] > 770
    assert agreed[False] > 50


def rdflib_accepts(text: str) -> bool:
    try:
        prepareQuery(text, base="http://example.org/w3c/query.rq")
    except Exception:
        return False
    return True


def test_good_groups_are_printed_and_read_back(suite: list[tuple[Case, Embedded | str]]) -> None:
    for case, embedded in suite:
        if case.positive and isinstance(embedded, Embedded):
            if embedded.whole:
                query = parse(embedded.text)
                assert parse(str(query)) == query, case.name
            else:
                group = parse_group(embedded.text)
                assert parse_group(print_group(group)) == group, case.name


def test_checks_do_not_crash_on_constructs(suite: list[tuple[Case, Embedded | str]]) -> None:
    for case, embedded in suite:
        if case.positive and isinstance(embedded, Embedded) and embedded.whole:
            check(parse(embedded.text))
