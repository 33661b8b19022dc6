"""Why a query found no match: counts, and what they say."""

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
