"""Public names of a package that are imported at their first use, so that importing the package is cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``. ``homes``: the names in each module below it.

    A module without names is a public name itself.
    """
    home = {name: "" for name, names in homes.items() if not names}
    home |= {name: module for module, names in homes.items() for name in names.split()}
    known = vars(sys.modules[package])

    def look_up(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home[name] or name}")
        known[name] = getattr(module, name) if home[name] else module
        return known[name]

    return look_up, lambda: sorted({*known, *home})
