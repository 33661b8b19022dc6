"""What is found: its event, if it is to be asked exactly, its choices, and its partition."""

from __future__ import annotations

from typing import Final

from spaseq._fields import writes
from spaseq.matching.lazy.records.posting import KEY_LIMIT

EVENT: Final = 0
UNSURE: Final = 1
BEGIN: Final = 2
END: Final = 3
SHOWN: Final = 4  # which rows its search was shown: see ``passing.rank``; nothing, without a bound
KEY: Final = 5
SIZE: Final = KEY + KEY_LIMIT

set_event, set_is_unsure = writes(EVENT), writes(UNSURE)
set_begin, set_end, set_shown = writes(BEGIN), writes(END), writes(SHOWN)
