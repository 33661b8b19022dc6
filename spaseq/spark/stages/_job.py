"""A distributed query as its processes see it: the query, its clock, its buckets, what these mean."""

from __future__ import annotations

import difflib
import pickle
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import Atom, Both, Chain, Either, Kleene, SequencePattern, walk
from spaseq.bounds import Bound, Policy, Pool
from spaseq.errors import EngineError
from spaseq.events import Clock
from spaseq.excerpts import bounded
from spaseq.language import checked
from spaseq.language.functions import registered
from spaseq.language.syntax import UNITS, Ask, OwnFunction, Query, Strategy
from spaseq.limits import UNLIMITED
from spaseq.patterns.expressions.walk import exists_in, own_calls

#: The progress, in milliseconds, of a stream that has ended while others go on: later than any event, and
#: still representable in microseconds.
END_MS: Final = 9_000_000_000_000_000

#: Up to this distance from 0 a tick is one of Spark's milliseconds; beyond, ``_COARSE`` ticks are one.
_FINE: Final = 1 << 52
_COARSE: Final = 1 << 12


class Shared(Protocol):
    """Bytes that every process has: a Spark broadcast, or a substitute."""

    @property
    def value(self) -> bytes:
        """The bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Joined:
    """The numbers of the GRAPH patterns with solutions that Spark joins, see ``_asking``.

    ``slots``: numbers that Spark's hash spreads evenly over shuffle partitions.
    """

    graphs: tuple[int, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BucketBound:
    """The bounds of a bucket, picklable; None is no bound.

    ``latency``: seconds for an event, on average over some events of the bucket. ``memory``: bytes of its
    partial matches. ``clock`` counts seconds.
    """

    latency: float | None = None
    memory: int | None = None
    clock: Callable[[], float] = time.perf_counter

    def fresh(self) -> Bound:
        """Return the same bound for the matcher of one bucket, which does not share it."""
        pool = None if self.memory is None else Pool(self.memory)
        return Bound(self.latency, pool, 1.0, Policy.SHARP, self.clock)


#: The identity of a checkpoint: the meaning of its query and background graphs, its clock and its buckets.
Identity = dict[str, str | int | None]


def refused(begun: Mapping[str, object], now: Identity) -> str | None:
    """Return why the checkpoint of one job does not fit another job; None if it fits."""
    own = "give each query a checkpoint of its own, or run it as it was begun"
    if begun["query"] != now["query"]:
        then, here = _difference(str(begun["query"]), str(now["query"]))
        return f"this checkpoint is of another query, which has {then} where this one has {here}: {own}"
    for name in ("clock", "start", "buckets", "kb_changed"):
        if begun[name] != now[name]:
            return f"this checkpoint was begun with {name}={begun[name]}, and now it is {now[name]}: {own}"
    if begun["graphs"] != now["graphs"] and now["kb_changed"] == "error":
        return (
            "the background graphs are not those that this checkpoint was begun with, and what is in its "
            "windows was found with those: run it with them, or begin anew with another checkpoint "
            "(one that is begun with kb_changed='replay' goes on with other graphs)"
        )
    return None


def _difference(then: str, now: str) -> tuple[str, str]:
    """Return the first lines in which two texts differ."""
    before, after = then.splitlines(), now.splitlines()
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    _, i, j, k, n = next(change for change in changes if change[0] != "equal")
    parts = (" ".join(map(str.strip, lines)) for lines in (before[i:j], after[k:n]))
    first, second = (f"'{bounded(part)}'" if part else "nothing" for part in parts)
    return first, second


@dataclass(frozen=True, slots=True)
class Job:
    """A query on its way to the workers, picklable.

    ``text`` is its canonical text. ``start``: when its tumbling windows begin, None if it has none.
    ``buckets``: their numbers. ``kb``: its background graphs, see ``_background``. ``is_stream``: whether
    events come in micro-batches, so that some may be late. ``joined``: the GRAPH patterns with solutions that
    are not in ``kb``. ``background``: a hash of ``kb``, by which processes know it. ``topics``: see
    ``Topics``. ``graphs``: a hash of the contents of all background graphs, see ``_contents``. ``replays``:
    whether states keep all events with their graphs, to be matched anew if ``graphs`` change. ``placing``:
    where the background graphs are, as Spark's plan shows it. ``counted``: whether the solutions of GPMs are
    counted, for ``analyze``.

    A checkpoint may continue with other values of these: ``bound``, kept by each bucket by shedding;
    ``shapes``, to which events must conform, as N-Triples (empty: none). ``functions``: the user's, see
    ``pickled``.
    """

    text: str
    clock: Clock
    start: int | None
    buckets: tuple[int, ...]
    matcher: str | None = None
    kb: Shared | None = None
    is_stream: bool = False
    joined: Joined | None = None
    background: str = ""
    topics: tuple[tuple[str, str], ...] = ()
    graphs: str = ""
    replays: bool = False
    bound: BucketBound | None = None
    shapes: str = ""
    functions: bytes = b""
    placing: str = ""
    counted: bool = False

    @property
    def query(self) -> Query:
        """The query, prepared once in each process."""
        return query_of(self.text, self.functions)

    @property
    def pattern(self) -> SequencePattern:
        """Its sequence in normal form."""
        return pattern_of(self.text, self.functions)

    @property
    def identity(self) -> Identity:
        """The identity that a checkpoint is bound to."""
        return {
            "query": self.text,
            "clock": self.clock.value,
            "start": self.start,
            "buckets": len(self.buckets),
            "kb_changed": "replay" if self.replays else "error",
            "graphs": self.graphs,
        }

    @property
    def has_event_time(self) -> bool:
        """Whether matches have an event time for Spark, which must not be earlier than its watermark.

        False in a batch, on ticks, and if a match may wait for later events after its last one.
        """
        return self.is_stream and self.clock is Clock.INSTANTS and looks_back(self.pattern) == 1

    @property
    def needs(self) -> Needs:
        """What its stateful stage needs of the stream."""
        # With other graphs, an unwanted event may become wanted, or have another key.
        return KEPT if self.replays else needs(self.pattern)


def canonical(query: Query) -> str:
    """Return a text of the query's meaning: independent of prefixes, comments, white space and keywords'
    case.
    """
    return str(replace(query, prefixes=()))


@lru_cache(maxsize=32)
def query_of(text: str, functions: bytes = b"") -> Query:
    """Return the query of a text, with the user's functions; prepared once in each process."""
    with registered(_unpickled(functions)):
        return checked(text, limits=UNLIMITED)


@lru_cache(maxsize=32)
def pattern_of(text: str, functions: bytes = b"") -> SequencePattern:
    """Return the query's sequence pattern in normal form."""
    return normalise(query_of(text, functions))


def pickled(query: Query) -> bytes:
    """Return the user's functions in a query, for ``Job.functions``; empty if it has none.

    Raises EngineError for a function that cannot be pickled.
    """
    own = {call.function.value: call.own for call in own_calls(query) if call.own is not None}
    if not own:
        return b""
    from pyspark import cloudpickle

    for iri, one in own.items():
        try:
            cloudpickle.dumps(one.call)  # type: ignore[no-untyped-call]  # PySpark's
        except Exception as error:
            raise EngineError(
                f"<{iri}> cannot be pickled for Spark's workers ({type(error).__name__}: {error}): open "
                "files and connections inside of the function, or import it from a module of the workers"
            ) from error
    data: bytes = cloudpickle.dumps(own)  # type: ignore[no-untyped-call]
    return data


def _unpickled(functions: bytes) -> dict[str, OwnFunction]:
    if not functions:
        return {}
    try:
        own = pickle.loads(functions)
    except Exception as error:
        raise EngineError(
            f"a function of the query cannot be loaded here ({type(error).__name__}: {error}): install what "
            "it imports where Spark's workers run"
        ) from error
    # In this process it is another object, which tells it from others.
    return {iri: replace(one, identity=id(one.call)) for iri, one in own.items()}


def undeclared(stream: str, declared: Iterable[str]) -> str:
    """Return the reason why an event of this undeclared stream is refused."""
    declared = sorted(declared)
    near = difflib.get_close_matches(stream, declared, 1)
    hint = f" (did you mean <{near[0]}>?)" if near else ""
    names = ", ".join(f"<{iri}>" for iri in declared)
    return f"the query has no stream <{stream}>{hint}: it reads {names}"


@dataclass(frozen=True, slots=True)
class Needs:
    """What the stateful stage needs of the stream.

    ``one_group``: why the query cannot be spread over buckets, or None. ``all_events``: also the times of
    events that no GPM wants. ``triples``: the graphs of events.
    """

    one_group: str | None
    all_events: bool
    triples: bool


def needs(pattern: SequencePattern) -> Needs:
    """What a query needs.

    ``,`` asks for the very next event of the partition. With PARTITION BY that is the next event in which
    some GPM binds the key, and such an event has a solution, so it survives anyway. Without, every event
    of the streamset counts, and at least its place must be known. So it is for a window that counts events.
    """
    query = pattern.query
    counted = UNITS[query.window.unit] is None
    reason = None
    if not query.partition:
        reason = "it has no PARTITION BY"
    elif counted:
        reason = "its window counts the events of all partitions"
    elif query.modifiers.limit is not None:
        reason = "LIMIT counts the rows of all partitions"
    elif isinstance(query.form, Ask):
        reason = "ASK ends at the first match of all partitions"
    strict = any(_is_strict(node) for node in walk(pattern.root))
    filters = [f.condition for part in pattern.gpms.values() for f in part.correlated]
    filters += [f.condition for f in pattern.where]
    return Needs(
        reason,
        counted or (strict and not query.partition),
        any(exists_in(condition) for condition in filters),
    )


#: What is needed of events that may be evaluated anew on other graphs.
KEPT: Final = Needs("kb_changed='replay' keeps all events of the window, whose keys may change", True, True)


def _is_strict(node: object) -> bool:
    match node:
        case Chain(operators=operators):
            return Strategy.STRICT in operators
        case Kleene(strategy=strategy):
            return strategy is Strategy.STRICT
    return False


def looks_back(pattern: SequencePattern) -> int:
    """Return for how many windows after it an event may still matter.

    One in the usual case: the events of an incomplete match. Three if a match may wait. A negation or ``ALL``
    waits for the end of its window, and EMIT for the end of its last event's window. Both then look back to
    the beginning of the match.
    """
    usual = all(isinstance(node, Chain | Kleene | Atom | Both | Either) for node in walk(pattern.root))
    return 1 if usual else 3


def bucket_numbers(count: int) -> tuple[int, ...]:
    """Return this many numbers that Spark's hash spreads evenly over any number of partitions.

    That hash, Murmur3 of an integer with seed 42, has an inverse. The number of bucket ``i`` hashes to ``i``,
    so its partition is ``i`` modulo the number of partitions.
    """
    return tuple(map(_hashed_to, range(count)))


_WORD: Final = 0xFFFFFFFF

#: The factors of the hash, and their inverses modulo 2 to the 32.
_FACTORS: Final = (0xCC9E2D51, 0x1B873593, 5, 0x85EBCA6B, 0xC2B2AE35)
_INVERSES: Final = tuple(pow(factor, -1, 1 << 32) for factor in _FACTORS)
_ADDED: Final = 0xE6546B64
_SEED: Final = 42
_BYTES: Final = 4  # the length of an integer


def _rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & _WORD


def _hashed_to(code: int) -> int:
    """Return the integer that Spark hashes to ``code``."""
    code ^= code >> 16
    code = code * _INVERSES[4] & _WORD
    code ^= code >> 13 ^ code >> 26
    code = code * _INVERSES[3] & _WORD
    code ^= code >> 16
    code = _rotated(((code ^ _BYTES) - _ADDED) * _INVERSES[2] & _WORD, 32 - 13)
    word = _rotated((code ^ _SEED) * _INVERSES[1] & _WORD, 32 - 15) * _INVERSES[0] & _WORD
    return word - (1 << 32) if word >> 31 else word


def milliseconds(time: int, clock: Clock) -> int:
    """Return a time on a stream's clock in milliseconds of Spark's watermark, rounded down.

    A tick counts as a millisecond, so that ticks may themselves be today's microseconds. Of ticks further
    out, such as nanoseconds, ``_COARSE`` share one millisecond. So all ticks of 64 bits are before the end,
    and in order.
    """
    if clock is Clock.INSTANTS:
        return max(-END_MS, min(END_MS, time // 1000))
    if abs(time) <= _FINE:
        return time
    edge = _FINE if time > 0 else -_FINE
    return edge + (time - edge) // _COARSE


def reached(watermark_ms: int, clock: Clock) -> int:
    """Return the earliest time of future events when Spark's watermark is ``watermark_ms``."""
    if clock is Clock.INSTANTS:
        return watermark_ms * 1000
    if abs(watermark_ms) <= _FINE:
        return watermark_ms
    edge = _FINE if watermark_ms > 0 else -_FINE
    return edge + (watermark_ms - edge) * _COARSE
