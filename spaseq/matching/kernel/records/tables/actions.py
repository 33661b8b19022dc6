"""An action, in the tables: what a run does on its way to a place, for Kleenes, negations and WITHINs."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

kind = reads(0)
#: A Kleene, a negation or a WITHIN.
about = reads(1)
#: The most or least iterations, a limit's place in the tables, or an owner.
number = reads(2)

SIZE: Final = 3

# Kinds: a Kleene begins, goes on, ends; a negation forbids, waits, is decided; a WITHIN begins, ends.
ENTER: Final = 0
AGAIN: Final = 1
LEAVE: Final = 2
FORBID: Final = 3
AWAIT: Final = 4
DECIDE: Final = 5
SINCE: Final = 6
UNTIL: Final = 7
