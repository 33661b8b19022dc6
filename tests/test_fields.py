"""Fields of records in arrays: what is written under a name is read under it, and nothing else changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import spaseq
from spaseq._fields import (
    Ints,
    reads,
    reads_head,
    reads_item,
    reads_row,
    writes,
    writes_head,
    writes_item,
    writes_row,
)
from spaseq._jit import kernel
from spaseq.matching.filters._kernel_values import pointer

first, set_first = reads(0), writes(0)
last, set_last = reads(3), writes(3)
item, set_item = reads_item(1, 2), writes_item(1, 2)
second, set_second = reads_row(1, 4), writes_row(1, 4)
used, set_used = reads_head(2), writes_head(2)


@kernel
def swap(records: Ints, at: int) -> None:
    kept = first(records, at)
    set_first(records, at, last(records, at))
    set_last(records, at, kept)


@kernel
def shift(records: Ints, at: int, count: int) -> None:
    for i in range(count, 0, -1):
        set_item(records, at, i, item(records, at, i - 1))
    set_item(records, at, 0, True)


def test_a_field_of_a_row() -> None:
    table = np.arange(12).reshape(3, 4)
    swap(table, 1)
    assert table.tolist() == [[0, 1, 2, 3], [7, 5, 6, 4], [8, 9, 10, 11]]
    swap(table[::2], 1)  # of rows that are no neighbours, too
    assert table.tolist() == [[0, 1, 2, 3], [7, 5, 6, 4], [11, 9, 10, 8]]


def test_a_field_of_a_stretch_of_an_array() -> None:
    block = np.arange(8)
    swap(block, 4)
    assert block.tolist() == [0, 1, 2, 3, 7, 5, 6, 4]


def test_items_of_a_list() -> None:
    block = np.arange(10)
    shift(block, 2, 2)
    assert block.tolist() == [0, 1, 2, 1, 4, 3, 6, 5, 8, 9]


@kernel
def raise_all(records: Ints, count: int) -> None:
    for number in range(count):
        set_second(records, number, second(records, number) + 10)


def test_a_field_of_records_one_after_the_other() -> None:
    block = np.arange(8)
    raise_all(block, 2)
    assert block.tolist() == [0, 11, 2, 3, 4, 15, 6, 7]


@kernel
def use(block: Ints, more: int) -> int:
    set_used(block, used(block) + more)
    set_used(pointer(block), used(pointer(block)) + more)
    return used(block)


def test_a_field_of_the_record_that_an_array_begins_with() -> None:
    block = np.arange(4)
    assert use(block, 10) == 22
    assert block.tolist() == [0, 1, 22, 3]


@kernel
def by_pointers(block: Ints) -> None:
    swap(pointer(block), 4)
    shift(pointer(block), 0, 1)
    raise_all(pointer(block), 1)


def test_fields_behind_a_pointer() -> None:
    block = np.arange(8)
    by_pointers(block)
    assert block.tolist() == [0, 11, 2, 1, 7, 5, 6, 4]


def test_they_are_for_kernels_alone() -> None:
    with pytest.raises(NotImplementedError, match="pure-python"):
        first(np.arange(4), 0)


def _calls_of_fields(module: ModuleType, tree: ast.Module) -> Iterator[str]:
    """What a module calls that only compiled code can call."""
    compiled = {id(n) for f in ast.walk(tree) if _is_compiled(f) for n in ast.walk(f)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or id(call) in compiled:
            continue
        match call.func:
            case ast.Attribute(ast.Name(where), name):
                called = getattr(getattr(module, where, None), name, None)
            case ast.Name(name):
                called = getattr(module, name, None)
            case _:
                continue
        if isinstance(called, type(first)):
            yield f"{module.__name__}:{call.lineno}: {ast.unparse(call)}"


def _is_compiled(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and bool(node.decorator_list)


def test_only_kernels_call_fields() -> None:
    root = Path(spaseq.__file__).parent
    found: list[str] = []
    for path in sorted((root / "matching").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not path.name.startswith(("_kernel", "__init__")) and ("records" in source or "_fields" in source):
            module = import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
            found += _calls_of_fields(module, ast.parse(source))
    assert found == []
