"""What SELECT binds as columns of Spark's types."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.errors import EngineError
from spaseq.language.syntax import Query
from spaseq.results.writers._columns import columns

_ROWS: Final = "ARRAY<MAP<STRING, STRUCT<value: STRING>>>"
_ROW: Final = "spaseq row"


def require_columns(query: Query, wanted: Mapping[str, str], taken: tuple[str, ...]) -> None:
    """Raises EngineError for a name that the query does not select, or that is one of those ``taken``."""
    known = columns(query)
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            selected = ", ".join(f"?{one}" for one in known)
            hint = f"did you mean {near[0]!r}?" if near else f"it selects {selected or 'none'}"
            raise EngineError(f"columns=: the query selects no ?{name}; {hint}")
        if name in taken:
            raise EngineError(
                f"columns=: {name!r} is a column of every match: rename it, SELECT (?{name} AS ?other)"
            )


def typed(found: DataFrame, wanted: Mapping[str, str]) -> DataFrame:
    """A row for each row of ``bindings``, with further columns: variable → type, as Spark writes types.

    A value that is none of its type, or not bound, is null; ``bindings`` has it as it is.
    """
    rows = found.withColumn(_ROW, F.explode(F.from_json("bindings", _ROWS)))
    values = {
        name: F.try_element_at(_ROW, F.lit(name))["value"].try_cast(kind) for name, kind in wanted.items()
    }
    return rows.withColumns(values).drop(_ROW)
