"""What batches give back stays with the process: else the next one gets the same memory page by page."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Final

import numpy as np

#: Just below the most (32 MiB) up to which glibc adapts.
_BYTES: Final = 31 << 20


@cache
def keep_freed() -> None:
    """Has glibc keep some 62 MiB of what is freed, instead of 256 KiB; elsewhere nothing changes.

    glibc's ``malloc`` takes arrays as large as the largest that was freed so far from its heap from then on,
    and returns of the heap's end what is beyond twice that (``mallopt(3)``, M_MMAP_THRESHOLD). An engine gets
    there by itself, sooner or later, or never, as the sizes of its batches fall. This array is never touched,
    so that it takes no memory.
    """
    with suppress(MemoryError):
        np.empty(_BYTES, dtype=np.int8)
