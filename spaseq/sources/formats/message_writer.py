"""Writes RDF Messages (see ``messages``). Reading them again gives the same messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Final

from pyoxigraph import Quad, RdfFormat, serialize

_SYNTAXES: Final = {"trig": RdfFormat.TRIG, "nq": RdfFormat.N_QUADS}


def write_messages(messages: Iterable[Iterable[Quad]], output: IO[bytes], syntax: str = "nq") -> None:
    """Write datasets as messages, each with a delimiter after it, in ``nq`` (default) or ``trig``.

    Each message is flushed, so that the reader of a pipe gets it at once.

    >>> from io import BytesIO
    >>> from pyoxigraph import NamedNode
    >>> out = BytesIO()
    >>> a = NamedNode("http://example.org/a")
    >>> write_messages([[Quad(a, a, a, a)]], out)
    >>> print(out.getvalue().decode(), end="")
    VERSION "1.2-messages"
    <http://example.org/a> <http://example.org/a> <http://example.org/a> <http://example.org/a> .
    MESSAGE
    """
    output.write(b'VERSION "1.2-messages"\n')
    for message in messages:
        serialize(message, output, format=_SYNTAXES[syntax])
        output.write(b"MESSAGE\n")
        output.flush()
