"""The table: widths, terminals, and text that would disturb it."""

from __future__ import annotations

from io import BytesIO

import pytest
from rdflib.namespace import XSD
from rdflib.term import Literal, URIRef
from rich.cells import cell_len

from spaseq.results import writer

from .making import EX, match, query, select, written

QUERY = query(select("a", "b"), {"ex": EX, "deep": EX + "deep/"})


class Terminal(BytesIO):
    def isatty(self) -> bool:
        return True


def cells(*terms: URIRef | Literal) -> list[str]:
    """How the table shows each term."""
    one = query(select("a"), dict(QUERY.prefixes))
    lines = written("table", one, match(one, [{"a": term} for term in terms])).decode().splitlines()[1:]
    return [line.split(None, 2)[2] for line in lines]


def test_iris_are_shortened_by_the_longest_prefix_that_fits() -> None:
    assert cells(URIRef(EX + "deep/x"), URIRef(EX + "x"), URIRef(EX + "a/b"), URIRef("http://other/x")) == [
        "deep:x",
        "ex:x",
        f"<{EX}a/b>",
        "<http://other/x>",
    ]


def test_numbers_and_times_stand_bare_and_text_in_quotes() -> None:
    assert cells(
        Literal("01", datatype=XSD.integer, normalize=False),
        Literal("2026-01-02T00:00:00Z", datatype=XSD.dateTime, normalize=False),
        Literal("7"),
        Literal("7", datatype=URIRef(EX + "unit")),
    ) == ["01", "2026-01-02T00:00:00Z", '"7"', '"7"^^ex:unit']


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\u0085", "\n", "\r"])
def test_no_character_of_the_data_steers_the_terminal(character: str) -> None:
    for terminal in (BytesIO(), Terminal()):
        writer("table", QUERY, terminal).match(
            match(QUERY, [{"a": Literal(f"x{character}[31my", datatype=XSD.integer)}])
        )
        text = terminal.getvalue().decode()
        assert f"{character}[31m" not in text
        assert len(text.splitlines()) == 2


def test_a_column_grows_with_its_cells() -> None:
    text = written(
        "table",
        QUERY,
        match(QUERY, [{"a": Literal("1", datatype=XSD.integer), "b": Literal("x")}]),
        match(QUERY, [{"a": Literal("1000", datatype=XSD.integer), "b": Literal("x")}]),
        match(QUERY, [{"a": Literal("1", datatype=XSD.integer), "b": Literal("日本")}]),
        match(QUERY, [{"b": Literal("x")}]),
    ).decode()
    assert text == (
        "start  end  ?a  ?b\n"
        '1      2    1   "x"\n'
        '1      2    1000  "x"\n'
        '1      2    1     "日本"\n'
        '1      2          "x"\n'
    )


def test_one_long_cell_does_not_pad_all_later_lines() -> None:
    long = match(QUERY, [{"a": Literal("x" * 10_000), "b": Literal("y")}])
    short = match(QUERY, [{"a": Literal("x"), "b": Literal("y")}])
    lines = written("table", QUERY, long, short).decode().splitlines()
    assert lines[1].endswith('"  "y"')
    assert len(lines[2]) < 100


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_on_a_terminal_lines_are_folded_to_its_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    results = writer("table", QUERY, out)
    for length in (1, 500):
        results.match(match(QUERY, [{"a": Literal("x" * length), "b": Literal("日" * length)}]))
    results.close()
    plain = [
        line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in out.getvalue().decode().splitlines()
    ]
    assert max(map(cell_len, plain)) <= columns
    assert "".join(plain).count("x") == 501
    assert "".join(plain).count("日") == 501


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    writer("table", QUERY, out).close()
    assert b"\x1b[1m" in out.getvalue()
    assert b"\x1b" not in written("table", QUERY)
