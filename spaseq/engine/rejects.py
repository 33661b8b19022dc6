"""What cannot be processed: counted, kept, and told to whoever asked for it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Final

from spaseq.errors import BadEventError, LateEventError
from spaseq.events import EventBatch
from spaseq.sources import BadEvent
from spaseq.terms import UNBOUND

#: Called with every bad or late event.
DeadLetters = Callable[[BadEvent], None]

#: How many bad and late events are kept when there is no sink for them.
KEPT: Final = 1_000


class Rejects:
    """The engine's dead letters: a callable, the path of an NDJSON file, or the newest in ``kept``.

    With ``strict``, every rejection raises, after it was counted and passed on.
    """

    def __init__(self, sink: DeadLetters | str | Path | None, strict: bool) -> None:
        self.bad = 0
        self.late = 0
        self.kept: deque[BadEvent] = deque(maxlen=KEPT)
        self._strict = strict
        self._file: IO[str] | None = None
        if sink is None:
            self._pass_on: DeadLetters = self.kept.append
        elif callable(sink):
            self._pass_on = sink
        else:
            self._file = open(sink, "a", encoding="utf-8")  # noqa: SIM115  # close() closes it
            self._pass_on = self._write

    def malformed(self, letter: BadEvent) -> None:
        """An event that is none; raises ``BadEventError`` when strict."""
        self.bad += 1
        self._pass_on(letter)
        if self._strict:
            raise BadEventError(letter.reason, stream=letter.stream, position=letter.position)

    def too_late(self, batch: EventBatch, index: int, watermark: float) -> None:
        """An event before the watermark; raises ``LateEventError`` when strict."""
        show = batch.clock.show
        time = int(batch.time[index])
        limit = f"the watermark, {show(int(watermark))}" if watermark > time else "the newest event"
        letter = letter_of(batch, index, f"late: its time {show(time)} is before {limit}")
        self.late += 1
        self._pass_on(letter)
        if self._strict:
            raise LateEventError(letter.reason, stream=letter.stream, position=letter.position)

    def close(self) -> None:
        """Closes the file of dead letters, if there is one."""
        if self._file is not None:
            self._file.close()

    def _write(self, letter: BadEvent) -> None:
        if self._file is not None:
            self._file.write(json.dumps(asdict(letter), ensure_ascii=False) + "\n")
            self._file.flush()


def letter_of(batch: EventBatch, index: int, reason: str) -> BadEvent:
    """The dead letter of an event that was read: its stream, number and N-Quads."""
    term = batch.dictionary.term
    graph = int(batch.graph[index])
    name = f" {term(graph)}" if graph != UNBOUND else ""
    payload = "\n".join(f"{term(s)} {term(p)} {term(o)}{name} ." for s, p, o in batch.triples(index))
    stream = term(int(batch.stream[index])).value
    return BadEvent(stream, f"event {batch.n[index] + 1}", reason, payload)
