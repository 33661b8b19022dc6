"""How kernels are compiled: what is a part of them, and what stays a call."""

from __future__ import annotations

from typing import Any

import pytest

from spaseq._jit import _compiled, inlined, part, rare


@part
def twice(x: int) -> int:
    return 2 * x


@rare
def thrice(x: int) -> int:
    return 3 * x


@inlined
def both(x: int) -> int:
    return twice(x) + thrice(x)


def run(x: int) -> int:
    return both(x)


@pytest.mark.parametrize(("name", "stays"), [("twice", False), ("thrice", True)])
def test_a_rare_part_stays_a_call(name: str, stays: bool) -> None:
    """Also where an inlined one calls it, which has all that it calls inlined."""
    compiled: Any = _compiled(run)  # not kept on disk, where its code cannot be looked at
    assert compiled(7) == 35
    (code,) = compiled.inspect_llvm().values()
    calls = [line for line in code.splitlines() if " call " in line and f"{len(name)}{name}B" in line]
    assert bool(calls) is stays
