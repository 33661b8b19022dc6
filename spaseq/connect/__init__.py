"""Streams by URL: Kafka, MQTT, WebSocket, server-sent events and NDJSON by HTTP, and files that grow.

``source("kafka://broker/trades?format=nq")`` is a location wherever one is wanted, as is the URL itself. A
source is read no faster than its events are processed, connects again when its connection is lost, and ends
with the run. Nothing is opened that no URL names. Each client is an extra: ``kafka``, ``mqtt``, ``ws``,
``http``.
"""

from __future__ import annotations

from spaseq.connect.address import Address, is_url
from spaseq.connect.live import Live
from spaseq.connect.opening import LiveSource, Location, after, open_source, parse_location, resolved, source
from spaseq.excerpts import hide

__all__ = [
    "Address",
    "Live",
    "LiveSource",
    "Location",
    "after",
    "hide",
    "is_url",
    "open_source",
    "parse_location",
    "resolved",
    "source",
]
