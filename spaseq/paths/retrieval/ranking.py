"""Texts as vectors, and their similarity to a question.

An embedding function turns a list of texts into a matrix with a row for each text. It may call a language
model. The default needs no model: it hashes words and character trigrams, and so finds the same words and
words of the same stem.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from spaseq.errors import RetrievalError

Vectors = npt.NDArray[np.float64]

#: ``embed(texts)``: a row of numbers for each text.
Embed = Callable[[list[str]], Any]

#: ``chunks(sources)``: the texts of passages by their sources; sources without a passage are left out.
Chunks = Callable[[list[str]], Mapping[str, str]]

_DIMENSIONS: Final = 512
_GRAM: Final = 3
#: The weight of a word, and of all its trigrams together.
_WORD: Final = 1.0
_GRAMS: Final = 1.0
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_WORDS: Final = re.compile(r"[^\W_]+")


def count_tokens(text: str) -> int:
    """Return the number of words and punctuation marks: about three quarters of what most models count.

    >>> count_tokens("(Kismet, starred actors, Edward Arnold)")
    9
    """
    return len(_TOKEN.findall(text))


def hashed_words(texts: Sequence[str]) -> Vectors:
    """Return a vector of 512 numbers for each text, of its hashed words and their trigrams.

    Case, order and repetition of words do not matter. The vectors are the same on every machine. Shape
    (texts, 512).

    >>> asked, *texts = hashed_words(["who directed it", "directed by Clint", "release year 1999"])
    >>> like, unlike = cosine(asked, np.array(texts))
    >>> bool(like > 0.2 > abs(unlike))
    True
    """
    rows: dict[str, int] = {}
    words = [dict.fromkeys(_WORDS.findall(text.casefold())) for text in texts]
    numbers = [[rows.setdefault(word, len(rows)) for word in found] for found in words]
    known = np.array([_word(word) for word in rows]).reshape(len(rows), _DIMENSIONS)
    return np.array([known[found].sum(axis=0) for found in numbers]).reshape(len(texts), _DIMENSIONS)


def _word(word: str) -> Vectors:
    vector = np.zeros(_DIMENSIONS)
    _add(vector, word, _WORD)
    framed = f"<{word}>"
    grams = [framed[i : i + _GRAM] for i in range(len(framed) - _GRAM + 1)]
    for gram in grams:
        _add(vector, f"#{gram}", _GRAMS / len(grams))
    return vector


def _add(vector: Vectors, feature: str, weight: float) -> None:
    number = crc32(feature.encode())
    vector[number % _DIMENSIONS] += weight if number >> 31 else -weight


def embedded(embed: Embed, texts: Sequence[str]) -> Vectors:
    """Return a row for each text, by one call of ``embed``, or by none if there are no texts.

    Raises RetrievalError if ``embed`` does not return a matrix of finite numbers with a row for each text.
    """
    return _checked(embed([*texts]), len(texts)) if texts else np.zeros((0, 0))


def cosine(question: Vectors, texts: Vectors) -> Vectors:
    """Return the cosine between ``question`` and each row of ``texts``; 0 for a vector of zeros."""
    products = texts @ question
    norms = np.linalg.norm(texts, axis=1) * np.linalg.norm(question)
    similar: Vectors = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return similar


class CachedEmbed:
    """An ``embed`` function with a cache of the vectors of the ``most`` texts last used.

    Threads may share it; a text that two threads need at the same time may be embedded twice.

    >>> calls = []
    >>> def embed(texts):
    ...     calls.append(texts)
    ...     return hashed_words(texts)
    >>> cached = CachedEmbed(embed)
    >>> rows = cached(["a", "b"]), cached(["b", "c", "c"])
    >>> calls
    [['a', 'b'], ['c']]
    """

    def __init__(self, embed: Embed, most: int = 100_000) -> None:
        self._embed = embed
        self._most = most
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def __call__(self, texts: list[str]) -> list[Vectors]:
        """Return a vector for each text, in order. Raises RetrievalError as ``embedded`` does."""
        with self._lock:
            found = {text: self._vectors[text] for text in dict.fromkeys(texts) if text in self._vectors}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        found.update(zip(new, embedded(self._embed, new), strict=True))
        with self._lock:
            for text in found:  # keeps the texts last used at the end
                self._vectors.pop(text, None)
            self._vectors.update(found)
            for text in [*islice(self._vectors, max(0, len(self._vectors) - self._most))]:
                del self._vectors[text]
        return [found[text] for text in texts]


def _checked(returned: Any, count: int) -> Vectors:
    try:
        vectors = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RetrievalError(f"what embed returned is no matrix of numbers: {error}") from None
    if vectors.ndim != 2 or len(vectors) != count:
        shape = " × ".join(map(str, vectors.shape)) or "a single number"
        raise RetrievalError(
            f"embed was given {count:,} texts and returned {shape}: it must return a row for each text"
        )
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise RetrievalError(f"embed returned a vector that is not finite, for text {row}")
    return vectors
