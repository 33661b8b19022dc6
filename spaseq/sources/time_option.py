"""The option ``time=``: arrival, a column of rows, a predicate, or a path of predicates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pyoxigraph import NamedNode, Triple

from spaseq.errors import SourceError
from spaseq.terms.dictionary import Term
from spaseq.terms.identified import Row
from spaseq.terms.iris import WELL_KNOWN

_STEP: Final = r"<[^<>]*>|[A-Za-z][\w.-]*:[\w.%-]*"
_PATH: Final = re.compile(rf"(?:{_STEP})(?:/(?:{_STEP}))*")


@dataclass(frozen=True, slots=True)
class TimePath:
    """A sequence of predicates.

    An event's time is at the end of the path, which may start from any subject of the event's graph.
    """

    steps: tuple[NamedNode, ...]

    def __str__(self) -> str:
        return "/".join(map(str, self.steps))

    def ends(self, rows: Iterable[Row], start: Term | None = None) -> list[Term]:
        """Return the distinct terms at the path's end, in the order of the triples.

        ``start``: the subject from which the path starts; None: any subject.
        """
        rows = [*rows]
        reached: dict[Term | Triple, None] | None = None if start is None else {start: None}
        for step in self.steps:
            reached = dict.fromkeys(o for s, p, o in rows if p == step and (reached is None or s in reached))
        return [term for term in reached or () if not isinstance(term, Triple)]


#: The value of ``time=``. Text other than ``arrival`` is the name of a column.
TimeOption = NamedNode | TimePath | str


def read_time_option(text: str) -> TimeOption:
    """Parse the value of ``time=``. Raises SourceError for a path with an unknown prefix or a malformed IRI.

    >>> str(read_time_option("dct:temporal/dcat:startDate"))
    '<http://purl.org/dc/terms/temporal>/<http://www.w3.org/ns/dcat#startDate>'
    >>> read_time_option("dct:created"), read_time_option("urn:at"), read_time_option("Date/Time")
    (<NamedNode value=http://purl.org/dc/terms/created>, <NamedNode value=urn:at>, 'Date/Time')
    """
    steps = re.findall(_STEP, text) if _PATH.fullmatch(text) else []
    if len(steps) > 1:
        return TimePath(tuple(_step(step, text) for step in steps))
    if steps and (text[0] == "<" or text.partition(":")[0] in WELL_KNOWN):
        return _step(text, text)
    try:
        return NamedNode(text) if ":" in text else text
    except ValueError:
        return text


def say_time_option(steps: tuple[NamedNode, ...]) -> str:
    """Return the option of a predicate or a path as a location has it, as short as possible.

    >>> say_time_option((NamedNode("http://purl.org/dc/terms/created"),))
    'time=dct:created'
    """
    if len(steps) == 1 and _short(steps[0]).startswith("<"):
        said = steps[0].value
    else:
        said = "/".join(map(_short, steps))
    return f"time={re.sub('[&%]', lambda found: quote(found[0]), said)}"


def _short(iri: NamedNode) -> str:
    for prefix, namespace in WELL_KNOWN.items():
        local = iri.value.removeprefix(namespace)
        if local != iri.value and re.fullmatch(r"[A-Za-z_][\w-]*", local):
            return f"{prefix}:{local}"
    return str(iri)


def _step(step: str, text: str) -> NamedNode:
    prefix, _, local = step.partition(":")
    if step[0] != "<" and prefix not in WELL_KNOWN:
        raise SourceError(
            f"time={text!r} is a path with an unknown prefix {prefix!r}: write the IRI in <…>, or use one "
            f"of {', '.join(WELL_KNOWN)}"
        )
    try:
        return NamedNode(step[1:-1] if step[0] == "<" else WELL_KNOWN[prefix] + local)
    except ValueError as error:
        raise SourceError(f"time={text!r}: {step} is not an IRI: {error}") from None
