"""Events that go no further than the stateless stage: what of them the stateful stage must know.

Whether an event is late depends on the watermark, which only the stateful stage is told. Events that no GPM
wants are late like any others, so their stamps (stream, arrival number, time) travel, but nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spaseq.chunks import Array, narrow, pack, require, unpack, unpack_header, unpacking, within
from spaseq.engine.rejects import late_reason
from spaseq.events import Clock, EventBatch, Ids
from spaseq.sources import BadEvent


def stamps(batch: EventBatch, events: Ids) -> bytes:
    """The stamps of the events at these positions, at least one."""
    time, n, stream = batch.time[events], batch.n[events], batch.stream[events]
    begins = np.append(True, stream[1:] != stream[:-1])
    streams = np.unique(stream[begins])
    header = {
        "clock": batch.clock.value,
        "begin": int(time.min()),
        "first": [int(time[0]), int(n[0])],
        "streams": [batch.dictionary.term(identifier).value for identifier in streams.tolist()],
    }
    # Neighbours differ by little, so that differences take few bytes.
    columns = {"time": np.diff(time), "n": np.diff(n), "stream": np.searchsorted(streams, stream)}
    return pack(header, {name: narrow(column) for name, column in columns.items()})


def late_among(data: bytes, watermark: int) -> list[BadEvent]:
    """The dead letters of those before the watermark, without payload."""
    if unpack_header(data)["begin"] >= watermark:
        return []
    header, arrays = unpack(data)
    with unpacking():
        return _late(header, arrays, watermark)


def _late(header: Mapping[str, Any], arrays: Mapping[str, Array], watermark: int) -> list[BadEvent]:
    time, n = (
        np.cumsum(np.append(first, arrays[name]), dtype=np.int64)
        for first, name in zip(header["first"], ("time", "n"), strict=True)
    )
    clock, stream = Clock(header["clock"]), arrays["stream"]
    require(len(time) == len(n) == len(stream), "the length of a column")
    require(within(stream, 0, len(header["streams"])), "the number of a stream")
    return [
        BadEvent(
            header["streams"][stream[index]],
            f"event {n[index] + 1}",
            late_reason(clock, int(time[index]), watermark),
            payload="",
        )
        for index in np.flatnonzero(time < watermark).tolist()
    ]
