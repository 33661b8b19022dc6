"""How kernels are compiled: what is a part of them, and what stays a call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spaseq._jit import _compiled, _Files, inlined, part, rare


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
