"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from spaseq.terms.iris import WELL_KNOWN


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to ``name``, ignoring case; None if none is similar.

    >>> nearest("id1", ["card", "id", "amount1"])
    'id'
    """
    by_lower = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    found = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def undeclared_prefix(name: str, declared: Iterable[str]) -> str | None:
    """Return what to do about an undeclared prefix."""
    if name in WELL_KNOWN:
        return f"add PREFIX {name}: <{WELL_KNOWN[name]}>"
    alike = nearest(name, declared)
    if alike is not None:
        return f"did you mean '{alike}:'?"
    return f"add PREFIX {name}: <…> before the query"
