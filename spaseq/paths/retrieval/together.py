"""One walk of the graph for all questions with the same topics, if the budget has room for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spaseq.errors import LimitError
from spaseq.paths.graph.linking.candidates import Candidate
from spaseq.paths.graph.names import names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.modes import Mode
from spaseq.paths.path import Path, path_text
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.retrieval.retrieved import Rejected
from spaseq.paths.retrieval.walking import Walks, walk
from spaseq.paths.retrieval.wanted import Usable
from spaseq.paths.search._kernel import Ids
from spaseq.terms.dictionary import Term

#: Bytes that ranking takes for a path, and for the vector of its text.
_RANKED_BYTES: Final = 2_000
_VECTOR_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A question that has been read: its usable and rejected expressions, and its topics as nodes."""

    question: str | None
    usable: tuple[Usable, ...]
    rejected: tuple[Rejected, ...]
    warnings: tuple[str, ...]
    topics: Ids
    unknown: tuple[Term, ...]
    linked: tuple[Candidate, ...]

    @property
    def path_bytes(self) -> int:
        """The bytes that ranking takes for a path."""
        return _RANKED_BYTES + _VECTOR_BYTES * (self.question is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """The paths that a question's expressions accept; ``place`` is the question's number.

    ``accepted`` maps each path to the expressions that accept it, as indexes of ``plan.usable``. ``looked``
    and ``truncated`` are those of ``Walks``; ``size`` is the number of bytes that ranking takes.
    """

    place: int
    plan: Plan
    accepted: dict[Path, set[int]]
    texts: dict[Path, str]
    looked: int
    truncated: bool
    size: int

    @property
    def distinct(self) -> list[str]:
        """The distinct texts, in an order that does not depend on how the graph was loaded."""
        return sorted(set(self.texts.values()))


class Together:
    """Walks one graph for several questions; ``most`` bounds the paths of a walk, prefixes included."""

    def __init__(self, graph: Snapshot, mode: Mode | None, most: int | None, *, returning: bool) -> None:
        self._graph = graph
        self._mode = mode or Mode.TRAIL
        self._most = most
        self._returning = returning

    def walk(self, plans: Sequence[Plan]) -> Iterator[Walked]:
        """Yield what each question alone would find; questions with the same topics come together."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, plan in enumerate(plans):
            groups.setdefault(tuple(plan.topics.tolist()), []).append(place)
        for places in groups.values():
            yield from self._shared([(place, plans[place]) for place in places])

    def _shared(self, group: list[tuple[int, Plan]]) -> Iterator[Walked]:
        """Walk once for all questions of the group, or for each half if they exceed a bound together.

        Each half may use the whole budget and memory. Raises LimitError if one question alone takes too much.
        """
        try:
            found = self._walk(group)
        except LimitError:
            if len(group) == 1:
                raise
            found = None
        if found is not None:
            yield from found
            return
        middle = len(group) // 2
        yield from self._shared(group[:middle])
        yield from self._shared(group[middle:])

    def _walk(self, group: list[tuple[int, Plan]]) -> list[Walked] | None:
        """Walk once for a group; return None if it has several questions and the budget cuts off paths."""
        # Keys: an expression, and whether it is plain. Values: indexes into the group and into plan.usable.
        askers: dict[tuple[str | Expression, bool], list[tuple[int, int]]] = {}
        for number, (_, plan) in enumerate(group):
            for i, used in enumerate(plan.usable):
                askers.setdefault((used.expression, used.plain), []).append((number, i))
        topics = group[0][1].topics
        memory = self._graph.memory(f"retrieve by {len(askers):,} expressions from {len(topics):,} topics")
        walks = walk(
            prefixes_of(self._graph, askers),
            topics,
            self._mode,
            returning=self._returning,
            most=self._most,
            memory=memory,
        )
        if walks.truncated and len(group) > 1:
            return None
        by_state = _by_state(walks, [*askers.values()])
        complete = walks.complete()
        states = np.bincount(walks.state[complete], minlength=len(by_state)).tolist()
        counts = [0] * len(group)
        for count, accepted in zip(states, by_state, strict=True):
            for number in {number for number, _ in accepted}:
                counts[number] += count
        sizes = [count * plan.path_bytes for count, (_, plan) in zip(counts, group, strict=True)]
        memory.take(sum(sizes), f"{sum(counts):,} paths")
        found: list[dict[Path, set[int]]] = [{} for _ in group]
        for place in complete.tolist():
            path = walks.path(place)
            for number, i in by_state[int(walks.state[place])]:
                found[number].setdefault(path, set()).add(i)
        texts = {path: path_text(path, names_of(self._graph)) for paths in found for path in paths}
        return [
            Walked(
                place,
                plan,
                found[number],
                {path: texts[path] for path in found[number]},
                walks.looked,
                walks.truncated,
                sizes[number],
            )
            for number, (place, plan) in enumerate(group)
        ]


def prefixes_of(graph: Snapshot, expressions: Iterable[tuple[str | Expression, bool]]) -> Prefixes:
    """Return the automaton of all expressions; each is given with whether it is plain."""
    given = [*expressions]
    return Prefixes(graph, [text for text, _ in given], [i for i, (_, plain) in enumerate(given) if plain])


def _by_state(walks: Walks, askers: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """Return for each state the askers of the expressions that it accepts."""
    prefixes = walks.prefixes
    return [[asker for e in prefixes.accepts(q) for asker in askers[e]] for q in range(len(prefixes))]
