"""State that outlives the process: what arrived, how far everything has come, in one SQLite file.

``journal`` takes down what happens to an engine's queries, ``entry`` packs it, ``store`` keeps it, and
``state`` brings these together; ``opening`` opens a file, and ``replay`` makes a new engine what the old one
was, by doing the same once more. ``horizon`` says what is no longer needed, ``resume`` reads sources on from
where they were.
"""

from __future__ import annotations

from spaseq.engine.durable.summary import Summary, copy, summary

__all__ = ["Summary", "copy", "summary"]
