"""Dead letters: rejected events are counted, kept, and passed to the caller's sink."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
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

#: How many bad and late events are kept if there is no sink.
KEPT: Final = 1_000


class DeadLetterKind(StrEnum):
    """Why an event was rejected; a state counts each kind separately."""

    #: A source's record that could not be read. It has no number among the events of its stream.
    UNREAD = "bad"
    #: A pushed event that is malformed. It has no number either.
    PUSHED = "pushed"
    #: An event on another clock than those before it. It has a number.
    CLOCK = "clock"
    #: An event before the watermark. It has a number.
    LATE = "late"
    #: An event that does not conform to the engine's shapes. It has a number.
    NONCONFORMING = "nonconforming"

    @property
    def told(self) -> str:
        """The kind in messages: ``bad`` or ``late``."""
        return "late" if self is DeadLetterKind.LATE else "bad"


_BAD: Final = frozenset(kind for kind in DeadLetterKind if kind.told == "bad")


class DeadLetterFile:
    """Appends bad and late events to a ``file``, one JSON object a line."""

    def __init__(self, path: str | Path) -> None:
        # Half of a surrogate pair, which is not UTF-8, is written as a JSON escape.
        self.file = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115  # see close

    def __call__(self, letter: BadEvent) -> None:
        self.file.write(json.dumps(asdict(letter), ensure_ascii=False) + "\n")
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class Rejects:
    """The engine's dead letters: a callable, the path of an NDJSON file, or the ``newest``.

    With ``strict``, every rejection raises, after it was counted and passed on. Otherwise, unless there is a
    callable, the first of a stream and kind is a warning, and ``close`` warns of the total. Exceptions of the
    callable are raised at the end of the call. Threads that read sources may use it; the callable is called
    by one thread at a time.
    """

    def __init__(self, sink: DeadLetters | str | Path | None, strict: bool, turn: Turn) -> None:
        self._kept: deque[BadEvent] = deque(maxlen=KEPT)
        self.is_strict = strict
        self._turn = turn
        self._lock = threading.RLock()
        self._counts: Counter[tuple[str, DeadLetterKind]] = Counter()
        self._first: dict[str, BadEvent] = {}
        # By thread, the listener for its rejections.
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
        return self._total(_BAD)

    @property
    def late(self) -> int:
        """How many events came too late."""
        return self._total({DeadLetterKind.LATE})

    @property
    def nonconforming(self) -> int:
        """How many of the bad events did not conform to the shapes."""
        return self._total({DeadLetterKind.NONCONFORMING})

    def _total(self, kinds: Set[DeadLetterKind], stream: str | None = None) -> int:
        """Return how many events of some kinds were rejected, of a stream or of all."""
        with self._lock:
            counts = self._counts.items()
            return sum(n for (of, kind), n in counts if kind in kinds and stream in (None, of))

    @property
    def newest(self) -> Sequence[BadEvent]:
        """The newest bad and late events, if there is no sink."""
        with self._lock:
            return tuple(self._kept)

    @contextmanager
    def heard(self, hear: Callable[[str, BadEvent], None]) -> Iterator[None]:
        """Also call ``hear`` with this thread's rejections during the block: ``bad`` or ``late``, and the
        event.
        """
        self._hearers[threading.get_ident()] = hear
        try:
            yield
        finally:
            del self._hearers[threading.get_ident()]

    def of(self, stream: str) -> tuple[int, int]:
        """Return how many events of a stream were malformed, and how many late."""
        with self._lock:
            return self._total(_BAD, stream), self._total({DeadLetterKind.LATE}, stream)

    def pushed(self, stream: str) -> int:
        """Return how many malformed events of a stream were pushed: the next event's position is higher by
        this.
        """
        return self._counts[stream, DeadLetterKind.PUSHED]

    def unnumbered(self) -> Counter[str]:
        """Return how many rejected events of each stream have no number."""
        found: Counter[str] = Counter()
        with self._lock:
            for (stream, kind), count in self._counts.items():
                found[stream] += count if kind in (DeadLetterKind.UNREAD, DeadLetterKind.PUSHED) else 0
        return found

    def malformed(self, letter: BadEvent, kind: DeadLetterKind = DeadLetterKind.UNREAD) -> None:
        """Reject a malformed event; raises ``BadEventError`` when strict."""
        self._reject(kind, letter)
        if self.is_strict:
            raise BadEventError(letter.reason, stream=letter.stream, position=letter.position)

    def misfit(self, batch: EventBatch, index: int, clock: Clock | None) -> None:
        """Reject an event on another clock than its query's; when strict, the call ends with an error."""
        reason = (
            f"its time is in {batch.clock}, but the query's first event was in {clock}: give all times of "
            "the query's streams as datetimes (instants), or all as integers (ticks)"
        )
        self.refuse(batch, index, reason, DeadLetterKind.CLOCK)

    def refuse(self, batch: EventBatch, index: int, reason: str, kind: DeadLetterKind) -> None:
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
        if moved_by is not None and not self._counts[letter.stream, DeadLetterKind.LATE]:
            letter = replace(letter, reason=reason + _moved(batch, moved_by))
        self._reject(DeadLetterKind.LATE, letter)
        if self.is_strict:
            error = LateEventError(letter.reason, stream=letter.stream, position=letter.position)
            self._turn.raised.add(error)

    @property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many were rejected, by stream and kind."""
        with self._lock:
            return {(stream, kind.value): count for (stream, kind), count in self._counts.items()}

    def resume(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Set the counts of the last process."""
        with self._lock:
            self._counts.update(
                {(stream, DeadLetterKind(kind)): count for (stream, kind), count in counts.items()}
            )

    @contextmanager
    def still(self) -> Iterator[None]:
        """Reject nothing during the block, in any thread."""
        with self._lock:
            yield

    def first_bad(self) -> dict[str, tuple[int, BadEvent]]:
        """Return, for each stream with malformed events, their number and the first one."""
        with self._lock:
            return {stream: (self.of(stream)[0], letter) for stream, letter in self._first.items()}

    def close(self) -> None:
        """Close the file of dead letters, if there is one."""
        if isinstance(self._pass_on, DeadLetterFile):
            self._pass_on.close()

    def summarise(self) -> None:
        """Warn of the number of rejections, unless a callable got each."""
        with self._lock:
            told = Counter[tuple[str, str]]()
            for (stream, kind), count in self._counts.items():
                told[stream, kind.told] += count
        if told and not self.is_strict and not self._is_heard:
            counts = sorted(told.items())
            listed = ", ".join(f"{count} {kind} in <{stream}>" for (stream, kind), count in counts)
            warn(f"{self.bad} bad and {self.late} late events were left out ({self._where}): {listed}")

    def _letter(self, batch: EventBatch, index: int, reason: str) -> BadEvent:
        """Return the dead letter of an event that arrived. Its position counts malformed pushed
        events, too.
        """
        letter = letter_of(batch, index, reason)
        before = self.pushed(letter.stream)
        return replace(letter, position=f"event {batch.n[index] + before + 1}") if before else letter

    def _reject(self, kind: DeadLetterKind, letter: BadEvent) -> None:
        with self._lock:
            self._counts[letter.stream, kind] += 1
            is_first = self._counts[letter.stream, kind] == 1
            if kind is not DeadLetterKind.LATE:
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
            except Warning as error:  # warnings are errors
                self._turn.raised.add(error)


def late_reason(clock: Clock, time: int, watermark: int) -> str:
    """Return why an event of this time is a dead letter, in the words used everywhere."""
    return f"late: its time {clock.show(time)} is before the watermark, {clock.show(watermark)}"


def _moved(late: EventBatch, by: Stamp) -> str:
    """Return which event moved the watermark past a late one, and what to do if its time is far off."""
    stream = "" if by.stream == int(late.stream[0]) else f" of {late.dictionary.term(by.stream)}"
    told = f", which event {by.n + 1}{stream} moved"
    if late.clock is Clock.INSTANTS and by.time > latest(LIVE_AHEAD):
        told += (
            f" with its time {late.clock.show(by.time)}, far ahead of the wall clock: max_ahead=1d, an "
            "option of the source or the engine, refuses such events"
        )
    return told
