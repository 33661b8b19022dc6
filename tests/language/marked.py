"""Texts with a mark ``‸`` before the character that an error must point at."""

from __future__ import annotations

from spaseq.errors import QueryError

MARK = "‸"

HEAD = """PREFIX : <http://example.org/>
SELECT *
WITHIN 10 SECONDS
FROM STREAM S <http://example.org/s>
"""


def asked(where: str, head: str = HEAD) -> str:
    """A query with this WHERE."""
    return head + where


def place(marked: str) -> tuple[str, int, int]:
    """The text without its mark, and the line and column of the mark, from 1."""
    before, after = marked.split(MARK)
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def assert_points_at(problem: QueryError, text: str, line: int, column: int) -> None:
    """The error has this place, the line of the text, and a caret below the character."""
    assert (problem.lineno, problem.offset) == (line, column), str(problem)
    whole = text.split("\n")[line - 1].rstrip("\r")
    assert problem.text is not None
    assert problem.text == whole or problem.text.strip("…") in whole, "an excerpt of a long line"
    shown = str(problem).split("\n")
    assert shown[0].startswith(f"{problem.filename}:{line}:{column}: ")
    if problem.text:
        caret = shown[2].removeprefix("    ")
        assert caret.endswith("^")
        assert len(caret) == column
