"""Matches that go to a URL: a commit has them as records, and they are sent when it is made.

A record that was not committed is not sent, since the next engine finds it again; one that was is sent by
this engine, or by the next. Into Kafka a transaction has records and how many came there in all, so that none
comes twice; elsewhere those that were under way when a process was killed come again, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from spaseq.connect.address import parse_address
from spaseq.connect.sinks import Sink, SinkRecord, open_sink
from spaseq.connect.transactions import Transactions
from spaseq.errors import EngineError

if TYPE_CHECKING:
    from threading import RLock

    from spaseq.engine.durable.store import Store

#: So many bytes of records wait in memory for a commit; more of them wait in the state's file.
_IN_MEMORY: Final = 8 << 20

#: So many records are sent at once, in one transaction.
_AT_ONCE: Final = 10_000


class Outbox:
    """What goes to a URL, with the commits of a state; a ``Sink``, for any thread.

    ``delivered``: how many records are known to have come there, of this process. ``count``: how many there
    are in all, those included that are part of no commit yet.
    """

    def __init__(
        self, url: str, media: str, identity: str, store: Store, outputs: dict[str, int], lock: RLock
    ) -> None:
        """Connects, and sends what the last engine could not. ``outputs``: what was committed, by name.

        Raises SourceError for what is wrong in the URL, SinkError if it does not take records, and
        ``EngineError`` for a state whose records went elsewhere, or which is older than what came there.
        """
        address, _, _ = parse_address(url, sink=True)
        #: What it is called among the outputs of a commit: the URL without credentials and options.
        self.name = str(address)
        self._store, self._lock = store, lock
        self.count = outputs.get(self.name, 0)
        #: What was written and is not in the file, each with how many records are before it.
        self.waiting: list[tuple[int, SinkRecord]] = []
        self._size = 0
        others = [name for name, count in outputs.items() if count and "://" in name and name != self.name]
        if others:
            raise EngineError(
                f"with this state records went to {others[0]}: go on there, or begin anew with another file"
            )
        store.forget_records(after=self.count)
        self._transactions: Transactions | None = None
        self._sink: Sink | None = None
        if address.scheme == "kafka":
            self._transactions = Transactions(address, f"spaseq-{identity}")
        else:
            self._sink = open_sink(url, media)
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    @property
    def delivered(self) -> int:
        """How many records are known to have come there, of this process."""
        to = self._transactions or self._sink
        return 0 if to is None else to.delivered

    def write(self, records: Sequence[SinkRecord]) -> None:
        """Gives records to the next commit, in their order."""
        with self._lock:
            for record in records:
                self.waiting.append((self.count, record))
                self.count += 1
                self._size += len(record.value)
            if self._size > _IN_MEMORY:
                self._store.add_records(self.waiting)
                self.written()

    def flush(self) -> None:
        """Nothing: what was written goes with a commit."""

    def written(self) -> None:
        """What waited is in the file."""
        self.waiting, self._size = [], 0

    def send(self) -> None:
        """Sends what commits have. Raises SinkError; what did not come there is sent by the next commit."""
        while found := self._store.records(_AT_ONCE):
            records, after = [record for _, record in found], found[-1][0] + 1
            if self._transactions is not None:
                self._transactions.send(records, after)
            elif self._sink is not None:
                self._sink.write(records)
                self._sink.flush()
            self._store.forget_records(before=after)

    def close(self) -> None:
        """Ends the connection. What no commit has is not sent."""
        to = self._transactions or self._sink
        if to is not None:
            to.close()

    def _resume(self) -> None:
        there = None if self._transactions is None else self._transactions.count
        if there is not None:
            if there > self.count:
                raise EngineError(
                    f"{self.name}: {there} records of this state came there, and the file knows of "
                    f"{self.count}: it is an older copy, which would send some again. Use the newest one, or "
                    "begin anew with another file"
                )
            self._store.forget_records(before=there)
        self.send()
