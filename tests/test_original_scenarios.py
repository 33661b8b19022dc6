"""The SPAseq authors' own scenarios: their queries over their data, the answers worked out by hand.

The prices of each stream, in order, stand beside the expected matches; a match is the list of the arrival
numbers of its events. Streams without times are read with the arrival number as the time.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import spaseq

MAIN = "http://example.org/main"
Shared = Callable[[str], Path]


@pytest.fixture
def folder(shared: Shared) -> Path:
    return shared("spaseq-original-tests") / "tests-jar"


def numbers(match: spaseq.Match) -> list[int]:
    return sorted({event.n for events in match.events.values() for event in events})


SCENARIOS = [
    # 14 12 14
    ("strict-contiguity/queryIF.q", "strict-contiguity/dataIF.nt", [[0, 1, 2]]),
    # 14 16 12 14: the fall below 16 has no later 16.
    ("skip-till-next/queryFB.q", "skip-till-next/dataFB.nt", [[0, 2, 3]]),
    # 14 12 18
    ("disjunction/queryDisjunction.q", "disjunction/dataDisj.nt", [[0, 1, 2]]),
    # 14 88 11 10 16: a run from 14, from 88 and from 11, each with every prefix of its falls.
    (
        "kleeneplus/queryKleene.q",
        "kleeneplus/dataKleene.nt",
        [[0, 2, 3, 4], [0, 2, 4], [1, 2, 3, 4], [1, 2, 4], [2, 3, 4]],
    ),
    # 14 88 16: between two commas a negation says nothing.
    ("negation/queryNegation.q", "negation/dataNegation.nt", [[1, 2]]),
    # 14 10 16: with the fall; and 10, 16 without one.
    ("optional/queryOptional.q", "optional/dataOptional.nt", [[0, 1, 2], [1, 2]]),
]


@pytest.mark.few(0, ci=6)
@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize("matcher", ["reference", "interpreter"])
@pytest.mark.parametrize(("query", "data", "expected"), SCENARIOS)
def test_one_stream(folder: Path, query: str, data: str, expected: list[list[int]], matcher: str) -> None:
    found = spaseq.run(
        (folder / query).read_text(),
        {"S1": f"{folder / data}?triples=2&time=arrival"},
        matcher=matcher,
    )
    assert sorted(map(numbers, found)) == expected


def test_rows(folder: Path) -> None:
    text = (folder / "strict-contiguity/queryIF.q").read_text()
    (match,) = spaseq.run(text, {"S1": f"{folder / 'strict-contiguity/dataIF.nt'}?triples=2&time=arrival"})
    (row,) = match.bindings
    assert {name: float(value) for name, value in row.items() if name != "company"} == {
        **{"vol1": 65.61, "vol2": 68.61, "vol3": 69.61},
        **{"p1": 14.0, "p2": 12.0, "p3": 14.0},
    }
    assert str(row["company"]) == "http://example/company#eBay"
    assert (match.start, match.end) == (0, 2)


def test_background_knowledge(folder: Path) -> None:
    """14 12 11, each with the company's name and place from the knowledge base."""
    folder /= "externalknowledgebase"
    (match,) = spaseq.run(
        (folder / "queryKB.q").read_text(),
        {"S1": f"{folder / 'data.nt'}?triples=2&time=arrival"},
        {"http://www.example.com/kb": folder / "externalKB.nt"},
    )
    assert numbers(match) == [0, 1, 2]
    (row,) = match.bindings
    assert (str(row["name"]), str(row["loc"])) == ("ebay", "usa")


def test_conjunction(folder: Path) -> None:
    """14@10, 12@15 and 18@15, 16@20: tick 20 begins the second window, so 10 seconds are one too few."""
    text = (folder / "conjunction/queryConjunction.q").read_text()
    source = f"{folder / 'conjunction/dataConjunction.nt'}?triples=3&time=http://example/occursat"
    with pytest.warns(spaseq.SpaseqWarning, match="ill-typed"):
        assert list(spaseq.run(text, {"S1": source})) == []
    with pytest.warns(spaseq.SpaseqWarning, match="ill-typed"):
        (match,) = spaseq.run(text.replace("WITHIN 10", "WITHIN 11"), {"S1": source})
    assert numbers(match) == [0, 1, 2, 3]
    assert [event.n for event in match.events["C"]] == [2]


def test_several_streams(folder: Path) -> None:
    """All three streams have an event at ticks 0 to 3: a window of one tick holds no sequence.

    In a longer one: wind blows at ticks 0, 2 and 3, and power generated at tick 3 costs less than the power
    used at ticks 0 and 1 did.
    """
    folder /= "multistreams-powergeneration"
    text = (folder / "queryMultiStream.q").read_text()
    files = {"S1": "power1.nt", "S2": "environmental1.nt", "S3": "generation1.nt"}
    streams = {name: f"{folder / file}?triples=5&time=arrival" for name, file in files.items()}
    assert list(spaseq.run(text, streams)) == []
    longer = text.replace("WITHIN 1 SECONDS", "WITHIN 10 SECONDS")
    chosen = [tuple(match.events[gpm][0].time for gpm in "ABC") for match in spaseq.run(longer, streams)]
    assert sorted(chosen) == [(0, 2, 3), (1, 2, 3)]


def test_cards(folder: Path) -> None:
    """The published query asks for ?id1, which nothing binds; mended, the answers are a plain loop's."""
    text = (folder / "credit-card/queryCardFB.q").read_text()
    with pytest.raises(spaseq.QueryMeaningError, match=r"\?id1") as error:
        spaseq.prepare(text)
    assert "?id" in str(error.value.hint)

    data = folder / "credit-card/card10k.n3"
    found = spaseq.run(text.replace("?id1", "?id"), {"S1": f"{data}?triples=2&time=arrival"})
    assert sorted(map(numbers, found)) == sorted(falls(data.read_text(), 100))


def falls(text: str, window: int) -> list[list[int]]:
    """Each payment with the next smaller one of the same card in its window of ``window`` payments."""
    events = [
        (card, float(amount))
        for card, amount in re.findall(r'card#(\d+)> <http://example/amount> "([^"]+)"', text)
    ]
    out = []
    for i, (card, amount) in enumerate(events):
        for j in range(i + 1, min(len(events), (i // window + 1) * window)):
            if events[j][0] == card and events[j][1] < amount:
                out.append([i, j])
                break
    return out


def test_traffic_query_is_read(folder: Path) -> None:
    """Its data was never published."""
    query = spaseq.prepare((folder / "traffic/queryTraffic.q").read_text())
    assert [declaration.name for declaration in query.streams] == ["S1", "S2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert query.warnings == ()
