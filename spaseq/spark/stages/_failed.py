"""Failed calls of the user's functions, on their way from Spark's processes to the driver."""

from __future__ import annotations

from collections import Counter

from spaseq.terms.dictionary import Dictionary

#: By a function's IRI: the number of failed calls, and the warning of the first one.
Failed = dict[str, tuple[int, str]]


class FailedCalls:
    """What fails with a dictionary, as often as is asked what came to it; its warnings are not shown."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._told: Counter[str] = Counter()
        self._warnings: list[str] = []
        dictionary.warn = self._warnings.append

    def since(self) -> Failed:
        """What has failed since the last call."""
        failed = self._dictionary.failed_calls
        if failed == self._told:
            return {}
        new, self._told = failed - self._told, failed.copy()
        first = {iri: next((w for w in self._warnings if w.startswith(f"<{iri}>")), "") for iri in new}
        self._warnings.clear()
        return {iri: (count, first[iri]) for iri, count in new.items()}
