"""A question, in the memory: whether a run may take an event. Tables cannot say, so somebody is asked."""

from __future__ import annotations

from typing import Final

from spaseq._fields import writes, writes_item
from spaseq.matching.kernel.records.tables import parts

set_wait = writes(0)
#: That of the candidate.
set_number = writes(1)
#: Of each event that is gathered.
set_position = writes_item(2, 1)

SIZE: Final = 2 + parts.LIMIT
