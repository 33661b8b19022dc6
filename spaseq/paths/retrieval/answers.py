"""Read the answers of language models: text or JSON values in, names of topics or relation paths out.

Models think aloud, write prose and fences round their JSON, wrap a list in an object, or give one path where
a list of paths was asked for. All of these are read. If several lists have the form wanted, the last one that
is not empty counts; but a text with only single paths, one after the other, gives all of them.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final, TypeVar

from spaseq.errors import RetrievalError
from spaseq.excerpts import bounded

_Value = TypeVar("_Value")

_THOUGHTS: Final = re.compile(
    r"<(think|thinking|thought|reasoning|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
#: The end of thoughts that began in the prompt.
_REST_OF_THOUGHTS: Final = re.compile(
    r"\A.*</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE
)
_OPENING: Final = re.compile(r"[\[{]")
_ARROWS: Final = re.compile(r"\s*(?:/|->|→)\s*")
_TERM: Final = re.compile(r"[:<]")

#: At most this many opening brackets of an answer are tried as the beginning of JSON.
_MOST_TRIED: Final = 1_000

_TOPICS_FORM: Final = 'a JSON list of names, as ["Ada Lovelace"]'
_PATHS_FORM: Final = (
    'a JSON list of lists of relation names, as [["^starred", "directed_by"], ["release_year"]]'
)


class AnswerError(RetrievalError):
    """An answer of a language model that cannot be read; the message shows the form wanted."""


def read_topics(answer: Any) -> list[str]:
    """Return the names of topics in an answer.

    Raises AnswerError, with the form wanted, if there are none that can be read, as in a text without JSON.

    >>> read_topics('<think>Who is she?</think> Sure: {"topics": ["Ada Lovelace"]}')
    ['Ada Lovelace']
    """
    found = [topics for value in _values(answer) if (topics := _topics(value)) is not None]
    if not found:
        raise _unread(answer, _TOPICS_FORM)
    return next((topics for topics in reversed(found) if topics), [])


def read_paths(answer: Any) -> list[Any]:
    """Return the relation paths in an answer, in the form that ``retrieve`` takes.

    Paths that ``retrieve`` will reject are included. Raises AnswerError, with the form wanted.

    >>> read_paths('One path: ["^starred", "directed_by"]')
    [['^starred', 'directed_by']]
    """
    values = _values(answer)
    nested = [value for value in values if not _is_flat(value)]
    found = [paths for value in nested or values if (paths := _paths(value)) is not None]
    if not found:
        raise _unread(answer, _PATHS_FORM)
    if not nested:  # a path a line
        return [path for paths in found for path in paths]
    return next((paths for paths in reversed(found) if paths), [])


def _values(answer: Any) -> list[Any]:
    """Return the JSON values in an answer, or a list in Python's syntax if there are none."""
    if not isinstance(answer, str):
        return [answer]
    text = _REST_OF_THOUGHTS.sub("", _THOUGHTS.sub("", answer)).strip()
    with suppress(ValueError, RecursionError):
        return [json.loads(text)]
    if found := [*_inside(text)]:
        return found
    quoted = text[text.find("[") : text.rfind("]") + 1]  # as Python writes lists
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return [ast.literal_eval(quoted)] if "'" in quoted else []
    return []


def _inside(text: str) -> Iterator[Any]:
    """Yield the outermost JSON lists and objects in a text."""
    decoder, end = json.JSONDecoder(), 0
    for opening in islice(_OPENING.finditer(text), _MOST_TRIED):
        if opening.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except RecursionError:
            return
        except ValueError:
            continue
        if not value or '"' in text[opening.start() : end]:  # [1] is a note's number
            yield value


def _topics(value: Any) -> list[str] | None:
    match value:
        case str():
            return [value]
        case dict():
            return _of_object(value, _topics)
        case list():
            names = [[str(item)] if isinstance(item, int | float) else _topics(item) for item in value]
            return None if None in names else [name for some in names for name in some or ()]
        case _:
            return None


def _paths(value: Any) -> list[Any] | None:
    match value:
        case dict():
            return _of_object(value, _paths)
        case str():
            return [_path(value)]
        case list():
            if _is_flat(value) and any(map(_is_name, value)):
                joined = any(_is_name(text) and len(_ARROWS.split(text)) > 1 for text in value)
                return [_path(text) for text in value] if joined else [[*value]]
            return [_path(item) for item in value]
        case _:
            return None


def _path(item: Any) -> Any:
    """Return one path: a text split into its names, or the path inside an object."""
    match item:
        case str() if not _TERM.search(item):
            return _ARROWS.split(item.strip())
        case dict():
            return _of_object(item, lambda value: _path(value) if isinstance(value, str | list) else None)
        case _:
            return item


def _is_flat(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_name(text: str) -> bool:
    """Return whether a text has only names of relations, and is not a path expression."""
    return not _TERM.search(text)


def _of_object(value: dict[str, Any], read: Callable[[Any], _Value | None]) -> _Value | None:
    """Return the first value of an object that ``read`` can read; lists and objects are tried first."""
    items = sorted(value.values(), key=lambda item: not isinstance(item, list | dict))
    return next((found for item in items if (found := read(item)) is not None), None)


def _unread(answer: Any, form: str) -> AnswerError:
    return AnswerError(f"{bounded(str(answer).strip() or 'an empty answer')}: this is not {form}")
