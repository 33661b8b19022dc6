"""Roots, a row each of what was found: the node of an event's matches, and what they have in common."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: At most so many variables tell runs apart.
KEY_LIMIT: Final = 4

# The least top in the window, where the event's position stands, and where its keys begin.
LEAST: Final = 1
POSITION: Final = 2
KEYS: Final = 3
SIZE: Final = KEYS + KEY_LIMIT

#: The node from which the matches are enumerated.
node, set_node = reads(0), writes(0)
#: The least top that is in the window of the event.
least, set_least = reads(LEAST), writes(LEAST)
#: The last event's position.
set_position = writes(POSITION)
