"""Roots, a row each of what was found: the node of an event's matches, and what they have in common."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: At most so many variables tell runs apart.
KEY_LIMIT: Final = 4

# The node, the least top in the window, the event's position, the state that it led to, its place on the
# window's axis, where the keys begin.
NODE: Final = 0
LEAST: Final = 1
POSITION: Final = 2
STATE: Final = 3
AXIS: Final = 4
KEYS: Final = 5
SIZE: Final = KEYS + KEY_LIMIT

#: The node from which the matches are enumerated.
node, set_node = reads(NODE), writes(NODE)
#: The least top that is in the window of the event.
least, set_least = reads(LEAST), writes(LEAST)
#: The last event's position.
position, set_position = reads(POSITION), writes(POSITION)
#: The state that the last event led to.
set_state = writes(STATE)
set_axis = writes(AXIS)
