"""A gap of a wait: a stretch in which something is forbidden, from after an event to before another.

Its streams may be ``NOWHERE`` and ``SEVERAL``, too.
"""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes

#: What is forbidden; 0: the gap is unused.
forbidden, set_forbidden = reads(0), writes(0)
#: The element before which it ends.
owner, set_owner = reads(1), writes(1)
after_time, set_after_time = reads(2), writes(2)
#: ``NOWHERE``: since the window began.
after_stream, set_after_stream = reads(3), writes(3)
after_number, set_after_number = reads(4), writes(4)
before_time, set_before_time = reads(5), writes(5)
#: ``NOWHERE``: the owner has not begun.
before_stream, set_before_stream = reads(6), writes(6)
before_number, set_before_number = reads(7), writes(7)

SIZE: Final = 8
