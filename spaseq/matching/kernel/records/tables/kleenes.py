"""A Kleene, in the tables: the slots that are its iterations' own, and its aggregates."""

from __future__ import annotations

from spaseq._fields import reads

number = reads(0)
own, own_end = reads(1), reads(2)
aggregates, aggregates_end = reads(3), reads(4)
