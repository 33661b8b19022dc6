"""The slow, executable form of the semantics page: the judge of every other matcher.

``matches`` reads a finite list of events and enumerates, element by element, every choice of events
that section 4 allows, by a ``search``. ``Reference`` wraps it as a matcher that can be pushed to.
Only the planner imports this package. ``tests/judge`` is a second judge, which shares no code.
"""

from spaseq.matching.reference.matcher import Reference, matches

__all__ = ["Reference", "matches"]
