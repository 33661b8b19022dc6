"""10,000 random queries in fifty parts, of which CI runs one: all of them take half an hour."""

from __future__ import annotations

from typing import Final

import pytest

#: So many queries in each.
SIZE: Final = 200

PARTS: Final = [
    pytest.param(part, marks=pytest.mark.long if part else pytest.mark.slow) for part in range(50)
]
