"""The columns of a query's rows, known before the first row."""

from __future__ import annotations

from functools import lru_cache

from spaseq.language.syntax import Query, Select


@lru_cache(maxsize=16)
def columns(query: Query) -> tuple[str, ...]:
    """Return the names that SELECT projects, in order; none for ASK and CONSTRUCT."""
    if not isinstance(query.form, Select):
        return ()
    if query.form.items is not None:
        return tuple(item.variable.name for item in query.form.items)
    from spaseq.automaton.normal import normalise
    from spaseq.results.select import bound_variables

    return bound_variables(normalise(query))
