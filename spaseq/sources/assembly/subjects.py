"""Triples → events by subject: ``by=subject`` (consecutive triples), ``by=IRI`` (members of a document).

A blank node belongs to the subject that reaches it. Triples that no subject reaches are a malformed event.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from pyoxigraph import NamedNode, Quad, Triple

from spaseq.errors import SourceError, SpaseqWarning
from spaseq.sources.assembly.assemble import HELD, REMEMBERED, GraphAssembler, TripleGroups
from spaseq.sources.assembly.sink import EventSink, Name
from spaseq.terms.dictionary import Term
from spaseq.terms.identified import Row

#: The most triples of a document that is read whole (``by=IRI``); about 1 GB of memory.
DOCUMENT: Final = 1 << 21

#: A possible node of an event's graph.
Node = Term | Triple


def assembler_of(sink: EventSink, triples: int | None) -> Assembler | None:
    """Return the assembler that the options ask for; None without ``triples=`` and ``by=``."""
    if triples:
        return TripleGroups(sink, triples)
    if isinstance(sink.by, NamedNode):
        return Members(sink, sink.by)
    return SubjectGroups(sink) if sink.by == "subject" else None


class SubjectGroups:
    """Consecutive triples of one IRI → an event, with the blank nodes that it reaches."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._subject: NamedNode | None = None
        self._number = 0
        self._rows: list[Row] = []
        # Triples of blank nodes that no subject has reached yet, and how many of them preceded the subject.
        self._loose: list[Row] = []
        self._before = 0
        self._problem = ""
        # The subject of a triple that was just lost, if known, and why.
        self._lost: tuple[Name | None, str] | None = None
        self._seen: dict[Term, None] = {}
        self._has_warned = False

    def quads(self, quads: Iterable[Quad]) -> None:
        """Take the next quads of the stream."""
        for s, p, o, _ in quads:
            if isinstance(s, NamedNode) and s != self._subject:
                self._begin(s)
            self._lost = None
            if isinstance(s, NamedNode):
                self._rows.append((s, p, o))
            else:
                self._loose.append((s, p, o))
            if len(self._rows) + len(self._loose) > HELD:
                self._problem = f"more than {HELD} triples in one event"
                del self._rows[1000:], self._loose[1000:]

    def spoil(self, subject: Name | None, reason: str, *, certain: bool) -> None:
        """Note a lost triple of ``subject``. If that is not ``certain``, it may be of the current subject."""
        if self._subject is not None and (subject in (None, self._subject) or not certain):
            self._problem = self._problem or reason
        if subject != self._subject:
            self._lost = subject, reason

    def close(self) -> None:
        """End the input."""
        self._finish()
        if self._loose:
            self._refuse(self._loose)

    def _begin(self, subject: NamedNode) -> None:
        self._finish()
        self._subject = subject
        if self._lost is not None and self._lost[0] in (None, subject):
            self._problem = self._lost[1]
        self._number += 1
        if subject in self._seen and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self._sink.stream}, event {self._number}: {subject} comes again after another subject, "
                "and begins a new event (by=subject): let the triples of a subject stand together",
                SpaseqWarning,
                stacklevel=2,
            )
        self._seen[subject] = None
        if len(self._seen) > REMEMBERED:
            del self._seen[next(islice(self._seen, 1))]

    def _finish(self) -> None:
        """Complete the current subject. Loose triples may belong to the next subject, not to a later one."""
        if self._subject is None:
            return
        before, after = self._loose[: self._before], self._loose[self._before :]
        reached = _reached(self._rows, self._loose)
        rows = self._rows + [row for row in self._loose if row[0] in reached]
        if left := [row for row in before if row[0] not in reached]:
            self._refuse(left)
        self._loose = [row for row in after if row[0] not in reached]
        self._before = len(self._loose)
        self._sink.add(rows, self._subject, (), f"event {self._number}", self._problem)
        self._subject, self._rows, self._problem = None, [], ""

    def _refuse(self, rows: list[Row]) -> None:
        self._sink.add(rows, None, (), f"event {self._number}", _unreached(rows))


class Members:
    """Each object of a predicate in a document → an event with all its triples, wherever they are."""

    def __init__(self, sink: EventSink, predicate: NamedNode) -> None:
        self._sink = sink
        self._predicate = predicate
        self._members: dict[Term, None] = {}
        self._rows: dict[Node, list[Row]] = defaultdict(list)
        self._count = 0
        self._problem = ""
        self._problems: dict[Name, str] = {}

    def quads(self, quads: Iterable[Quad]) -> None:
        """Take the next quads of the document; graph names are ignored."""
        for s, p, o, _ in quads:
            if p == self._predicate and isinstance(o, NamedNode):
                self._members[o] = None
            self._rows[s].append((s, p, o))
            self._count += 1
        if self._count > DOCUMENT:
            raise SourceError(
                f"{self._sink.stream}: by={self._predicate} reads a document whole, and it has more than "
                f"{DOCUMENT:,} triples: cut it, or use by=subject"
            )

    def spoil(self, subject: Name | None, reason: str, *, certain: bool) -> None:
        """Note a lost triple of ``subject``. If that is not ``certain``, it may be of any subject."""
        if isinstance(subject, NamedNode) and certain:
            self._problems.setdefault(subject, reason)
        else:
            self._problem = self._problem or reason

    def close(self) -> None:
        """End the document."""
        loose = [row for s, rows in self._rows.items() if not isinstance(s, NamedNode) for row in rows]
        of_blank: dict[Node, list[Row]] = {s: self._rows[s] for s in dict.fromkeys(row[0] for row in loose)}
        for number, member in enumerate(self._members, 1):
            assert isinstance(member, NamedNode)
            own = self._rows.get(member, [])
            rows = own + [row for node in nodes_from(own, of_blank) for row in of_blank[node]]
            problem = self._problems.get(member, "") or self._problem
            missing = f"{member} has no triples in this document" if not own else ""
            self._sink.add(rows, member, (), f"event {number}", problem or missing)
        if self._count and not self._members:
            self._sink.bad("event 1", f"nothing in the document says {self._predicate}, so it has no events")


Assembler = GraphAssembler | TripleGroups | SubjectGroups | Members


def nodes_from(rows: Iterable[Row], of: Mapping[Node, list[Row]]) -> list[Node]:
    """Return the keys of ``of`` that triples reach, in any number of steps."""
    found: dict[Node, None] = {}
    left = [*rows]
    while left:
        _, _, o = left.pop()
        if not isinstance(o, NamedNode) and o in of and o not in found:
            found[o] = None
            left += of[o]
    return [*found]


def _reached(rows: Iterable[Row], loose: Iterable[Row]) -> set[Node]:
    of: dict[Node, list[Row]] = defaultdict(list)
    for row in loose:
        of[row[0]].append(row)
    return {*nodes_from(rows, of)} if of else set()


def _unreached(rows: list[Row]) -> str:
    return (
        f"no subject beside it reaches the blank node {rows[0][0]}: its triples must stand with its subject's"
    )
