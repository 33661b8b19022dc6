"""An element of a sequence: where it stands among the others, what it binds, what it must meet."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

gpm = reads(0)
before = reads(1)  # the items before it, a bit for each
after = reads(2)
kleene = reads(3)  # 0: none
least = reads(4)  # iterations
most = reads(5)  # -1: no bound
binds = reads(6)
binds_end = reads(7)
conditions = reads(8)  # that need it, complete
conditions_end = reads(9)
iteration = reads(10)  # what an iteration must meet
iteration_end = reads(11)
ranges = reads(12)
ranges_end = reads(13)
site = reads(14)  # its number among those of all plans

SIZE: Final = 15
