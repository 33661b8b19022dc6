"""Matchers of a whole query over batches of columns: their protocols, and common behaviour."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeGuard, runtime_checkable

from spaseq.alone import Single
from spaseq.events import EventBatch, Ids
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.blocks.found import Block
from spaseq.patterns.sharing import Values
from spaseq.patterns.spectra.single import SingleJoin
from spaseq.patterns.spectra.solutions import Solutions

if TYPE_CHECKING:
    from spaseq.matching.tecs.reading import Portion

#: Returns the solutions of a GPM in an event; None for a large one.
Solve = Callable[[Single], Values | None]

#: The matches of one event: read them before the next event, which changes what they are read from.
Fleeting = Iterable[Block]


class UnsolvedError(Exception):
    """An event is too large to be processed as a single one."""


#: The abilities of classes of matchers: ``isinstance`` of a protocol is as slow as half a matcher's creation.
_KNOWN: Final[dict[tuple[type, type], bool]] = {}


def _is(matcher: object, protocol: type) -> bool:
    asked = type(matcher), protocol
    if asked not in _KNOWN:
        _KNOWN[asked] = isinstance(matcher, protocol)
    return _KNOWN[asked]


class PushedPattern(NamedTuple):
    """How a GPM is evaluated for single events.

    ``names``: its variables; GPMs with the same ``number`` are equal except for the names. ``solve`` returns
    its solutions in an event. ``join``: the pattern, if it is only a join of few triples with filters.
    ``streams``: of its events, None for any stream. ``is_told``: whether events with solutions are counted.
    ``tell`` is called with the solutions, if needed: the number of the event of each, in order, and their
    values, a row each.
    """

    names: Sequence[str]
    number: int
    solve: Solve
    join: SingleJoin | None
    streams: frozenset[int] | None
    is_told: bool
    tell: Callable[[Ids, Ids], None] | None = None


class ByColumns(Protocol):
    """A matcher of a whole query, with all its partitions, that takes batches of columns.

    Matches come in the order of their last events, each as soon as it is certain, like those of ``Matcher``.
    """

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may return matches."""
        ...

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterable[Block]:
        """Process events in processing order, the first at position ``start``; return the matches found.

        ``solutions`` are those of the GPMs' stateless parts. A GPM without solutions may be absent.
        """
        ...

    def advance(self, time: int) -> Iterable[Block]:
        """Advance to ``time``; return the matches that waited for that."""
        ...

    def close(self) -> Iterable[Block]:
        """End the streams; return the matches that waited for that."""
        ...

    def settled(self, time: int) -> int:
        """Return the time up to which all matches were delivered, when the query's time is ``time``."""
        ...


class Unenumerated(Protocol):
    """Matches that were found, and not enumerated."""

    @property
    def waiting(self) -> int:
        """The least number of events with matches that are not all enumerated."""
        ...

    def unread(self) -> Iterator[Block]:
        """Yield the matches that were not enumerated, each once, including those found meanwhile."""
        ...

    def drop(self) -> None:
        """Discard them."""
        ...


@runtime_checkable
class Enumerating(ByColumns, Unenumerated, Protocol):
    """A matcher that may enumerate its matches later, after any number of further events."""

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Process events like ``process``, without enumeration."""
        ...

    def divide(self, by_key: bool, keys: Collection[int] | None = None) -> Iterator[tuple[int, Portion]]:
        """Hand over the matches that were not enumerated, divided by the first value of their keys.

        All are under 0 if not ``by_key``. ``keys``: only these, if their enumeration has not begun.
        """
        ...


@runtime_checkable
class Quick(ByColumns, Protocol):
    """A matcher that tells at once that an event completes nothing, as most do."""

    @property
    def gpms(self) -> Sequence[str]:
        """The GPMs in the order that ``take_single`` needs."""
        ...

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """Prepare for ``take_single`` with these GPMs; return whether it can be used."""
        ...

    def take_single(self, event: Single, start: int) -> Fleeting | None:
        """Process one event like ``process``, and count it; None if it completes no match.

        If the event is large, raises ``UnsolvedError`` and does nothing else.
        """
        ...

    def is_due(self, time: int) -> bool:
        """Return whether ``advance`` to this time may return matches."""
        ...

    def counts(self) -> Counts | None:
        """Return how many events of ``take_single`` had solutions since the last call."""
        ...


class Immediate:
    """Time for matchers that are certain of each match at its last event: no match waits."""

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may return matches."""
        return False

    def is_due(self, time: int) -> bool:
        """See ``Quick.is_due``: no match waits."""
        del time
        return False

    def advance(self, time: int) -> Iterator[Block]:
        """Return no matches: none waits for time."""
        del time
        yield from ()

    def close(self) -> Iterator[Block]:
        """Return no matches: none waits for the end."""
        yield from ()

    def settled(self, time: int) -> int:
        """Return the time up to which all matches were delivered, when the query's time is ``time``."""
        return time


def is_quick(matcher: object) -> TypeGuard[Quick]:
    """Return whether a matcher is ``Quick``."""
    return _is(matcher, Quick)


def is_enumerating(matcher: object) -> TypeGuard[Enumerating]:
    """Return whether a matcher is ``Enumerating``."""
    return _is(matcher, Enumerating)
