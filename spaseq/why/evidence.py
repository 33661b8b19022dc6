"""The input of a diagnosis: a query, its counts and its first events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.language.syntax import Query
from spaseq.language.syntax.printing import print_term
from spaseq.patterns.kb import KnowledgeBase
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.why.diagnosis import GpmStats


@dataclass(frozen=True, slots=True)
class Evidence:
    """A query, its counts, and the first of its events. ``begin``: when its first window began.

    ``ended``: the query ended early, and its events were dropped with it. ``contexts``: by stream, the
    JSON-LD context that lifts its rows, if it has rows. ``failed_calls``: failed calls of the user's
    functions, by IRI.
    """

    pattern: SequencePattern
    events: int
    matches: int
    late: int
    gpms: Mapping[str, GpmStats]
    sample: EventBatch | None
    begin: int | None
    dictionary: Dictionary
    kb: KnowledgeBase
    ended: bool = False
    contexts: Mapping[Term, Path] = field(default_factory=dict)
    failed_calls: Mapping[str, int] = field(default_factory=dict)

    @property
    def query(self) -> Query:
        """Return the query."""
        return self.pattern.query

    @property
    def sampled(self) -> int:
        """Return the number of sampled events."""
        return 0 if self.sample is None else len(self.sample)

    def show(self, term: Term) -> str:
        """Return a term as written in the query."""
        return print_term(term, dict(self.query.prefixes))

    def streams(self, names: tuple[str, ...]) -> frozenset[int]:
        """Return the ids of streams by their names in the query."""
        return frozenset(self.dictionary.intern(self.query.stream(name)) for name in names)
