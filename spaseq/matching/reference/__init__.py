"""The slow, executable form of the semantics page: the judge of every other evaluator.

``matches`` reads a finite list of events and enumerates, element by element, every choice of events
that section 4 allows, asking each condition by looking at all events. Nothing is indexed, nothing
is remembered between two questions. ``Reference`` wraps it as an evaluator that can be pushed to.
"""

from spaseq.matching.reference.conditions import Entry, Events, Join, Leading, Mark, Partial, follow
from spaseq.matching.reference.evaluator import Reference, matches
from spaseq.matching.reference.prospects import Prospects, horizon
from spaseq.matching.reference.search import Search, found_of

__all__ = [
    "Entry",
    "Events",
    "Join",
    "Leading",
    "Mark",
    "Partial",
    "Prospects",
    "Reference",
    "Search",
    "follow",
    "found_of",
    "horizon",
    "matches",
]
