"""A unit, in the tables: an atom's GPM inside some Kleenes, what it binds and what it must meet."""

from __future__ import annotations

from spaseq._fields import reads

#: From where to where there are pairs of a slot and the column it takes.
binds, binds_end = reads(0), reads(1)
code, code_end = reads(2), reads(3)
#: The Kleene whose iterations have as many solutions as the row, 0 for none.
counting = reads(4)
