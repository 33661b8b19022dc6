"""Compiling the hot loops: the one place that says how."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Without `_nrt`, references to arrays are not counted: nothing is allocated in kernels, and their callers
#: hold all the arrays. Counting them would cost several times what the kernels do.
_compiled: Any = partial(numba.njit, nogil=True, boundscheck=False, error_model="numpy", _nrt=False)


def kernel(function: _Function) -> _Function:
    """A function on arrays, compiled at its first call, and kept on disk where that is possible."""
    try:
        compiled = _compiled(function, cache=True)
    except RuntimeError:  # no place to write to: compile it in every process
        compiled = _compiled(function)
    return cast(_Function, compiled)


def part(function: _Function) -> _Function:
    """A function that kernels call."""
    return cast(_Function, _compiled(function))


def inlined(function: _Function) -> _Function:
    """A part of kernels that is small, and called so often that the call itself would cost."""
    return cast(_Function, _compiled(function, forceinline=True))
