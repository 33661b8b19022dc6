"""Live sources as iterators of batches, which can be ended at any time, and are told what is done with."""

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

#: So many messages are a batch at most; and so many bytes are enough for one.
MOST: Final = 1_000
ENOUGH_BYTES: Final = 1 << 22

#: Seconds that a client waits for messages before it looks whether it is to end.
STEP: Final = 0.2

#: Seconds in which a first connection must be made, and, once one is lost, the next, unless the URL says it.
CONNECT: Final = 10.0
RETRY: Final = 300.0


class Client(Protocol):
    """What one kind of server is read with. One thread uses it."""

    def open(self, seconds: float) -> None:
        """Connect, again if it was connected before, and go on where ``read`` was.

        Raises DisconnectedError if that may work later, SourceError if not.
        """

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        """What is there, up to so many; waits for a first one. None when the server has ended the stream.

        Raises DisconnectedError when the connection is lost.
        """

    def done(self, messages: Sequence[Message]) -> None:
        """These have been processed, with all before them: the server need not give them again."""

    def close(self) -> None:
        """Ends the connection, and all threads of it. It may not be connected."""

    @property
    def place(self) -> Place:
        """Up to where ``read`` has come, as far as the server can be asked to go on there."""

    def resume(self, place: Place) -> None:
        """Before it is opened: to go on there. Raises SourceError for a place in something else."""


@runtime_checkable
class Resumable(Protocol):
    """A client whose server keeps what was before: it can begin at a time, in milliseconds since 1970."""

    since: int | None


@dataclass(frozen=True, slots=True)
class Ending:
    """Set by another thread to end a source; ``wait`` sleeps until then at most."""

    event: threading.Event

    @property
    def is_set(self) -> bool:
        """Whether the source is to end."""
        return self.event.is_set()

    def wait(self, seconds: float) -> None:
        """Sleeps, or ends earlier."""
        self.event.wait(seconds)


#: A batch, and up to where its source has come with it: None for a history. One without events moves that on.
Placed = tuple[EventBatch, Place | None]

#: What reads a source: it gets what ends it, and what says how many of its batches have been processed.
Batches = Callable[[Ending, Callable[[], int]], Generator[Placed, None, None]]


class Live:
    """An iterator of batches that ends when told to; some have no events.

    One thread iterates; any may call ``close``, which ends it at once or, if a thread is inside, within a
    moment there, and ``acknowledge``, which says that one batch more has been processed.
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
        """Up to where the source had come with the next batch, in their order; to be asked once for each."""
        return self._places.popleft()

    def acknowledge(self) -> None:
        """One batch more has been processed, in the order in which they came."""
        self._processed += 1

    def close(self) -> None:
        """Ends the source and its connection."""
        self._ending.event.set()
        with suppress(ValueError):  # a thread is inside, and leaves it now
            self._batches.close()


class Connection:
    """A client with what it takes to connect it, again and again."""

    def __init__(self, address: Address, client: Client) -> None:
        self._address = address
        self._client = client
        self._connect = address.seconds("connect", CONNECT)
        self._retries = Retries(address.seconds("retry", RETRY))
        self._is_open = False

    def open(self, ending: Ending | None = None) -> None:
        """Connect for the first time, if that has not happened. Raises SourceError if it takes too long."""
        if not self._is_open:
            self._attempt(Retries(self._connect), ending, f"no connection within {self._connect:g} s")
            self._is_open = True

    def read(self, ending: Ending) -> Sequence[Message] | None:
        """What is there; connects again where that is needed. Raises SourceError when that has no end."""
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
        """Connect anew, since nothing has come for a while. Raises SourceError when that has no end."""
        self._client.close()
        patience = self._address.seconds("retry", RETRY)
        self._attempt(self._retries, ending, f"a silent connection was not made again within {patience:g} s")

    def done(self, messages: Sequence[Message]) -> None:
        """See ``Client``."""
        self._client.done(messages)

    @property
    def place(self) -> Place:
        """See ``Client``."""
        return self._client.place

    def close(self) -> None:
        """See ``Client``."""
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
    connection: Connection,
    decoder: Decoder,
    ending: Ending,
    settled: Callable[[], int],
    sieve: Callable[[EventBatch], EventBatch] | None,
) -> Generator[Placed, None, None]:
    """The events of a client's messages, those that ``sieve`` leaves.

    A client is not read before what it gave was taken, and told what is settled before it is read again.
    While something is not settled, and nothing comes, batches without events let who takes them see to that.
    """
    # The messages of each batch that is not known to be settled, the number of the batch first.
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
