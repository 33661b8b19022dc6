"""Named fields of records in integer arrays: an offset → the functions that read and write a field there.

A record is a row of a table, or a part of an array or of memory behind a pointer. It begins at some place. A
``Record`` names each of its fields once:

    class node(Record):
        top, set_top = reads(3), writes(3)  # of a table: top(nodes, row); of an array: top(block, place)
        listed = reads_item(5, 2)           # of a list of pairs from 5 on: listed(block, place, number)
        head = reads_row(0, 6)              # of the n-th record of six integers: head(rings, n)
        used = reads_head(4)                # of the record that an array begins with: used(block)
        time = reads_column(2)              # of the column that begins where its place 2 says: time(block, n)

and kernels call ``node.top(nodes, row)``. The compiler replaces such a call by one instruction, so that calls
take no time to compile or to run. Places and numbers must not be negative: unlike Python's indexes, they are
not tested for counting from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, typeof_impl
from numba.np.arrayobj import load_item, make_array, store_item

Ints = npt.NDArray[np.int64]


class _RecordType(type):
    """The Numba type of records."""


class Record(metaclass=_RecordType):
    """A record: the names of its fields and constants. It has no instances; kernels read it as a module."""


@typeof_impl.register(_RecordType)
def _(record: type[Record], _: Any) -> Any:
    return types.Module(record)


def reads(offset: int) -> Callable[[Ints, int], int]:
    """Return a function that reads a field, given the array and the record's place."""

    def read(_: Any, array: types.Array, at: Any) -> Any:  # noqa: ARG001
        return array.dtype(array, types.intp), _load(offset)

    return cast(Callable[[Ints, int], int], intrinsic(read))


def writes(offset: int) -> Callable[[Ints, int, int], None]:
    """Return a function that writes a field, given the array, the record's place and the value."""

    def write(_: Any, array: types.Array, at: Any, value: Any) -> Any:  # noqa: ARG001
        return types.void(array, types.intp, array.dtype), _store(offset)

    return cast(Callable[[Ints, int, int], None], intrinsic(write))


def reads_item(first: int, width: int) -> Callable[[Ints, int, int], int]:
    """Return a function that reads an item of a record's list. It takes the array, the record's place and
    the item's number.

    The list begins at the offset ``first`` and has an item every ``width`` integers.
    """

    def read(_: Any, array: types.Array, at: Any, number: Any) -> Any:  # noqa: ARG001
        return array.dtype(array, types.intp, types.intp), _load(first, width)

    return cast(Callable[[Ints, int, int], int], intrinsic(read))


def writes_item(first: int, width: int) -> Callable[[Ints, int, int, int], None]:
    """Return a function that writes an item of a record's list; the value comes last."""

    def write(_: Any, array: types.Array, at: Any, number: Any, value: Any) -> Any:  # noqa: ARG001
        return types.void(array, types.intp, types.intp, array.dtype), _store(first, width)

    return cast(Callable[[Ints, int, int, int], None], intrinsic(write))


def reads_row(offset: int, width: int) -> Callable[[Ints, int], int]:
    """Return a function that reads a field of the n-th record, given the array and n. Records have ``width``
    integers.
    """

    def read(_: Any, array: types.Array, number: Any) -> Any:  # noqa: ARG001
        return array.dtype(array, types.intp), _load(offset, width, 0)

    return cast(Callable[[Ints, int], int], intrinsic(read))


def writes_row(offset: int, width: int) -> Callable[[Ints, int, int], None]:
    """Return a function that writes a field of the n-th record, given the array, n and the value."""

    def write(_: Any, array: types.Array, number: Any, value: Any) -> Any:  # noqa: ARG001
        return types.void(array, types.intp, array.dtype), _store(offset, width, 0)

    return cast(Callable[[Ints, int, int], None], intrinsic(write))


def reads_head(offset: int) -> Callable[[Ints], int]:
    """Return a function that reads a field of an array's first record, given the array."""

    def read(_: Any, array: types.Array) -> Any:
        return array.dtype(array), _load(offset, 0, 0)

    return cast(Callable[[Ints], int], intrinsic(read))


def writes_head(offset: int) -> Callable[[Ints, int], None]:
    """Return a function that writes a field of an array's first record, given the array and the value."""

    def write(_: Any, array: types.Array, value: Any) -> Any:  # noqa: ARG001
        return types.void(array, array.dtype), _store(offset, 0, 0)

    return cast(Callable[[Ints, int], None], intrinsic(write))


def reads_column(offset: int) -> Callable[[Ints, int], int]:
    """Return a function that reads an item of a column, given the array and the item's number.

    The field at this offset of the array's first record holds the place where the column begins.
    """
    head, item = _load(offset, 0, 0), _load(0)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, number = arguments
        begin = head(context, builder, signature, [array])
        return item(context, builder, signature, [array, builder.add(begin, number)])

    def read(_: Any, array: types.Array, number: Any) -> Any:  # noqa: ARG001
        return array.dtype(array, types.intp), generate

    return cast(Callable[[Ints, int], int], intrinsic(read))


def _load(first: int, width: int = 0, *begin: int) -> Any:
    """Return the intrinsic that reads a field.

    ``begin``: the fixed place of a list. The intrinsic then gets no place, only the array and the item's
    number.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, *number = _with(begin, arguments)
        offset = _offset(builder, first, width, number)
        kind = signature.args[0]
        pointer = _pointer(context, builder, kind, array, at, offset)
        if isinstance(kind, types.CPointer):
            return builder.load(pointer)
        return load_item(context, builder, kind, pointer)

    return generate


def _store(first: int, width: int = 0, *begin: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, *number, value = _with(begin, arguments)
        offset = _offset(builder, first, width, number)
        kind = signature.args[0]
        pointer = _pointer(context, builder, kind, array, at, offset)
        if isinstance(kind, types.CPointer):
            builder.store(value, pointer)
        else:
            store_item(context, builder, kind, value, pointer)
        return context.get_dummy_value()

    return generate


def _with(begin: Iterable[int], arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments with the fixed place, if there is one, inserted behind the array."""
    array, *others = arguments
    return [array, *(ir.Constant(ir.IntType(64), place) for place in begin), *others]


def _offset(builder: Any, first: int, width: int, number: list[ir.Value]) -> ir.Value:
    """Return the offset of a field in its record, or of an item in a list."""
    begin = ir.Constant(ir.IntType(64), first)
    return builder.add(builder.mul(number[0], begin.type(width)), begin) if number else begin


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any, offset: Any) -> ir.Value:
    """Return the address of a field: in the row of a table, or behind the place of its record."""
    if isinstance(kind, types.CPointer):
        return builder.gep(array, [builder.add(at, offset)])
    of = make_array(kind)(context, builder, array)
    indices = [at, offset] if kind.ndim == 2 else [builder.add(at, offset)]
    shape = cgutils.unpack_tuple(builder, of.shape, kind.ndim)
    strides = cgutils.unpack_tuple(builder, of.strides, kind.ndim)
    return cgutils.get_item_pointer2(context, builder, of.data, shape, strides, kind.layout, indices)


# Addresses of integer arrays: kernels read and write columns in place.

_KIND: Final = np.dtype(np.int64)
_ITEM: Final = _KIND.itemsize


def plain(column: Ints) -> Ints:
    """Return a column as contiguous integers: itself, if they are."""
    flags = column.flags
    is_plain = flags.c_contiguous and flags.aligned and column.dtype == _KIND
    return column if is_plain else np.array(column, dtype=_KIND)


def address(array: npt.NDArray[Any]) -> int:
    """Return the memory address of an array."""
    begin: int = array.__array_interface__["data"][0]
    return begin


def place(column: Ints, begin: int) -> int:
    """Return the distance of a contiguous column from an array at an address, in integers."""
    return (address(column) - begin) // _ITEM


def _begin(_context: Any, array: Any) -> Any:
    """Return the address of an array's first number. The address is indexed like the array, and a call passes
    it in one register.

    For None instead of an array it returns None, as a compile-time constant. In a NamedTuple, it replaces
    arrays by their addresses, and keeps other fields.
    """
    if isinstance(array, types.NoneType):
        return array(array), lambda context, *_: context.get_dummy_value()
    if isinstance(array, types.BaseNamedTuple):
        return _begins(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.make_array(signature.args[0])
        return kind(context, builder, arguments[0]).data

    pointer_to: Any = types.CPointer
    return pointer_to(array.dtype)(array), generate


def _begins(fields: Any) -> Any:
    """Return the intrinsic that replaces the arrays of a NamedTuple by their addresses."""
    pointer_to: Any = types.CPointer
    kinds = [pointer_to(kind.dtype) if isinstance(kind, types.Array) else kind for kind in fields]
    begins = types.BaseTuple.from_types(kinds, fields.instance_class)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values = cgutils.unpack_tuple(builder, arguments[0])
        found = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(fields, values, strict=True)
        ]
        return context.make_tuple(builder, begins, found)

    return begins(fields), generate


pointer: Any = intrinsic(_begin)


def _at(kind: Any) -> Callable[[int], Any]:
    """Return a function from the address of an array to a pointer to its first number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    def begin(_context: Any, address: Any) -> Any:  # noqa: ARG001
        pointer_to: Any = types.CPointer
        return pointer_to(kind)(types.int64), generate

    return cast(Callable[[int], Any], intrinsic(begin))


ints_at, floats_at = _at(types.int64), _at(types.float64)
