"""Arrays and a few plain values as bytes: what chunks and states are stored as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from spaseq.errors import EngineError

Array = npt.NDArray[Any]

#: The first bytes of everything packed; the digit is the version of the layout.
MAGIC: Final = b"SPQ5"

_HEAD: Final = len(MAGIC) + 8


def pack(header: Mapping[str, object], arrays: Mapping[str, Array]) -> bytes:
    """A header of JSON values, readable without the rest, and arrays of one dimension."""
    directory = [(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    head = json.dumps({"header": header, "arrays": directory}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    packed = zstandard.ZstdCompressor(level=1).compress(body)
    return b"".join([MAGIC, len(head).to_bytes(8, "little"), head, packed])


def unpack_header(data: bytes) -> dict[str, Any]:
    """The header alone. Raises EngineError for what was packed by another version."""
    header: dict[str, Any] = _head(data)["header"]
    return header


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays, which may be written to."""
    head = _head(data)
    size = int.from_bytes(data[len(MAGIC) : _HEAD], "little")
    # In a bytearray, since kernels would be compiled once more for arrays that are read-only.
    body = bytearray(zstandard.ZstdDecompressor().decompress(data[_HEAD + size :]))
    arrays: dict[str, Array] = {}
    at = 0
    for name, kind, length in head["arrays"]:
        arrays[name] = np.frombuffer(body, dtype=kind, count=length, offset=at)
        at += arrays[name].nbytes
    return head["header"], arrays


def narrow(array: Array) -> Array:
    """The same integers in the fewest bytes that hold them all."""
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    kinds = (np.uint8, np.int8, np.uint16, np.int16, np.int32)
    chosen = (kind for kind in kinds if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return array.astype(next(chosen, np.int64))


def _head(data: bytes) -> dict[str, Any]:
    if data[: len(MAGIC)] != MAGIC:
        raise EngineError(
            f"state or data in a layout that this version does not read: {data[:4]!r} instead of {MAGIC!r}. "
            "Start the query with a new checkpoint, or with the version of spaseq that wrote this one"
        )
    size = int.from_bytes(data[len(MAGIC) : _HEAD], "little")
    found: dict[str, Any] = json.loads(data[_HEAD : _HEAD + size])
    return found
