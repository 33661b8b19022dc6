"""A partial match that waits for an event; then come its record, moments and choices."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: The items it has, a bit for each.
bound, set_bound = reads(0), writes(0)
is_unsure, set_is_unsure = reads(1), writes(1)
#: Of its first event.
axis, set_axis = reads(2), writes(2)

RECORD: Final = 3
