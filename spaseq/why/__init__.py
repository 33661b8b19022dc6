"""Why a query found no match: counts, and what they say."""

from spaseq.why.diagnosis import Diagnosis, FilterCount, GpmStats, Missing, Trial

__all__ = ["Diagnosis", "FilterCount", "GpmStats", "Missing", "Trial"]
