"""Matchers of a whole query, which take batches of columns: what they do, and what some of them share."""

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

#: Gives the solutions of a GPM in an event; None for a large one.
Solve = Callable[[Single], Values | None]

#: What an event completed: read it before the next event comes, which changes what it is read from.
Fleeting = Iterable[Block]


class UnsolvedError(Exception):
    """An event is too large to be taken as one that came alone."""


#: What classes of matchers can do: ``isinstance`` of a protocol takes as long as to make half a matcher.
_KNOWN: Final[dict[tuple[type, type], bool]] = {}


def _is(matcher: object, protocol: type) -> bool:
    asked = type(matcher), protocol
    if asked not in _KNOWN:
        _KNOWN[asked] = isinstance(matcher, protocol)
    return _KNOWN[asked]


class PushedPattern(NamedTuple):
    """What a GPM asks of events that come alone.

    ``names``: its variables; those with the same ``number`` ask the same, but for the names. ``solve`` gives
    what it has in an event; ``join``: what that is, if it is nothing but a join of few triples, and filters;
    ``streams``: of what events, None for those of any stream; ``is_told``: whether it counts that it has
    solutions; ``tell`` is told which these are, if somebody has to know: the number of the event of each, in
    order, and their values, a row each.
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

    Matches come in the order of their last events, each as soon as it is certain, as those of ``Matcher`` do.
    """

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may give matches."""
        ...

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterable[Block]:
        """Takes events in processing order, the first at position ``start``; gives the matches found.

        ``solutions`` are those of the GPMs' stateless parts; a GPM without any may be absent.
        """
        ...

    def advance(self, time: int) -> Iterable[Block]:
        """Time has come to ``time``: gives the matches that waited for that."""
        ...

    def close(self) -> Iterable[Block]:
        """No event will come any more: gives the matches that waited for that."""
        ...

    def settled(self, time: int) -> int:
        """The time up to which all matches were delivered, when the query's time has come to ``time``."""
        ...


class Unenumerated(Protocol):
    """Matches that were found, and not enumerated."""

    @property
    def waiting(self) -> int:
        """Of how many events the matches are not all enumerated, at least."""
        ...

    def unread(self) -> Iterator[Block]:
        """The matches that were not enumerated, each once; those found meanwhile, too."""
        ...

    def drop(self) -> None:
        """Forgets them."""
        ...


@runtime_checkable
class Enumerating(ByColumns, Unenumerated, Protocol):
    """One that may leave what it has found, and enumerate it after any number of further events."""

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Takes events, as ``process`` does, and enumerates nothing."""
        ...

    def divide(self, by_key: bool, keys: Collection[int] | None = None) -> Iterator[tuple[int, Portion]]:
        """Gives away the matches that were not enumerated, by the first value of the keys.

        All under 0 if not ``by_key``. ``keys``: these alone, of those that nobody has begun to enumerate.
        """
        ...


@runtime_checkable
class Quick(ByColumns, Protocol):
    """One that says of an event at once that it completes nothing, as most do."""

    @property
    def gpms(self) -> Sequence[str]:
        """The GPMs in the order of what ``take_single`` asks for."""
        ...

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """Whether ``take_single`` can be used; what its GPMs ask is said."""
        ...

    def take_single(self, event: Single, start: int) -> Fleeting | None:
        """Takes one event, as ``process`` does, and counts; None if it completes nothing.

        Raises ``UnsolvedError``, and does nothing, if the event is large.
        """
        ...

    def is_due(self, time: int) -> bool:
        """Whether ``advance`` to this time may give matches."""
        ...

    def counts(self) -> Counts | None:
        """In how many of the events of ``take_single`` there were solutions, since the last call."""
        ...


class Immediate:
    """What a matcher does when time passes, if a match of its queries is certain with its last event."""

    @property
    def waits(self) -> bool:
        """Whether ``advance`` may give matches."""
        return False

    def is_due(self, time: int) -> bool:
        """See ``Quick.is_due``: no match waits."""
        del time
        return False

    def advance(self, time: int) -> Iterator[Block]:
        """Time has come to ``time``: no match waits for that."""
        del time
        yield from ()

    def close(self) -> Iterator[Block]:
        """No event will come any more: no match waits for that."""
        yield from ()

    def settled(self, time: int) -> int:
        """The time up to which all matches were delivered, when the query's time has come to ``time``."""
        return time


def is_quick(matcher: object) -> TypeGuard[Quick]:
    """Whether a matcher is ``Quick``."""
    return _is(matcher, Quick)


def is_enumerating(matcher: object) -> TypeGuard[Enumerating]:
    """Whether a matcher is ``Enumerating``."""
    return _is(matcher, Enumerating)
