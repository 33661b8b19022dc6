"""State that outlives the process: what arrived, how far everything has come, in one SQLite file.

``journal`` records what happens to an engine's queries, as bytes, ``store`` keeps it, and ``state``, which
to read first, commits both; ``replay`` makes a new engine what the old one was, by doing the same once more,
and reads sources on from where they were. ``horizon`` says what is no longer needed; ``outbox`` sends.
"""

from __future__ import annotations

from spaseq.engine.durable.summary import Summary, copy, summary

__all__ = ["Summary", "copy", "summary"]
