"""What there is one of: where a call of the kernel stands, and how much room there is."""

from __future__ import annotations

from typing import Final

EVENT: Final = 0
STAGE: Final = 1  # what of the event is done: see ``run``
PLAN: Final = 2
ITEM: Final = 3
ROW: Final = 4
DEPTH: Final = 5
FOUND: Final = 6
CHOICES: Final = 7
LIMIT: Final = 8
SINGLE: Final = 9
ENTRIES: Final = 10
AT: Final = 11  # the position of the event
TESTED: Final = 12  # rows that were looked at, in all
TRIGGER: Final = 13  # the Kleene of which the event is to be the last iteration, or NOTHING
WAIT: Final = 14  # the number of the partial match that is extended
REPEATING: Final = 15  # events of the past are looked at again, since an order has changed
PEAK: Final = 16  # so many partial matches have waited at once

# How much room there is: integers of frames, entries (less one), found and choices, partial matches in a
# list; and how many lists there are.
FRAMES_END: Final = 17
ENTRY_MASK: Final = 18
FOUND_ROOM: Final = 19
CHOICE_ROOM: Final = 20
WAIT_ROOM: Final = 21
LISTS: Final = 22
#: Where the orders of plans end, and it is said of each GPM which plans its events may take on.
WOKEN: Final = 23

#: Of the event in hand, the number of the first GPM that it has rows of, and of the one behind the last.
FIRST_GPM: Final = 24
LAST_GPM: Final = 25
#: The place on the axis up to which rows were taken out.
EXPIRED: Final = 26

SIZE: Final = 27
