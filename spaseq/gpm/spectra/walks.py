"""Property paths in one event's graph: where each begins and ends, by its few triples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pyoxigraph import NamedNode

from spaseq.gpm.algebra import Pair, by_first
from spaseq.gpm.expressions.walk import takes_no_step
from spaseq.language.syntax import (
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
)
from spaseq.limits import Spending
from spaseq.terms.dictionary import Dictionary


class Facts:
    """One event's graph: its triples by predicate, each a (subject, object) pair."""

    __slots__ = ("views",)

    def __init__(self, triples: Iterable[tuple[int, int, int]]) -> None:
        self.views: defaultdict[int, list[Pair]] = defaultdict(list)
        for s, p, o in triples:
            self.views[p].append((s, o))

    @property
    def nodes(self) -> set[int]:
        """Its subjects and objects."""
        return {node for pairs in self.views.values() for pair in pairs for node in pair}


#: Gives the begin and the end of a path in an event, once for every way to walk it; of a loop once.
Walk = Callable[[Facts], Sequence[Pair]]


def walk(path: Path, dictionary: Dictionary, start: int | None = None, end: int | None = None) -> Walk:
    """Walks a path, as SPARQL 1.1, 18.2.2.4 and 18.4, take it apart.

    ``start`` and ``end``: the ids of terms there, None for variables. Who takes no step gets from each of
    these to itself, as from any node of the graph.
    """
    match path:
        case NamedNode():
            predicate = dictionary.pin(path)
            return lambda facts: facts.views.get(predicate, ())
        case PathInverse(inner):
            forward = walk(inner, dictionary, end, start)
            return lambda facts: [(o, s) for s, o in forward(facts)]
        case PathAlternative(parts):
            walks = [walk(part, dictionary, start, end) for part in parts]
            return _alternative(walks, dictionary.spending)
        case PathSequence((first, *others, last)):
            middle = [walk(part, dictionary) for part in others]
            steps = [*middle, walk(last, dictionary, None, end)]
            return _sequence(walk(first, dictionary, start), steps, dictionary.spending)
        case PathRepeat(inner, _, maximum):
            ends = [term for term in (start, end) if term is not None]
            step, may_stay = walk(inner, dictionary), takes_no_step(path)
            return _repeated(step, may_stay, maximum == 1, ends, dictionary.spending)
        case PathNegated(forward, inverse):
            return _negated({*map(dictionary.pin, forward)}, {*map(dictionary.pin, inverse)})
    raise ValueError(f"no path: {path}")


def _alternative(walks: Sequence[Walk], spending: Spending) -> Walk:
    def alternative(facts: Facts) -> Sequence[Pair]:
        pairs = [pair for one in walks for pair in one(facts)]
        spending.rows(len(pairs))
        return pairs

    return alternative


def _sequence(begin: Walk, steps: Sequence[Walk], spending: Spending) -> Walk:
    def sequence(facts: Facts) -> Sequence[Pair]:
        pairs = begin(facts)
        for step in steps:
            further = by_first(step(facts))
            spending.rows(sum(len(further.get(middle, ())) for _, middle in pairs))
            pairs = [(s, end) for s, middle in pairs for _, end in further.get(middle, ())]
        return pairs

    return sequence


def _repeated(step: Walk, may_stay: bool, is_once: bool, ends: Sequence[int], spending: Spending) -> Walk:
    def repeated(facts: Facts) -> Sequence[Pair]:
        pairs = step(facts)
        found = dict.fromkeys((node, node) for node in {*facts.nodes, *ends}) if may_stay else {}
        if is_once:
            return [*(found | dict.fromkeys(pairs))]
        further = by_first(pairs)
        for begin in further:
            reached, left = set[int](), [begin]
            while left:
                new = {end for _, end in further.get(left.pop(), ())} - reached
                reached |= new
                left += new
            found |= dict.fromkeys((begin, end) for end in reached)
            spending.rows(len(found))
        return [*found]

    return repeated


def _negated(forward: set[int], inverse: set[int]) -> Walk:
    def negated(facts: Facts) -> Sequence[Pair]:
        found: list[Pair] = []
        for predicate, pairs in facts.views.items():
            if predicate not in forward and (forward or not inverse):
                found += pairs
            if predicate not in inverse and inverse:
                found += [(o, s) for s, o in pairs]
        return found

    return negated
