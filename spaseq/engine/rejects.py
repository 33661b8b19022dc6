"""What cannot be processed: counted, kept, and told to whoever asked for it."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from spaseq.engine.turn import Turn
from spaseq.errors import BadEventError, LateEventError, warn
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.sources import BadEvent
from spaseq.sources._options import LIVE_AHEAD
from spaseq.sources.assembly.sink import letter_of
from spaseq.sources.times import latest

#: Called with every bad or late event.
DeadLetters = Callable[[BadEvent], None]

#: How many bad and late events are kept when there is no sink for them.
KEPT: Final = 1_000


class Kind(StrEnum):
    """Why an event is no part of its stream; a state counts each on its own."""

    #: What a source could not read. It has no number among the events of its stream.
    UNREAD = "bad"
    #: What was pushed and is no event. It has none either.
    PUSHED = "pushed"
    #: An event on another clock than those before it. It has a number.
    CLOCK = "clock"
    #: An event before the watermark. It has a number.
    LATE = "late"
    #: An event that does not conform to the engine's shapes. It has a number.
    NONCONFORMING = "nonconforming"

    @property
    def told(self) -> str:
        """What people and callers hear: ``bad`` or ``late``."""
        return "late" if self is Kind.LATE else "bad"


class DeadLetterFile:
    """Appends bad and late events to a ``file``, one JSON object a line."""

    def __init__(self, path: str | Path) -> None:
        # Half of a surrogate pair, which is no UTF-8, is written as JSON escapes it.
        self.file = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115  # see close

    def __call__(self, letter: BadEvent) -> None:
        self.file.write(json.dumps(asdict(letter), ensure_ascii=False) + "\n")
        self.file.flush()

    def close(self) -> None:
        """No more letters."""
        self.file.close()


class Rejects:
    """The engine's dead letters: a callable, the path of an NDJSON file, or the ``newest``.

    With ``strict``, every rejection raises, after it was counted and passed on. Otherwise, unless a
    callable hears of each, the first of a stream and kind is a warning, and ``close`` warns of the sum. What
    the callable raises comes out at the end of the call.
    Threads that read sources may use it; they call the callable one at a time.
    """

    def __init__(self, sink: DeadLetters | str | Path | None, strict: bool, turn: Turn) -> None:
        self._kept: deque[BadEvent] = deque(maxlen=KEPT)
        self.is_strict = strict
        self._turn = turn
        self._lock = threading.RLock()
        self._counts: Counter[tuple[str, Kind]] = Counter()
        self._first: dict[str, BadEvent] = {}
        # By thread, who hears of what that thread rejects.
        self._hearers: dict[int, Callable[[str, BadEvent], None]] = {}
        self._is_heard = callable(sink)
        self._where = "engine.rejected has the newest"
        if sink is None:
            self._pass_on: DeadLetters = self._kept.append
        elif callable(sink):
            self._pass_on = sink
        else:
            self._pass_on = DeadLetterFile(sink)
            self._where = f"{sink} has all"

    @property
    def bad(self) -> int:
        """How many malformed events there were, and events that do not conform to the shapes."""
        with self._lock:
            return sum(count for (_, kind), count in self._counts.items() if kind.told == "bad")

    @property
    def late(self) -> int:
        """How many events came too late."""
        with self._lock:
            return sum(count for (_, kind), count in self._counts.items() if kind is Kind.LATE)

    @property
    def nonconforming(self) -> int:
        """How many of the bad events did not conform to the shapes."""
        with self._lock:
            return sum(count for (_, kind), count in self._counts.items() if kind is Kind.NONCONFORMING)

    @property
    def newest(self) -> Sequence[BadEvent]:
        """The newest bad and late events, if there is no sink for them."""
        with self._lock:
            return tuple(self._kept)

    @contextmanager
    def heard(self, hear: Callable[[str, BadEvent], None]) -> Iterator[None]:
        """Tells of what this thread rejects meanwhile, too: ``bad`` or ``late``, and what it is."""
        self._hearers[threading.get_ident()] = hear
        try:
            yield
        finally:
            del self._hearers[threading.get_ident()]

    def of(self, stream: str) -> tuple[int, int]:
        """How many malformed and how many late events there were of a stream."""
        with self._lock:
            counts = self._counts
            bad = sum(counts[stream, kind] for kind in Kind if kind.told == "bad")
            return bad, counts[stream, Kind.LATE]

    def pushed(self, stream: str) -> int:
        """How many events of a stream were pushed and are none: so many more places the next one has."""
        return self._counts[stream, Kind.PUSHED]

    def unnumbered(self) -> Counter[str]:
        """How many events of each stream there were that have no number."""
        found: Counter[str] = Counter()
        with self._lock:
            for (stream, kind), count in self._counts.items():
                found[stream] += count if kind in (Kind.UNREAD, Kind.PUSHED) else 0
        return found

    def malformed(self, letter: BadEvent, kind: Kind = Kind.UNREAD) -> None:
        """An event that is none; raises ``BadEventError`` when strict."""
        self._reject(kind, letter)
        if self.is_strict:
            raise BadEventError(letter.reason, stream=letter.stream, position=letter.position)

    def misfit(self, batch: EventBatch, index: int, clock: Clock | None) -> None:
        """An event on another clock than this of its query; when strict, the call ends with an error."""
        reason = (
            f"its time is in {batch.clock}, but the query's first event was in {clock}: give all times of "
            "the query's streams as datetimes (instants), or all as integers (ticks)"
        )
        self.refuse(batch, index, reason, Kind.CLOCK)

    def refuse(self, batch: EventBatch, index: int, reason: str, kind: Kind) -> None:
        """Reject an event that has arrived; when strict, the call ends with a ``BadEventError``."""
        try:
            self.malformed(self._letter(batch, index, reason), kind)
        except BadEventError as error:
            self._turn.raised.add(error)

    def too_late(self, batch: EventBatch, index: int, watermark: int, moved_by: Stamp | None) -> None:
        """Reject an event before the watermark, which the event ``moved_by`` moved, if that is known.

        The first late event of a stream names that event. When strict, the call ends with a
        ``LateEventError``.
        """
        reason = late_reason(batch.clock, int(batch.time[index]), watermark)
        letter = self._letter(batch, index, reason)
        if moved_by is not None and not self._counts[letter.stream, Kind.LATE]:
            letter = replace(letter, reason=reason + _moved(batch, moved_by))
        self._reject(Kind.LATE, letter)
        if self.is_strict:
            error = LateEventError(letter.reason, stream=letter.stream, position=letter.position)
            self._turn.raised.add(error)

    @property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many there were of each stream and kind."""
        with self._lock:
            return {(stream, kind.value): count for (stream, kind), count in self._counts.items()}

    def resume(self, counts: Mapping[tuple[str, str], int]) -> None:
        """So many there were before."""
        with self._lock:
            self._counts.update({(stream, Kind(kind)): count for (stream, kind), count in counts.items()})

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is rejected meanwhile, by no thread."""
        with self._lock:
            yield

    def first_bad(self) -> dict[str, tuple[int, BadEvent]]:
        """Of each stream that had malformed events, how many, and the first one."""
        with self._lock:
            return {stream: (self.of(stream)[0], letter) for stream, letter in self._first.items()}

    def close(self) -> None:
        """Closes the file of dead letters, if there is one."""
        if isinstance(self._pass_on, DeadLetterFile):
            self._pass_on.close()

    def summarise(self) -> None:
        """Warns of how many there were, if nobody has heard of each."""
        with self._lock:
            told = Counter[tuple[str, str]]()
            for (stream, kind), count in self._counts.items():
                told[stream, kind.told] += count
        if told and not self.is_strict and not self._is_heard:
            counts = sorted(told.items())
            listed = ", ".join(f"{count} {kind} in <{stream}>" for (stream, kind), count in counts)
            warn(f"{self.bad} bad and {self.late} late events were left out ({self._where}): {listed}")

    def _letter(self, batch: EventBatch, index: int, reason: str) -> BadEvent:
        """That of an event that arrived: its place is behind those that were pushed and are none, too."""
        letter = letter_of(batch, index, reason)
        before = self.pushed(letter.stream)
        return replace(letter, position=f"event {batch.n[index] + before + 1}") if before else letter

    def _reject(self, kind: Kind, letter: BadEvent) -> None:
        with self._lock:
            self._counts[letter.stream, kind] += 1
            is_first = self._counts[letter.stream, kind] == 1
            if kind is not Kind.LATE:
                self._first.setdefault(letter.stream, letter)
            try:
                with self._turn.aside():
                    self._pass_on(letter)
            except BaseException as error:  # SystemExit, too
                self._turn.raised.add(error)
        if (hear := self._hearers.get(threading.get_ident())) is not None:
            try:
                hear(kind.told, letter)
            except BaseException as error:
                self._turn.raised.add(error)
        if is_first and not self.is_strict and not self._is_heard:
            try:
                warn(
                    f"<{letter.stream}>, {letter.position}: a {kind.told} event is left out: {letter.reason}"
                    f" ({self._where}; further ones are counted)"
                )
            except Warning as error:  # where warnings are errors
                self._turn.raised.add(error)


def late_reason(clock: Clock, time: int, watermark: int) -> str:
    """Why an event of this time is a dead letter: what it is told wherever it comes."""
    return f"late: its time {clock.show(time)} is before the watermark, {clock.show(watermark)}"


def _moved(late: EventBatch, by: Stamp) -> str:
    """Return which event moved the watermark beyond a late one, and what helps if its time is far off."""
    stream = "" if by.stream == int(late.stream[0]) else f" of {late.dictionary.term(by.stream)}"
    told = f", which event {by.n + 1}{stream} moved"
    if late.clock is Clock.INSTANTS and by.time > latest(LIVE_AHEAD):
        told += (
            f" with its time {late.clock.show(by.time)}, far ahead of the wall clock: max_ahead=1d, an "
            "option of the source or the engine, refuses such events"
        )
    return told
