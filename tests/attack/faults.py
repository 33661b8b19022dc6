"""Exceptions where none is expected: at the k-th call, or line, of some modules."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest


class InjectedError(BaseException):
    """As Ctrl-C, it is no ``Exception``: nothing may swallow it."""


class Faults:
    """Counts calls, and raises at one of them, before or after the call is made."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._after = False
        self._left = 0
        self.hit = False

    def at(self, number: int, *, after: bool) -> None:
        """Raise at the call of this number from now on; 0: never."""
        self._left, self._after, self.hit = number, after, False

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its calls counted."""

        @functools.wraps(function, updated=())
        def called(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            here = self._left == 0
            if here and not self._after:
                self._raise()
            result = function(*arguments, **options)
            if here:
                self._raise()
            return result

        return called

    def _raise(self) -> None:
        self.hit = True
        raise self._error("injected")


class _Numpy:
    """numpy, the calls of its functions counted."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if callable(found) and not isinstance(found, type | np.ufunc):
            found = self._faults.watch(found)
            setattr(self, name, found)
        return found


def patch_calls(patch: pytest.MonkeyPatch, package: str, faults: Faults) -> None:
    """Count the calls of numpy's functions and of compiled kernels in all modules of a package."""
    for module in modules(package):
        for name, value in list(vars(module).items()):
            if value is np:
                patch.setattr(module, name, _Numpy(faults))
            elif hasattr(value, "py_func"):
                patch.setattr(module, name, faults.watch(value))


def modules(package: str) -> list[ModuleType]:
    """The modules of a package that are loaded, but for those that are compiled."""
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(package) and "._kernel" not in name
    ]


@contextmanager
def at_line(package: str, number: int, error: type[BaseException] = InjectedError) -> Iterator[list[int]]:
    """Raise at the line of this number that the modules of a package execute from now on.

    Gives a list with the lines that are left when it ends: below 1 if the exception was raised.
    """
    files = {module.__file__ for module in modules(package)}
    left = [number]

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise error("injected")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield left
    finally:
        sys.settrace(before)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C's exception after so many seconds, unless the block has ended."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
