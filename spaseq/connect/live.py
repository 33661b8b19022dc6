"""Live sources as iterators of batches that can be closed at any time and get acknowledgements."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, Self, runtime_checkable

from spaseq.connect.address import Address
from spaseq.connect.again import Place
from spaseq.connect.messages import Decoder, Message
from spaseq.connect.reconnect import DisconnectedError, Retries, SilentError
from spaseq.errors import SourceError
from spaseq.events import EventBatch

#: The most messages of a batch, and the bytes that fill one.
MOST: Final = 1_000
ENOUGH_BYTES: Final = 1 << 22

#: Seconds that a client waits for messages before it checks whether to end.
STEP: Final = 0.2

#: Default seconds for the first connection, and for reconnecting after a loss.
CONNECT: Final = 10.0
RETRY: Final = 300.0


class Client(Protocol):
    """Reads one kind of server. One thread uses it."""

    def open(self, seconds: float) -> None:
        """Connect or reconnect, and resume where ``read`` stopped.

        Raises DisconnectedError if that may work later, otherwise SourceError.
        """

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        """Return up to ``most`` messages, waiting for the first; None when the server has ended the stream.

        Raises DisconnectedError when the connection is lost.
        """

    def done(self, messages: Sequence[Message]) -> None:
        """Note that these messages and all before them were processed: the server need not keep them."""

    def close(self) -> None:
        """End the connection and its threads. It may not be connected."""

    @property
    def place(self) -> Place:
        """Return the position after the last ``read``, as far as the server can resume there."""

    def resume(self, place: Place) -> None:
        """Set the position to resume at, before ``open``.

        Raises SourceError for a position in another source.
        """


@runtime_checkable
class Resumable(Protocol):
    """A client of a server that keeps old messages: it can begin at a time, in milliseconds since 1970."""

    since: int | None


@dataclass(frozen=True, slots=True)
class Ending:
    """Set by another thread to end a source; ``wait`` sleeps at most until then."""

    event: threading.Event

    @property
    def is_set(self) -> bool:
        """Return whether the source must end."""
        return self.event.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep, or return earlier at the end."""
        self.event.wait(seconds)


#: A batch, and the position of its source after it; None for a history. An empty batch only moves the
#: position.
Placed = tuple[EventBatch, Place | None]

#: Reads a source, given what ends it and a function that returns how many of its batches were processed.
Batches = Callable[[Ending, Callable[[], int]], Generator[Placed, None, None]]


class Live:
    """An iterator of batches that can be closed; some batches are empty.

    One thread iterates. Any thread may call ``close`` and ``acknowledge``. ``close`` ends the iteration at
    once or, during a read, within a moment. ``acknowledge`` counts one more processed batch.
    """

    def __init__(self, batches: Batches) -> None:
        self._ending = Ending(threading.Event())
        self._processed = 0
        self._batches = batches(self._ending, lambda: self._processed)
        self._places: deque[Place | None] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> EventBatch:
        batch, place = next(self._batches)
        self._places.append(place)
        return batch

    def place(self) -> Place | None:
        """Return the position after the next batch, in order; must be called once per batch."""
        return self._places.popleft()

    def acknowledge(self) -> None:
        """Count one more processed batch, in the order of the batches."""
        self._processed += 1

    def close(self) -> None:
        """End the source and its connection."""
        self._ending.event.set()
        with suppress(ValueError):  # another thread is iterating, and ends now
            self._batches.close()


class PersistentClient:
    """A client that connects and reconnects."""

    def __init__(self, address: Address, client: Client) -> None:
        self._address = address
        self._client = client
        self._connect = address.seconds("connect", CONNECT)
        self._retries = Retries(address.seconds("retry", RETRY))
        self._is_open = False

    def open(self, ending: Ending | None = None) -> None:
        """Connect for the first time, if not done yet. Raises SourceError after a timeout."""
        if not self._is_open:
            self._attempt(Retries(self._connect), ending, f"no connection within {self._connect:g} s")
            self._is_open = True

    def read(self, ending: Ending) -> Sequence[Message] | None:
        """Return the available messages, reconnecting if needed.

        Raises SourceError if that fails for too long.
        """
        try:
            messages = self._client.read(MOST, STEP)
        except DisconnectedError as lost:
            self._client.close()
            patience = self._address.seconds("retry", RETRY)
            gone = f"the connection was lost ({lost}) and not made again within {patience:g} s"
            if isinstance(lost, SilentError):
                self._retries.proved()
            delay = self._retries.wait(lost.after)
            if delay is None:
                raise self._failed(gone, lost) from None
            ending.wait(delay)
            self._attempt(self._retries, ending, gone)
            return ()
        if messages:
            self._retries.proved()
        return messages

    def again(self, ending: Ending) -> None:
        """Reconnect a silent connection. Raises SourceError if that fails for too long."""
        self._client.close()
        patience = self._address.seconds("retry", RETRY)
        self._attempt(self._retries, ending, f"a silent connection was not made again within {patience:g} s")

    def done(self, messages: Sequence[Message]) -> None:
        """Report processed messages to the client, see ``Client.done``."""
        self._client.done(messages)

    @property
    def place(self) -> Place:
        """Return the client's position."""
        return self._client.place

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _attempt(self, retries: Retries, ending: Ending | None, failure: str) -> None:
        while ending is None or not ending.is_set:
            try:
                self._client.open(self._connect)
            except DisconnectedError as error:
                self._client.close()
                delay = retries.wait(error.after)
                if delay is None:
                    raise self._failed(failure, error) from None
                (ending or Ending(threading.Event())).wait(delay)
            else:
                retries.connected()
                return

    def _failed(self, failure: str, error: Exception) -> SourceError:
        return SourceError(
            f"{self._address}: {failure}: {error}. Is the server running there, and reachable from here? "
            "(options connect= and retry= say how long is waited)"
        )


def batches_of(
    connection: PersistentClient,
    decoder: Decoder,
    ending: Ending,
    settled: Callable[[], int],
    sieve: Callable[[EventBatch], EventBatch] | None,
) -> Generator[Placed, None, None]:
    """Yield the events of a client's messages that ``sieve`` keeps.

    The client is read only after its last batch was taken, and gets the processed messages before (``done``).
    If nothing arrives while messages are unprocessed, empty batches let the consumer acknowledge them.
    """
    # The messages of each unprocessed batch, with the number of the batch.
    waiting: deque[tuple[int, Sequence[Message]]] = deque()
    given = 0

    def tell() -> None:
        while waiting and waiting[0][0] <= settled():
            connection.done(waiting.popleft()[1])

    while not ending.is_set:
        tell()
        messages = connection.read(ending)
        if messages is None:
            return
        if not messages and not waiting:
            continue
        batch = (decoder.read(messages) if messages else None) or decoder.nothing
        if sieve is not None:
            batch = sieve(batch)
        given += 1
        if messages:
            waiting.append((given, messages))
        try:
            yield batch, connection.place
        except GeneratorExit:
            tell()
            raise
    tell()
