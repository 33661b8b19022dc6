"""What a buffer keeps of its GPM's rows: values, those that are doubles, too, and the indexes of rows."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

values = reads(0)  # columns of a batch
values_end = reads(1)
indexes = reads(2)
indexes_end = reads(3)
ordered = reads(4)  # places of values that are doubles, too
ordered_end = reads(5)

SIZE: Final = 6
