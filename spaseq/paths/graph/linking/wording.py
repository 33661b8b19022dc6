"""How else people write a name: its words in another order, initials, a part of it, a phrase round it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spaseq.paths.graph.linking.index import key

_WORD: Final = re.compile(r"[^\W_]+")

#: The words of a name of which other orders are tried, and of a phrase in which names are looked for, at
#: most.
_MOST_TURNED: Final = 6
_MOST_WORDS: Final = 40

#: The words of a name inside a phrase, at most.
_LONGEST_SPAN: Final = 8

#: The letters of a name inside a phrase, at least.
_LEAST_LETTERS: Final = 3


def words(name: str) -> list[str]:
    """Return the words of a name, without punctuation."""
    return _WORD.findall(name)


def orders(name: str) -> list[str]:
    """Return a name with its last words first, or as it stood before a comma was put in; not as it is.

    >>> orders("Lovelace, Ada")
    ['Ada Lovelace']
    """
    parts = [part for part in name.split(",") if part.strip()]
    if len(parts) == 1:
        parts = words(name)
    if not 1 < len(parts) <= _MOST_TURNED:
        return []
    turned = [" ".join(part.strip() for part in (*parts[i:], *parts[:i])) for i in range(1, len(parts))]
    return list(dict.fromkeys(turned))


def shortened(name: str) -> tuple[str, str] | None:
    """Return with what letters a full name begins and ends, if the name has initials or is one word.

    >>> shortened("A. Lovelace"), shortened("Lovelace"), shortened("Ada Lovelace")
    (('a', 'lovelace'), ('', 'lovelace'), None)
    """
    given = words(name)
    initials = [word for word in given[:-1] if len(word) == 1]
    if not given or len(initials) < len(given) - 1 or len(key(given[-1])) < _LEAST_LETTERS:
        return None
    return key(initials[0]) if initials else "", key(given[-1])


def spans(phrase: str) -> Iterator[tuple[str, float]]:
    """Yield the keys of the word sequences in a phrase, longest first, with their share of the letters."""
    given = [key(word) for word in words(phrase)[:_MOST_WORDS]]
    letters = sum(map(len, given))
    found = {
        "".join(given[i:j])
        for i in range(len(given))
        for j in range(i + 1, min(i + _LONGEST_SPAN, len(given)) + 1)
        if j - i < len(given)
    }
    for text in sorted(found, key=lambda text: (-len(text), text)):
        if len(text) >= _LEAST_LETTERS:
            yield text, len(text) / letters
