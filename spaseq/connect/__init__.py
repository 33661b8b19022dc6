"""Live sources and sinks by URL: Kafka, MQTT, WebSocket, HTTP (SSE, NDJSON), LDES, and growing files.

A URL, or ``source(url)``, is a location wherever one is accepted. A source is read no faster than its events
are processed, reconnects, and ends with the run. Clients are extras: ``kafka``, ``mqtt``, ``ws``, ``http``.
Open ``opening.py`` first.
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
