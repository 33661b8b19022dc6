"""Every way to choose events for a sequence, as in sections 4 and 5 of the semantics page.

A ``SequenceSearch`` reads all its events for each question. Nothing is indexed or kept between two questions.
``reference`` searches its whole window at every event. Other matchers search a few events, where their tables
cannot decide exactly. Open ``search.py`` first.
"""

from spaseq.matching.search.partials import Entry, Events, Join, Leading, Mark, Partial, follow
from spaseq.matching.search.prospects import Prospects, horizon
from spaseq.matching.search.search import SequenceSearch, found_of

__all__ = [
    "Entry",
    "Events",
    "Join",
    "Leading",
    "Mark",
    "Partial",
    "Prospects",
    "SequenceSearch",
    "follow",
    "found_of",
    "horizon",
]
