"""The header of an ordered query's options: the most of a place, how SKIP goes on, where sections begin.

It stands at place 0 of ``o``, which is read only. What Python writes has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads_head

#: The most options of a place.
MOST: Final = 0
most = reads_head(MOST)
#: How SKIP goes on, and the number of the GPM it names.
MODE: Final = 1
mode = reads_head(MODE)
GPM: Final = 2
gpm = reads_head(GPM)
#: Whether a run can be left out for that of another family.
ACROSS: Final = 3
across = reads_head(ACROSS)
#: By the number of a place, where its options begin and end.
PLACES: Final = 4
places = reads_head(PLACES)
#: By the number of a gate, where what must agree begins and ends.
GATES: Final = 5
gates = reads_head(GATES)
#: By the number of a candidate, its GPM.
GPMS: Final = 6
gpms = reads_head(GPMS)
#: By the number of a gate, where the bounds of time begin and end that runs there are in.
BOUNDS: Final = 7
bounds = reads_head(BOUNDS)
#: Whether options have conditions of their own.
ASKS: Final = 8
asks = reads_head(ASKS)
#: Whether there are bounds of time at all.
BOUNDED: Final = 9
bounded = reads_head(BOUNDED)
#: Whether an event is shown to those runs only that wait for its keys.
INDEXED: Final = 10
is_indexed = reads_head(INDEXED)

SIZE: Final = 11
