"""Functions that the user registered, here or with rdflib, called on typed values."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Final

import pyoxigraph as ox
import rdflib
from rdflib.term import Node

from spaseq.errors import warn_within
from spaseq.gpm.expressions.functions import Function
from spaseq.gpm.general.delegated import ExpressionError
from spaseq.language.functions import own_function
from spaseq.terms.interop import from_rdflib, to_rdflib
from spaseq.terms.values import BOOLEAN, DECIMAL, DOUBLE, INTEGER, STRING, Value, boolean, decode

#: Kinds of values whose data are passed as they are: int, Decimal, float, bool, str.
_PLAIN: Final = frozenset({INTEGER, DECIMAL, DOUBLE, BOOLEAN, STRING})


def own(iri: str) -> Function | None:
    """Return the function that is registered with this IRI, here or with rdflib; None if there is none."""
    found = own_function(iri)
    if found is None:
        return None
    return _called(iri, found.call, _plain if found.plain else lambda value: to_rdflib(value.term))


def _called(iri: str, function: Callable[..., Any], argument: Callable[[Value], Any]) -> Function:
    """The function on typed values. An exception is an ``ExpressionError``, the first one a warning, too."""
    has_failed = False

    def call(*values: Value) -> Value:
        nonlocal has_failed
        try:
            return _value(function(*map(argument, values)))
        except ExpressionError:
            raise
        except Exception as error:
            if not has_failed:
                has_failed = True
                warn_within(
                    f"<{iri}> failed: an error of its expression; further failures are not reported\n"
                    + "".join(traceback.format_exception(error))
                )
            raise ExpressionError(f"<{iri}>: {type(error).__name__}: {error}") from error

    return call


def _plain(value: Value) -> Any:
    if value.kind in _PLAIN:
        return value.data
    term = to_rdflib(value.term)
    return term.toPython() if isinstance(term, rdflib.Literal) else term


def _value(result: Any) -> Value:
    """The typed value of what a function returned; None has none."""
    if result is None:
        raise ExpressionError("the function returned None")
    if hasattr(result, "item") and not isinstance(result, Node):  # NumPy's scalars
        result = result.item()
    if isinstance(result, bool):
        return boolean(result)
    if isinstance(result, int | float):
        return Value(INTEGER if isinstance(result, int) else DOUBLE, result)
    term = from_rdflib(result if isinstance(result, Node) else rdflib.Literal(result))
    if isinstance(term, ox.Triple):
        raise ExpressionError("a triple is not a value")
    return decode(term)
