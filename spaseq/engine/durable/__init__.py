"""State that outlives the process, in one SQLite file: what arrived, and what was delivered.

``state`` commits it (open it first). ``journal`` records everything that happens to an engine's queries, as
bytes; ``store`` is the file. ``replay`` restores a new engine by repeating it, and continues sources where
they were. ``horizon`` says what is no longer needed; ``outbox`` sends matches with the commits; ``summary``
describes a file.
"""

from __future__ import annotations

from spaseq.engine.durable.summary import Summary, copy, summary

__all__ = ["Summary", "copy", "summary"]
