"""A fixed number of triples per event: the original engine's convention."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spaseq.errors import SourceError, SpaseqWarning
from spaseq.events import Clock

from .reading import PREFIXES, Trickle, pieces, read

AT = "time=http://example/occursat"


def test_every_n_triples() -> None:
    text = (
        "#### first\n<s:1> <p:p> <o:1> .\n\n<s:1> <p:q> <o:1> .\n#### second\n" + "<s:2> <p:p> <o:1> .\n" * 2
    )
    for size in (1, 1 << 18):
        reading = read(Trickle(pieces(text.encode(), size)), "format=nt&triples=2&time=arrival")
        assert reading.times == [0, 1]
        assert reading.bad == []
        assert reading.graphs == [None, None]
    assert len(reading.triples(0)) == 2
    assert len(reading.triples(1)) == 1, (
        "a repeated triple counts for the event's size, and is one in its graph"
    )


def test_time_is_one_of_the_triples_and_stays() -> None:
    text = PREFIXES + ":x :p 1 ; <http://example/occursat> 5 . :y <http://example/occursat> 6 ; :p 1 ."
    reading = read(text, f"format=ttl&triples=2&{AT}")
    assert reading.times == [5, 6]
    assert len(reading.triples()) == 2


def test_an_incomplete_last_event() -> None:
    reading = read(
        "<s:1> <p:p> <o:1> .\n<s:2> <p:p> <o:1> .\n<s:3> <p:p> <o:1> .", "format=nt&triples=2&time=arrival"
    )
    assert reading.times == [0]
    assert reading.positions == ["event 2"]
    assert "after 1 of its 2 triples" in reading.reasons[0]


def test_a_bad_line_counts_as_a_triple() -> None:
    text = "<s:1> <p:p> <o:1> .\noops\n<s:2> <p:p> <o:1> .\n<s:2> <p:p> <o:2> .\n"
    reading = read(text, "format=nt&triples=2&time=arrival")
    assert reading.times == [0]
    assert reading.positions == ["line 2", "event 1"]
    assert reading.triples(0) == {"<s:2> <p:p> <o:1>", "<s:2> <p:p> <o:2>"}


@pytest.mark.parametrize("form", ["nt", "ttl"])
@pytest.mark.parametrize("triples", [1, 2])
def test_an_event_of_bad_lines_alone_is_told_by_them_alone(form: str, triples: int) -> None:
    good = [f"<s:{n}> <p:p> <o:{k}> .\n" for n in (1, 2) for k in range(triples)]
    bad = ["<s:3> <p:p> <o o> .\n"] * triples
    text = "".join([*good[:triples], *bad, *good[triples:]])
    reading = read(text, f"format={form}&triples={triples}&time=arrival")
    assert reading.positions == [f"line {triples + 1 + k}" for k in range(triples)]
    assert reading.times == [0, 1]
    assert len(reading.triples(1)) == triples


def test_no_time_says_what_to_do() -> None:
    reading = read("<s:1> <p:p> <o:1> .\n", "format=nt&triples=1")
    assert "time=" in reading.reasons[0]


@pytest.mark.parametrize("form", ["nt", "ttl"])
def test_the_number_must_be_given(form: str) -> None:
    with pytest.raises(SourceError, match="triples=N"):
        read("<s:1> <p:p> <o:1> .\n", f"format={form}")


def test_integers_typed_as_dates_are_ticks_with_one_warning() -> None:
    text = "".join(
        f'<s:1> <http://example/occursat> "{n}"^^<http://www.w3.org/2001/XMLSchema#date> .\n'
        for n in (10, 20)
    )
    with pytest.warns(SpaseqWarning, match="counts as ticks") as caught:
        reading = read(text, f"format=nt&triples=1&{AT}")
    assert len(caught) == 1
    assert reading.times == [10, 20]
    assert reading.clocks == {Clock.TICKS}


@pytest.mark.parametrize(
    ("file", "size"),
    [
        ("optional/dataOptional.nt", 2),
        ("kleeneplus/dataKleene.nt", 2),
        ("credit-card/card10k.n3", 2),
        ("skip-till-next/dataFB.nt", 2),
        ("multistreams-powergeneration/power1.nt", 5),
    ],
)
def test_files_of_the_original_engine(shared: Callable[[str], Path], file: str, size: int) -> None:
    path = shared("spaseq-original-tests") / "tests-jar" / file
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    reading = read(path, f"triples={size}&time=arrival")
    assert reading.bad == []
    assert reading.times == list(range(len(lines) // size))


MIXED = "no triple connects"


def records(sizes: list[int], *, linked: bool = False) -> str:
    """Records of that many triples, each about one subject, or, if ``linked``, about its sensor, too."""
    return "".join(
        f"<s:{n}> <p:at> {n} .\n"
        + (f"<s:{n}> <p:by> <o:{n}> .\n<o:{n}> <p:in> <r:1> .\n" if linked else "")
        + "".join(f"<s:{n}> <p:v> {k} .\n" for k in range(size - (3 if linked else 1)))
        for n, size in enumerate(sizes)
    )


@pytest.mark.parametrize("repeated", [1, 4000])
@pytest.mark.parametrize("form", ["nt", "ttl"])
def test_records_of_different_sizes_are_reported(form: str, repeated: int) -> None:
    """By the slow reader, and, where there is more text, by the compiled one."""
    text = records([3] * 3 * repeated + [4, 3, 2, 3])
    with pytest.warns(SpaseqWarning, match=MIXED) as caught:
        read(_nt(text), f"format={form}&triples=3&time=p:at")
    assert len([w for w in caught if MIXED in str(w.message)]) == 1
    assert f"event {9 * repeated // 3 + 2}:" in str(caught[0].message)


def test_records_that_a_chain_connects_are_not() -> None:
    read(_nt(records([4, 4, 4], linked=True)), "format=nt&triples=4&time=p:at")
    read(_nt(records([4, 4, 4], linked=True) * 4000), "format=nt&triples=4&time=p:at")


def test_a_common_value_connects_nothing() -> None:
    text = '<s:1> <p:at> 1 .\n<s:1> <p:u> "C" .\n<s:2> <p:u> "C" .\n'
    with pytest.warns(SpaseqWarning, match="event 1: no triple connects <s:2> with <s:1>"):
        read(_nt(text), "format=nt&triples=3&time=p:at")


def _nt(text: str) -> str:
    return re.sub(r" (\d+) \.", r' "\1"^^<http://www.w3.org/2001/XMLSchema#integer> .', text)
