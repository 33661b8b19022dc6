"""What a diagnosis says is true of what it names: of all events, or of the first ones; of the whole query."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import spaseq
from spaseq.cli import app
from spaseq.why.sample import EVENTS, TRIPLES
from tests.why.streams import NS, query, why
from tests.why.test_sequences import ABC, events

#: So many events more than are kept to look at.
MANY = EVENTS + 100


def pushed(text: str, graphs: list[str]) -> spaseq.Diagnosis:
    """The diagnosis of a query whose events come one a tick."""
    with spaseq.Engine() as engine:
        handle = engine.register(text)
        prefix = f"PREFIX : <{NS}>\n"
        engine.push_many(f"{NS}s", [(f"{prefix}{graph} .", time) for time, graph in enumerate(graphs)])
    return handle.why()


def test_a_filter_that_holds_after_the_first_events() -> None:
    text = query("A ; B", {"A": "?s :a ?p", "B": "?s :b ?q . FILTER(?q > ?p)"}, "1 SECONDS SLIDING")
    # So large that few of them are kept to look at.
    more = " ; :c " + ", ".join(map(str, range(TRIPLES // 50 - 1)))
    graphs = [f":x :{'ab'[time % 2]} 1{more}" for time in range(60)]
    # The filter holds in the end, though not within the window of an A.
    told = pushed(text, [*graphs, ":x :c 1", ":x :c 1", ":x :b 2"])
    assert told.cause == (
        "63 events; in the first 50 of them all ended in SEQ(A ; B): "
        "FILTER(?q > ?p) of GPM B never holds where it is wanted"
    )


def test_a_predicate_that_only_later_events_have() -> None:
    text = query("A ; B", {"A": "?s :a ?p", "B": "?s :b ?q . FILTER(?q > 5)"})
    told = pushed(text, [":x :a 1"] * MANY + [":x :b 1"])
    assert told.cause == (
        f"{MANY + 1:,} events, of which GPM B matched none; in the first 2,000 of them "
        "no event has predicate :b; they have :a"
    )


def test_that_no_event_of_a_stream_came_is_known_of_all() -> None:
    text = query("A ; B", {"A": "?s :a ?p", "B": "T:?s :b ?q"})
    told = pushed(text, [":x :a 1"] * MANY)
    assert told.cause == f"{MANY:,} events, of which GPM B matched none: no event of stream T came"


def test_a_side_that_nothing_matched() -> None:
    text = query("(A | B) ; C", ABC, "5 SECONDS SLIDING")
    with spaseq.Engine() as engine:
        handle = engine.register(text)
        for time, graph in events("a1 c20"):
            engine.push(f"{NS}s", f"PREFIX : <{NS}>\n{graph} .", time)
    ended = "2 events, all ended in SEQ((A | B) ; C): a window of 5 SECONDS is too short"
    assert handle.why().cause.startswith(ended)
    assert handle.why(seconds=0).cause.startswith("2 events, each GPM that a match needs matched some; to")


@pytest.mark.parametrize(
    ("sequence", "within", "stream", "cause"),
    [
        # The step has a match with 16 seconds, the whole sequence with 32.
        (
            "A , B , C",
            "1 SECONDS SLIDING",
            "a1 b11 c31",
            "3 events, all ended in SEQ(A , B): a window of 1 SECONDS is too short: "
            "with 32 SECONDS there is a match (the shortest spans 30 ticks)",
        ),
        # There is none of the whole sequence, whatever the window.
        (
            "A , B , C",
            "1 SECONDS SLIDING",
            "a1 b11 a12 c31",
            "4 events, all ended in SEQ(A , B): a window of 1 SECONDS is too short: "
            "with 16 SECONDS there is a match up to there (the shortest spans 10 ticks), "
            "but none of the whole sequence",
        ),
        # A TUMBLING window of that size would cut it.
        (
            "A ; B",
            "4 SECONDS",
            "c0 a3 b5",
            "3 events, all ended in SEQ(A ; B): windows of 4 SECONDS TUMBLING cut it: "
            "with SLIDING there is a match",
        ),
        (
            "A ; B",
            "2 SECONDS",
            "c0 a3 b8",
            "3 events, all ended in SEQ(A ; B): a window of 2 SECONDS is too short: "
            "with 8 SECONDS SLIDING there is a match (the shortest spans 5 ticks)",
        ),
        # What changes only the end of the sequence says nothing of its beginning.
        (
            "A , B ; C{2,}",
            "100 SECONDS",
            "a1 c2 b3 c4",
            "4 events, all ended in SEQ(A , B): other events come in between: "
            "with SEQ(A ; B ; C{2,}) there is a match up to there, but none of the whole sequence",
        ),
        # Without its negation, the step is shorter.
        (
            "A ; !C ; B ; C",
            "100 SECONDS",
            "a1 c2 b3 c4",
            "4 events, all ended in SEQ(A ; !C ; B): something negated comes in between: "
            "with SEQ(A ; B ; C) there is a match",
        ),
    ],
)
def test_advice_is_of_the_whole_query(sequence: str, within: str, stream: str, cause: str) -> None:
    named = {name: text for name, text in ABC.items() if name in sequence}
    text = query(sequence, named, within)
    assert why(text, *events(stream)).cause == cause
    # Followed word by word, it finds a match; if it says that there is none, it finds none.
    advice = re.search(r"with (SEQ\(.*?\)|\d+ SECONDS(?: SLIDING)?|SLIDING) there", cause)
    assert advice is not None
    word = advice[1]
    if word.startswith("SEQ"):
        changed = text.replace(f"SEQ({sequence})", word)
    elif word == "SLIDING":
        changed = text.replace(f"WITHIN {within}", f"WITHIN {within} SLIDING")
    else:
        changed = text.replace(f"WITHIN {within}", f"WITHIN {word}" + " SLIDING" * ("SLIDING" not in word))
    found = why(changed, *events(stream)).matches
    assert bool(found) == ("none of the whole" not in cause)


def test_what_a_partition_makes_equal_is_not_blamed() -> None:
    gpms = {"A": "?s :a ?p", "B": "?s :b ?q . FILTER(?q > ?p)"}
    text = query("A , B", gpms, "10 SECONDS SLIDING").replace(
        "FROM STREAM S", "PARTITION BY ?s FROM STREAM S"
    )
    told = why(text, *events("a1/5 yb2/9 b3/4"))
    assert told.cause == (
        "3 events, all ended in SEQ(A , B): FILTER(?q > ?p) of GPM B never holds where it is wanted"
    )


def test_a_partition_that_no_two_events_have_in_common() -> None:
    gpms = {"A": "?s :a ?p", "B": "?s :b ?q"}
    text = query("A ; B", gpms).replace("FROM STREAM S", "PARTITION BY ?s FROM STREAM S")
    assert why(text, *events("a1 yb2")).cause == (
        "2 events, all ended in SEQ(A ; B): A and B never have the same ?s where it is wanted"
    )


def test_the_command_says_of_what_it_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = query("A , B , C", {name: f'?s :v "{i}"' for i, name in enumerate("ABC", 1)}, "1 SECONDS SLIDING")
    Path("q.rq").write_text(text)
    rows = [f'<urn:{time}> <{NS}v> "{value}" .' for time, value in enumerate([1, 4, 2] * 700 + [2])]
    Path("s.nt").write_text("\n".join(rows))
    result = CliRunner().invoke(app, ["run", "q.rq", "-s", "S=s.nt?triples=1&time=arrival", "-f", "csv"])
    assert result.stderr.startswith(
        "no match: 2,101 events, of which GPM C matched none; in the first 2,000 of them no event has value "
        '"3"'
    )


def test_a_sum_of_windows_beyond_64_bits_is_not_advised() -> None:
    text = query("A ; B", {"A": "?s :a ?p", "B": "?s :b ?q"}, "9000000000000 SECONDS SLIDING")
    told = why(text, (-5 * 10**18, ":x :a 1"), (5 * 10**18, ":x :b 1"))
    assert told.cause == "2 events, all ended in SEQ(A ; B)"
