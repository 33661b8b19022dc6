"""A Kleene: its number among all, its own slots and what aggregates of it."""

from __future__ import annotations

from spaseq._fields import reads

number = reads(0)
own = reads(1)
own_end = reads(2)
aggregates = reads(3)
aggregates_end = reads(4)
