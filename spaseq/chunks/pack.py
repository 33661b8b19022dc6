"""Arrays and a few plain values as bytes: what chunks and states are stored as."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from spaseq.errors import EngineError

Array = npt.NDArray[Any]

#: The first bytes of everything packed; the digit is the version of the layout.
MAGIC: Final = b"SPQ6"

#: What follows: CRC-32 of all that comes after it, and the length of the header.
_FRAME: Final = struct.Struct("<IQ")
_HEAD: Final = len(MAGIC) + _FRAME.size
_SEALED: Final = len(MAGIC) + 4

#: Types of arrays: integers of 1 to 8 bytes.
_TYPES: Final = re.compile(r"\|[iu]1|<[iu][248]")

#: What a header, or arrays, raise that are not those of their kind.
_MALFORMED: Final = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    RecursionError,
    zstandard.ZstdError,
)


def pack(header: Mapping[str, object], arrays: Mapping[str, Array]) -> bytes:
    """A header of JSON values, readable without the rest, and arrays of one dimension."""
    directory = [(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    head = json.dumps({"header": header, "arrays": directory}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    packed = zstandard.ZstdCompressor(level=1).compress(body)
    length = len(head).to_bytes(8, "little")
    checksum = zlib.crc32(packed, zlib.crc32(head, zlib.crc32(length)))
    return b"".join([MAGIC, checksum.to_bytes(4, "little"), length, head, packed])


def unpack_header(data: bytes) -> dict[str, Any]:
    """The header alone. Raises EngineError for what was packed by another version, or is damaged."""
    with unpacking():
        header: dict[str, Any] = _head(data)[0]["header"]
        return header


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays, which may be written to. Raises EngineError as ``unpack_header`` does."""
    with unpacking():
        head, at = _head(data)
        packed = memoryview(data)[at:]
        kinds = [(name, _kind(kind), length) for name, kind, length in head["arrays"]]
        size = sum(kind.itemsize * length for _, kind, length in kinds)
        require(min((length for *_, length in kinds), default=0) >= 0, "the length of an array")
        require(zstandard.frame_content_size(packed) == size, "the size of its arrays")
        # In a bytearray, since kernels would be compiled once more for arrays that are read-only.
        body = bytearray(zstandard.ZstdDecompressor().decompress(packed))
        arrays: dict[str, Array] = {}
        at = 0
        for name, kind, length in kinds:
            arrays[name] = np.frombuffer(body, kind, length, at)
            at += arrays[name].nbytes
        return head["header"], arrays


@contextmanager
def unpacking() -> Iterator[None]:
    """Raise EngineError for what cannot be read within: bytes that nothing here has packed."""
    try:
        yield
    except _MALFORMED as error:
        raise EngineError(f"stored data is damaged: {error or type(error).__name__}") from error


def require(holds: bool | np.bool_, what: str) -> None:
    """Raise ValueError if something does not hold for what was unpacked."""
    if not holds:
        raise ValueError(f"{what} is wrong")


def within(array: Array, least: int, limit: int) -> bool:
    """Whether all numbers are at least ``least``, and below ``limit``."""
    return not len(array) or bool(least <= array.min() and array.max() < limit)


def narrow(array: Array) -> Array:
    """The same integers in the fewest bytes that hold them all."""
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    kinds = (np.uint8, np.int8, np.uint16, np.int16, np.int32)
    chosen = (kind for kind in kinds if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return array.astype(next(chosen, np.int64))


def _head(data: bytes) -> tuple[dict[str, Any], int]:
    """The header with the directory of the arrays, and where these begin."""
    if data[: len(MAGIC)] != MAGIC:
        raise EngineError(
            f"state or data in a layout that this version does not read: {data[:4]!r} instead of {MAGIC!r}. "
            "Start the query with a new checkpoint, or with the version of spaseq that wrote this one"
        )
    require(len(data) >= _HEAD, "its length")
    checksum, size = _FRAME.unpack_from(data, len(MAGIC))
    require(zlib.crc32(memoryview(data)[_SEALED:]) == checksum, "its checksum")
    require(size <= len(data) - _HEAD, "the length of its header")
    found: dict[str, Any] = json.loads(data[_HEAD : _HEAD + size])
    return found, _HEAD + size


def _kind(kind: str) -> np.dtype[Any]:
    require(_TYPES.fullmatch(kind) is not None, "the type of an array")
    return np.dtype(kind)
