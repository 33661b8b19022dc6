"""What language models answer, and what is read of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import RetrievalError
from spaseq.paths.retrieval.answers import read_paths, read_topics

DIRECTED = ["^starred", "directed_by"]


@pytest.mark.parametrize(
    "answer",
    [
        '["Ada Lovelace"]',
        '"Ada Lovelace"',
        '```json\n["Ada Lovelace"]\n```',
        '<think>["Babbage"]? No.</think>["Ada Lovelace"]',
        'perhaps ["Babbage"]</think>\n["Ada Lovelace"]',
        'The question [as I read it] names one person: ["Ada Lovelace"]. It is about her [1].',
        '{"topics": ["Ada Lovelace"]}',
        '{"question": "Who?", "entities": [{"name": "Ada Lovelace"}]}',
        "['Ada Lovelace',]",
        ["Ada Lovelace"],
        {"names": "Ada Lovelace"},
    ],
)
def test_topics(answer: Any) -> None:
    assert read_topics(answer) == ["Ada Lovelace"]


def test_topics_of_other_kinds() -> None:
    assert read_topics("[]") == []
    assert read_topics('["Ada", 1815]') == ["Ada", "1815"]


@pytest.mark.parametrize(
    "answer",
    [
        '[["^starred", "directed_by"]]',
        '["^starred", "directed_by"]',
        '```\n[["^starred", "directed_by"],]\n```',
        '<thinking>[["starred"]]</thinking> Here:\n\n```json\n[["^starred", "directed_by"]]\n``` Good luck!',
        '{"paths": [["^starred", "directed_by"]], "reason": "films"}',
        '[{"path": ["^starred", "directed_by"], "score": 0.9}]',
        '["^starred/directed_by"]',
        '["^starred -> directed_by"]',
        'From ["^starred"] one goes on: [["^starred", "directed_by"]]',
        DIRECTED,
        {"relation_paths": [DIRECTED]},
    ],
)
def test_one_path(answer: Any) -> None:
    assert read_paths(answer) == [DIRECTED]


def test_several_paths() -> None:
    two = [DIRECTED, ["release_year"]]
    assert read_paths('[["^starred", "directed_by"], ["release_year"]]') == two
    assert read_paths('["^starred", "directed_by"]\n["release_year"]') == two
    assert read_paths('[["^starred", "directed_by"], "release_year"]') == two
    assert read_paths('["^starred/directed_by", "release_year"]') == two
    assert read_paths([":starred/:year", "^:starred"]) == [":starred/:year", "^:starred"]
    assert read_paths([[DIRECTED, 0.5], ":starred"]) == [[DIRECTED, 0.5], ":starred"]
    assert read_paths([["starred"], 5]) == [["starred"], 5]
    assert read_paths("[]") == []


@pytest.mark.parametrize(
    "answer", ["", "no", "I do not know [1].", '{"a": 1}', "<think>", "7", "[" * 100_000]
)
@pytest.mark.parametrize("read", [read_topics, read_paths])
def test_what_cannot_be_read_is_an_error_with_the_form(read: Any, answer: str) -> None:
    with pytest.raises(RetrievalError, match=r"this is not a JSON list of .*, as ") as caught:
        read(answer)
    assert len(str(caught.value)) < 500


@given(st.text(st.sampled_from("[]{}\",:a1 '<>think/"), max_size=40))
def test_any_text_is_read_or_an_error(text: str) -> None:
    for read in (read_topics, read_paths):
        with suppress(RetrievalError):
            assert isinstance(read(text), list)
