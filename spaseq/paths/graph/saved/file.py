"""A file of named arrays, mapped into memory: a frame, a JSON header, and the arrays one after another.

The frame (24 bytes) has the magic number, the version of the format, the header's checksum and its length.
The header has facts about the graph and, for each array, where it begins, its type, its shape and its
checksum. Arrays begin at multiples of 64 bytes. Checksums are CRC-32: they find damage, not malice.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from spaseq.errors import KnowledgeError

Array = npt.NDArray[Any]

MAGIC: Final = b"\x89SPASEQ\n"
VERSION: Final = 1

_FRAME: Final = struct.Struct("<8sIIQ")
_ALIGNED: Final = 64
#: Facts that are numbers from 0 on.
_COUNTS: Final = ("nodes", "predicates", "edges")
_TYPES: Final = ("|b1", "|u1", "<u4", "<i4", "<i8")


@dataclass(frozen=True, slots=True)
class SavedArray:
    """An array's entry in the header: its first byte in the file, its type, shape and checksum."""

    start: int
    dtype: str
    shape: tuple[int, ...]
    checksum: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def is_kept(path: Path) -> bool:
    """Return whether a file begins like those of ``write``. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def write(file: IO[bytes], facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write arrays, and facts about them as JSON."""
    ready = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    blocks = dict[str, SavedArray]()
    start = 0  # counted from the end of the header: its length is not known yet
    for name, array in ready.items():
        blocks[name] = SavedArray(start, array.dtype.str, array.shape, _checksum(array))
        start = _aligned(start + array.nbytes)
    listed = {name: [b.start, b.dtype, list(b.shape), b.checksum] for name, b in blocks.items()}
    header = json.dumps({"facts": facts, "blocks": listed, "size": start}).encode()
    file.write(_FRAME.pack(MAGIC, VERSION, zlib.crc32(header), len(header)))
    file.write(header)
    file.write(bytes(_aligned(_FRAME.size + len(header)) - _FRAME.size - len(header)))
    for array in ready.values():
        file.write(_bytes(array))
        file.write(bytes(_aligned(array.nbytes) - array.nbytes))


def write_whole(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a file atomically. Processes that have the old file open keep reading the old one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file, facts, arrays)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # a temporary file is its owner's alone
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class KeptFile:
    """The arrays of a file, each checked when it is first read.

    The file is mapped copy-on-write: processes share its pages until one of them writes to a page.
    """

    def __init__(self, name: str, data: mmap.mmap | bytearray) -> None:
        """``name`` is for messages. Raises KnowledgeError for another kind of file, or a damaged one."""
        self.name = name
        self._data = data
        self._arrays: dict[str, Array] = {}
        #: The blocks with checked bounds, and how many ids the file's terms have.
        self.verified: set[str] = set()
        self.limit = 0
        if data[: len(MAGIC)] != MAGIC:
            raise KnowledgeError(f"{name}: this is no graph that spaseq has saved")
        if len(data) < _FRAME.size:
            raise self._damaged("it ends within its first bytes")
        _, version, checksum, length = _FRAME.unpack_from(data)
        if version != VERSION:
            raise KnowledgeError(
                f"{name}: it is of format {version}, and this spaseq reads {VERSION}: build it anew "
                "(spaseq graph build)"
            )
        header = bytes(data[_FRAME.size : _FRAME.size + length])
        if len(header) < length or zlib.crc32(header) != checksum:
            raise self._damaged("the checksum of its header is wrong")
        try:
            self.facts, size, self.blocks = _read_header(header, _aligned(_FRAME.size + length))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise self._damaged(f"its header cannot be ({error})") from error
        if len(data) != size:
            raise self._damaged(f"it has {len(data):,} bytes and should have {size:,}")
        for name, block in self.blocks.items():
            is_array = block.dtype in _TYPES and min(block.shape, default=0) >= 0
            if not is_array or block.start % _ALIGNED or not 0 <= block.start <= size - block.size:
                raise self._damaged(f"its block {name} cannot be")

    def array(self, name: str) -> Array:
        """Return an array. Raises KnowledgeError, at every call, if its checksum is wrong."""
        array = self._arrays.get(name)
        if array is None:
            block = self.blocks.get(name)
            if block is None:
                raise self._damaged(f"it has no block {name}")
            count = prod(block.shape)
            array = np.frombuffer(self._data, np.dtype(block.dtype), count, block.start).reshape(block.shape)
            if _checksum(array) != block.checksum:
                raise self._damaged(f"the checksum of its block {name} is wrong")
            self._arrays[name] = array
        return array

    def names(self) -> Iterator[str]:
        """Return the names of the arrays."""
        return iter(self.blocks)

    def _damaged(self, how: str) -> KnowledgeError:
        return KnowledgeError(f"{self.name}: the file is damaged: {how}: build it anew (spaseq graph build)")


def _read_header(header: bytes, begin: int) -> tuple[dict[str, Any], int, dict[str, SavedArray]]:
    """Return the facts, the size of the file, and its blocks, the first of which begins at ``begin``."""
    read = json.loads(header)
    facts: dict[str, Any] = read["facts"]
    if not all(isinstance(facts[name], int) and facts[name] >= 0 for name in _COUNTS):
        raise ValueError("a number of nodes or edges")
    if not all(isinstance(text, str) for prefix in facts["prefixes"].items() for text in prefix):
        raise ValueError("a prefix")
    blocks = {
        name: SavedArray(begin + start, dtype, tuple(shape), checksum)
        for name, (start, dtype, shape, checksum) in read["blocks"].items()
    }
    if not all(isinstance(n, int) for block in blocks.values() for n in (block.start, *block.shape)):
        raise TypeError("the place of a block")
    return facts, begin + read["size"], blocks


def mapped(path: Path) -> KeptFile:
    """Map a file. Raises KnowledgeError if it cannot be opened."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # ValueError: it is empty
        raise KnowledgeError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return KeptFile(str(path), data)


def _checksum(array: Array) -> int:
    return zlib.crc32(_bytes(array))


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
