"""What to suggest when a name is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from spaseq.terms.iris import WELL_KNOWN


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like ``name``, if one is like it at all; case does not count.

    >>> nearest("id1", ["card", "id", "amount1"])
    'id'
    """
    by_lower = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    found = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def undeclared_prefix(name: str, declared: Iterable[str]) -> str | None:
    """What to do about a prefix that is not declared."""
    if name in WELL_KNOWN:
        return f"add PREFIX {name}: <{WELL_KNOWN[name]}>"
    alike = nearest(name, declared)
    if alike is not None:
        return f"did you mean '{alike}:'?"
    return f"add PREFIX {name}: <…> before the query"
