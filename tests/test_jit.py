"""How kernels are compiled: what is a part of them, and what stays a call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from spaseq._jit import _compiled, _Files, inlined, load, part, rare, separate
from spaseq.matching.filters._kernel_values import pointer

Ints = npt.NDArray[np.int64]


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


class Machine(NamedTuple):
    tables: Ints
    memory: Ints


@separate
def item(machine: Machine, more: Ints, at: int) -> int:
    return int(machine.tables[at] + 10 * machine.memory[at] + 100 * more[at])


def items(values: Ints) -> int:
    pointed = pointer(values)
    return item(Machine(values, pointed), values, 0) + item(Machine(pointed, pointed), pointed, 1)


def test_a_separate_part_has_machine_code_of_its_own() -> None:
    """Kernels pass an array or a pointer, and are linked before the part is compiled."""
    compiled: Any = _compiled(items)
    compiled.compile("(int64[::1],)")
    load(item)
    assert compiled(np.array([3, 4])) == 777
    (code,) = compiled.inspect_llvm().values()
    assert "test_jit.item" in code
    assert "test_jit4item" not in code  # as a part's name is written that is linked into the kernel


class Gone(NamedTuple):
    """The type of an argument."""

    x: int


def test_an_index_that_names_a_type_that_has_gone_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that renamed a machine raised an AttributeError until the cache was emptied."""
    files = _Files(str(tmp_path), "kernel", "stamp")
    files._save_index({Gone: "1"})
    assert files._load_index() == {Gone: "1"}
    monkeypatch.delattr(sys.modules[__name__], "Gone")
    assert files._load_index() == {}
