"""Outboxes: matches go to a URL as records of a commit, which are sent when the commit is made.

A record that was not committed is not sent, since the next engine finds its match again. A committed record
is sent by this engine, or by the next. Kafka stores records and their total in one transaction, so that none
arrives twice. Elsewhere, records in transit when a process is killed arrive again, with the same numbers.
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

#: At most this many bytes of records wait in memory for a commit; further records wait in the state's file.
_IN_MEMORY: Final = 8 << 20

#: At most this many records are sent at once, in one transaction.
_AT_ONCE: Final = 10_000


class Outbox:
    """The records for a URL, sent with the commits of a state; a ``Sink``, for any thread.

    ``delivered``: how many records of this process are known to have arrived. ``count``: how many there are
    in all, including records that are not committed yet.
    """

    def __init__(
        self, url: str, media: str, identity: str, store: Store, outputs: dict[str, int], lock: RLock
    ) -> None:
        """Connect, and send what the last engine could not. ``outputs``: the committed numbers, by name.

        Raises SourceError for an invalid URL, SinkError if it does not accept records, and ``EngineError``
        for a state with records that went to another URL, or which is older than the records there.
        """
        address, _, _ = parse_address(url, sink=True)
        #: Its name among the outputs of a commit: the URL without credentials and options.
        self.name = str(address)
        self._store, self._lock = store, lock
        self.count = outputs.get(self.name, 0)
        #: Records that are not in the file yet, each with the number of records before it.
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
        """How many records of this process are known to have arrived."""
        to = self._transactions or self._sink
        return 0 if to is None else to.delivered

    def write(self, records: Sequence[SinkRecord]) -> None:
        """Add records to the next commit, in their order."""
        with self._lock:
            for record in records:
                self.waiting.append((self.count, record))
                self.count += 1
                self._size += len(record.value)
            if self._size > _IN_MEMORY:
                self._store.add_records(self.waiting)
                self.written()

    def flush(self) -> None:
        """Do nothing: records are sent with a commit."""

    def written(self) -> None:
        """Note that the waiting records are in the file."""
        self.waiting, self._size = [], 0

    def send(self) -> None:
        """Send committed records. Raises SinkError; records that did not arrive are sent by the
        next commit.
        """
        while found := self._store.records(_AT_ONCE):
            records, after = [record for _, record in found], found[-1][0] + 1
            if self._transactions is not None:
                self._transactions.send(records, after)
            elif self._sink is not None:
                self._sink.write(records)
                self._sink.flush()
            self._store.forget_records(before=after)

    def close(self) -> None:
        """End the connection. Records that are not committed are not sent."""
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
