"""A condition between elements: those that it needs, a bit for each, and its program."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads

needs = reads(0)
code = reads(1)
code_end = reads(2)

SIZE: Final = 3
