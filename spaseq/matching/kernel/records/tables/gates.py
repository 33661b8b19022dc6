"""A gate, in the tables: an operator, and what may come next at a place of the automaton.

Of what Python reads, too, the place in the gate has a name in capitals.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

#: ``STRICT``, ``NEXT`` or ``ANY``.
operator = reads(0)
#: From where to where its candidates stand.
CANDIDATES: Final = 1
candidates = reads(CANDIDATES)
CANDIDATES_END: Final = 2
candidates_end = reads(CANDIDATES_END)
#: What a run does that comes to it, and the program of what must hold then.
actions, actions_end = reads(3), reads(4)
code, code_end = reads(5), reads(6)
#: The slots of its join key.
keys, keys_end = reads(7), reads(8)
#: Of the ordering filter that alone decides, 1 for greater and -1 for less, 0 if there is none; the slot and
#: the column that it compares, and whether equal will do.
sign, slot, column, closed = reads(9), reads(10), reads(11), reads(12)
#: Which of all gates it is.
NUMBER: Final = 13
number = reads(NUMBER)
#: Whether some candidate gathers several events.
gathers = reads(14)
#: Whether a run that takes an event as one candidate still waits for the others.
parted = reads(15)

SIZE: Final = 16

# Operators: ``,``, ``;`` and ``:``.
STRICT: Final = 0
NEXT: Final = 1
ANY: Final = 2
