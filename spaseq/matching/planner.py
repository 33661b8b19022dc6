"""List the matchers and what each can run, and choose one for a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.normal import is_strict
from spaseq.automaton.pattern import Atom, SequencePattern, may_trail, walk
from spaseq.automaton.show import show
from spaseq.bounds import Bound, Policy
from spaseq.errors import EngineError
from spaseq.language.syntax import UNITS, Consume, Strategy
from spaseq.matching.columns.matcher import ByColumns
from spaseq.matching.context import Context
from spaseq.matching.interpreter.matcher import Interpreter
from spaseq.matching.interpreter.program import RunsProgram
from spaseq.matching.model import PartitionMatcher, StreamWindow
from spaseq.matching.nfa.skip.simulation import SkipSimulation
from spaseq.matching.obstacles import Feature, Obstacle, features, in_words, other_operators
from spaseq.matching.reference import Reference
from spaseq.matching.templates.form import shape
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.shedding.query import BoundedQuery


@dataclass(frozen=True, slots=True)
class MatcherChoice:
    """The matcher of a query, and why; ``otherwise`` says why better ones cannot run it."""

    name: str
    reason: str
    otherwise: tuple[tuple[str, tuple[Obstacle, ...]], ...]


def choose(pattern: SequencePattern) -> MatcherChoice:
    """Return the matcher of a query: the first over columns that can run it, else ``interpreter``."""
    if pattern.query.skip is not None:
        _able("nfa", pattern)
        against = _beyond_skip_tables(pattern)
        if not against:
            return MatcherChoice("nfa", f"{_SKIPPING}, by tables over whole batches", ())
        return MatcherChoice("nfa", f"{_SKIPPING}, event by event", (("nfa by tables", against),))
    otherwise: list[tuple[str, tuple[Obstacle, ...]]] = []
    for name in _PREFERRED:
        reason = _BY_COLUMNS[name][1]
        found = tuple(_obstacles(name, pattern)) or (_lazy_costs(pattern) if name == "lazy" else ())
        if not found:
            return MatcherChoice(name, reason, tuple(otherwise))
        otherwise.append((name, found))
    _able("interpreter", pattern)
    return MatcherChoice("interpreter", _BY_EVENTS["interpreter"], tuple(otherwise))


def chosen(pattern: SequencePattern) -> str:
    """Return the matcher of a query, cached for queries of the same shape."""
    key = shape(pattern.query)
    name = _CHOSEN.get(key)
    if name is None:
        name = choose(pattern).name
        if len(_CHOSEN) >= _MOST_CHOSEN:
            _CHOSEN.clear()
        _CHOSEN[key] = name
    return name


def attends(pattern: SequencePattern) -> tuple[bool, bool]:
    """Return which events without a solution of any GPM a matcher needs: whether all of them, and whether the
    last.

    The last is the one right before an event with a solution.
    """
    query = pattern.query
    counted = UNITS[query.window.unit] is None
    # With partitions, an event without a solution belongs to no partition.
    strict = not query.partition and any(map(is_strict, walk(pattern.root)))
    # Waiting matches become due by the count of events, or at the next event. If a match consumes partial
    # matches, the result depends on the event at which it becomes due.
    due = may_trail(pattern.root) and (counted or strict or query.consume is Consume.ANY)
    return due or query.skip is not None, strict


@dataclass(frozen=True, slots=True)
class UnderBound:
    """The matcher of a query that has a bound; ``sheds``: it keeps the bound by shedding.

    ``reason``: why it sheds, need not shed, or cannot; ``is_kept``: whether the bound is kept in any case.
    ``all_readings``: each match found has all readings of its Kleenes. ``doubts``: parts of the query that
    may cause matches which the query would not have without the bound.
    """

    name: str
    sheds: bool
    is_kept: bool
    reason: str
    all_readings: bool = True
    doubts: tuple[str, ...] = ()


def under_bound(
    pattern: SequencePattern, matcher: str | None = None, policy: Policy = Policy.SHARP
) -> UnderBound:
    """Return the matcher of a query under a bound; ``matcher``: the name that the user requested.

    Raises ``EngineError`` if the requested matcher cannot run the query, or cannot shed its partial matches.
    """
    from spaseq.matching.shedding.query import doubts, obstacles, reads_in_one_way

    name = choose(pattern).name if matcher is None else check(matcher, pattern)
    if name in _STEADY:
        return UnderBound(name, False, True, f"{name} has no partial matches to shed: {_STEADY[name]}")
    skips = pattern.query.skip is not None
    if name == "lazy":
        against = _beyond_buffers(pattern, policy)
        if not against:
            words = "lazy sheds the buffered events that matter least"
            why = tuple(doubts(pattern))
            if why:
                words += f"; with {' and '.join(why)}, other matches may come than without"
            return UnderBound("lazy", True, True, words + _in_streams(pattern), doubts=why)
        if matcher is not None:
            raise EngineError(
                f"the matcher 'lazy' can shed buffered events only if {', and '.join(in_words(against))}: "
                "with a bound, ask for 'nfa' or for none"
            )
    if matcher not in (None, "nfa"):
        raise EngineError(
            f"the matcher {name!r} cannot shed partial matches: with a bound, ask for 'nfa' or for none"
        )
    cannot = _beyond_skip_tables(pattern) if skips else _obstacles("nfa", pattern)
    against = (*obstacles(pattern, policy), *cannot)
    if against:
        words = f"runs without a bound: it could keep one if {', and '.join(in_words(against))}"
        return UnderBound(name, False, False, words)
    words = "nfa sheds the partial matches that matter least"
    if skips:
        words += ", those of a first event together"
    if name != "nfa":
        words += f"; without a bound {name} runs it, which may take less time than that"
    every = skips or reads_in_one_way(pattern)
    if not every:
        words += "; a match whose Kleenes can be read in several ways may come with some of them alone"
    why = tuple(doubts(pattern))
    if why:
        words += f"; with {' and '.join(why)}, other matches may come than without (stats.shed.doubtful)"
    return UnderBound("nfa", True, True, words + _in_streams(pattern), every, why)


def shares_under(pattern: SequencePattern, name: str, policy: Policy) -> bool:
    """Return whether a query that keeps a bound by shedding, in this matcher, may share partial matches.

    It may not if one match excludes others, or if the policy drops whole events at random, since each query
    must decide that alone.
    """
    from spaseq.matching.shedding.query import doubts

    if pattern.query.skip is not None or name not in ("nfa", "lazy"):
        return False
    return policy is not Policy.RANDOM_INPUT and not any(doubts(pattern))


def _in_streams(pattern: SequencePattern) -> str:
    """Return a warning for a query with matches that are events of other queries, since some matches will be
    missing.
    """
    from spaseq.matching.shedding.query import makes_a_stream

    if not makes_a_stream(pattern):
        return ""
    return "; queries that ask what is absent or next in its stream may find what is none"


def check(name: str, pattern: SequencePattern) -> str:
    """Return the name of a requested matcher. Raises ``EngineError`` if it cannot run the query."""
    if name not in _BY_COLUMNS and name not in _BY_EVENTS:
        names = ", ".join([*_BY_COLUMNS, *_BY_EVENTS])
        raise EngineError(f"no matcher is called {name!r}: there are {names}")
    _able(name, pattern)
    return name


def _able(name: str, pattern: SequencePattern) -> None:
    against = in_words(_obstacles(name, pattern))
    if against:
        raise EngineError(f"the matcher {name!r} can run this query only if {', and '.join(against)}")


def _obstacles(name: str, pattern: SequencePattern) -> tuple[Obstacle, ...]:
    """Return why a matcher cannot run a query."""
    lacking = tuple(o for feature, o in features(pattern) if feature in _LACKING[name])
    if lacking or name not in _BY_COLUMNS or (name == "nfa" and pattern.query.skip is not None):
        return lacking
    return tuple(_BY_COLUMNS[name][0](pattern))


def by_columns(
    name: str,
    pattern: SequencePattern,
    dictionary: Dictionary,
    context: Context,
    window: StreamWindow,
    bound: Bound | None = None,
) -> ByColumns | None:
    """Return the matcher of that name over columns; None if the matcher takes event by event.

    ``bound``: the bounds to keep by shedding; only ``nfa`` and ``lazy`` can shed.
    """
    # Imported only here, because compiled code takes a while to load.
    if bound is not None:
        from spaseq.matching.shedding.query import BoundedQuery

        return _shedding(name, BoundedQuery(pattern, dictionary, context, window, bound))
    if name == "kmp":
        from spaseq.matching.kmp.matcher import KmpMatcher

        return KmpMatcher(pattern, dictionary, context, window)
    if name == "tecs":
        from spaseq.matching.tecs.matcher import TecsMatcher

        return TecsMatcher(pattern, dictionary, context, window)
    if name in ("lazy", "tree"):
        from spaseq.matching.lazy.matcher import LazyMatcher

        return LazyMatcher(pattern, dictionary, context, window, tree=name == "tree")
    if name == "nfa" and pattern.query.skip is None:
        from spaseq.matching.nfa.matcher import NfaMatcher

        return NfaMatcher(pattern, dictionary, context, window)
    if name == "nfa" and not _beyond_skip_tables(pattern):
        from spaseq.matching.nfa.skip.matcher import SkipMatcher

        return SkipMatcher(pattern, dictionary, context, window)
    return None


def _shedding(name: str, query: BoundedQuery) -> ByColumns:
    """Return the matcher of that name for a query under a bound."""
    if name == "lazy":
        from spaseq.matching.shedding.lazy import SheddingLazy

        return SheddingLazy(query)
    if query.pattern.query.skip is not None:
        from spaseq.matching.shedding.skip import SheddingSkip

        return SheddingSkip(query)
    from spaseq.matching.shedding.matcher import SheddingNfa

    return SheddingNfa(query)


def load(name: str, pattern: SequencePattern) -> None:
    """Load the compiled code that a matcher needs for pushed events, if that is known."""
    if name == "nfa" and pattern.query.skip is None:
        from spaseq.matching.nfa.matcher import load as load_kernel

        load_kernel()


def by_events(
    name: str, pattern: SequencePattern, context: Context, window: StreamWindow
) -> Callable[[], PartitionMatcher]:
    """Return a function that makes matchers of that name, one per partition, with common parts prepared once.

    Raises ValueError for any other name.
    """
    if name == "interpreter":
        program = RunsProgram(compile_pattern(pattern))
        return lambda: Interpreter(program, pattern, context, window)
    if name == "nfa":  # a query with SKIP that the tables cannot express
        program = RunsProgram(compile_pattern(pattern))
        return lambda: SkipSimulation(program, pattern, context, window)
    if name == "reference":
        return lambda: Reference(pattern, context, window)
    raise ValueError(f"no matcher that takes event by event is called {name!r}")


def _kmp(pattern: SequencePattern) -> Iterator[Obstacle]:
    from spaseq.matching.kmp.query import obstacles

    yield from _several(pattern)
    yield from obstacles(pattern)


def _tecs(pattern: SequencePattern) -> Iterator[Obstacle]:
    from spaseq.matching.tecs.fits import obstacles

    yield from _several(pattern)
    yield from obstacles(pattern)


def _lazy(pattern: SequencePattern) -> Iterator[Obstacle]:
    from spaseq.matching.lazy.tables import fits

    reason = fits(pattern)
    if reason is not None:
        operators = tuple(other_operators(pattern.query.sequence, Strategy.ANY))
        yield from operators or (Obstacle("a match can be put together in any order", reason),)


def _lazy_costs(pattern: SequencePattern) -> tuple[Obstacle, ...]:
    """Return why another matcher is faster, although lazy could run the query."""
    from spaseq.matching.lazy.tables import costs

    return tuple(costs(pattern))


def _nfa(pattern: SequencePattern) -> Iterator[Obstacle]:
    from spaseq.matching.nfa.tables.compiling import obstacles

    return obstacles(pattern)


def _beyond_skip_tables(pattern: SequencePattern) -> tuple[Obstacle, ...]:
    """Return why a query with AFTER MATCH SKIP cannot be run by tables over whole batches."""
    from spaseq.matching.nfa.skip.tables import beyond

    return beyond(pattern)


def _beyond_buffers(pattern: SequencePattern, policy: Policy) -> tuple[Obstacle, ...]:
    """Return why ``lazy`` cannot shed the events in its buffers."""
    from spaseq.matching.shedding.query import buffer_obstacles

    return tuple(buffer_obstacles(pattern, policy))


def _several(pattern: SequencePattern) -> Iterator[Obstacle]:
    if isinstance(pattern.root, Atom):
        yield Obstacle("a match is of several events", show(pattern.root))


#: The matchers of queries by shape: the choice compiles tables, which takes milliseconds.
_CHOSEN: Final[dict[tuple[object, ...], str]] = {}
_MOST_CHOSEN: Final = 1_024

_Obstacles = Callable[[SequencePattern], Iterator[Obstacle]]

#: Matchers over columns: what they cannot run, and a description.
_BY_COLUMNS: Final[dict[str, tuple[_Obstacles, str]]] = {
    "kmp": (_kmp, "extended KMP: one step an event, events compared by equality alone"),
    "tecs": (_tecs, "tECS: constant work an event, matches enumerated when asked for"),
    "lazy": (_lazy, "lazy NFA: events buffered, matches put together beginning with what is rarest"),
    "tree": (_lazy, "tree NFA: as lazy, but the order is found for each match anew, and nothing waits"),
    "nfa": (_nfa, "eager NFA_scep, every partial match kept as a run, by tables over whole batches"),
}
#: Default matchers, the best first. ``tree`` runs on request only. If the first element of a sequence is
#: rare, ``tree`` takes many times as long as ``lazy``. Elsewhere it takes from half as long to as long.
_PREFERRED: Final = ("kmp", "tecs", "lazy", "nfa")
#: Matchers with work per event that does not grow with earlier events, and why.
_STEADY: Final = {
    "kmp": "an event is one step",
    "tecs": "an event is constant work, and matches are found when they are asked for",
}
#: Matchers that process event by event, and a description.
_BY_EVENTS: Final = {
    "interpreter": "eager NFA_scep, every partial match kept as a run, event by event",
    "reference": "every choice of events tried, at each event again",
}
#: What ``nfa`` does with AFTER MATCH SKIP.
_SKIPPING: Final = "priority simulation: the runs of one first event in order of preference, the rest cut"

#: The features of the language that a matcher does not have.
_LACKING: Final[dict[str, frozenset[Feature]]] = {name: frozenset(Feature) for name in _BY_COLUMNS} | {
    "nfa": frozenset(),
    "interpreter": frozenset({Feature.SKIP}),
    "reference": frozenset(),
}
