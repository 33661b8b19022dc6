"""Why a query found no match: counts from a query run again, and the likeliest cause. Open ``diagnose.py``
first.
"""

from spaseq.why.diagnosis import (
    BranchCount,
    Diagnosis,
    EdgeCount,
    FilterCount,
    GpmStats,
    Missing,
    StateCount,
    Trial,
)

__all__ = [
    "BranchCount",
    "Diagnosis",
    "EdgeCount",
    "FilterCount",
    "GpmStats",
    "Missing",
    "StateCount",
    "Trial",
]
