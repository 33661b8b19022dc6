"""10,000 random queries in twenty parts: all of them take half an hour."""

from __future__ import annotations

from typing import Final

import pytest

#: So many queries in each.
SIZE: Final = 500

PARTS: Final = [pytest.param(part, marks=pytest.mark.long) for part in range(20)]
