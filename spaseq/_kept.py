"""Where compiled kernels are kept: written where that is possible, and read from wherever they are.

Numba keeps what it compiled beside the source, or in the user's cache, and not at all where it can write to
neither; what stands beside the source in an installation that is read-only it does not even look at.
"""

from __future__ import annotations

import io
import os
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from numba.core import caching

from spaseq.errors import SpaseqWarning


class _ReadOnly(caching.InTreeCacheLocator):
    """Beside the source, whether or not that can be written to."""

    def ensure_cache_path(self) -> None:
        """There is nothing to be ensured: nothing is written."""


class _UserWide(caching.UserWideCacheLocator):
    """In the user's cache, if there is such a user: else Numba makes a folder that is called ``~``."""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        known = "XDG_CACHE_HOME" in os.environ or os.path.expanduser("~") != "~"
        return super().from_function(py_func, py_file) if known else None


class _Places(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012  # as it is called there
        *(
            _UserWide if locator is caching.UserWideCacheLocator else locator
            for locator in caching.CompileResultCacheImpl._locator_classes
        ),
        _ReadOnly,
    ]


#: What stands behind the checksum of a file, so that a file of Numba's alone is not taken for one of these.
_MARK: Final = b"spaseq"


class _Files(caching.IndexDataCacheFile):
    """Numba's files of a kernel, with a CRC-32 at the end of each.

    A damaged file counts as missing, so its kernel is compiled again: damaged machine code would be run.
    """

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[IO[bytes]]:
        with super()._open_for_write(filepath) as file:
            written = io.BytesIO()
            yield written
            data = written.getvalue()
            file.write(data + zlib.crc32(data).to_bytes(4, "little") + _MARK)

    def _load_index(self) -> dict[Any, str]:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_whole(path):
            raise OSError(f"{path}: the checksum is wrong")  # which Numba takes for a missing file
        return super()._load_data(name)


def _is_whole(path: str) -> bool:
    """Whether a file is there, and ends with its checksum."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    rest = memoryview(data)[: -4 - len(_MARK)]
    return data[len(rest) :] == zlib.crc32(rest).to_bytes(4, "little") + _MARK


class KernelCache(caching.FunctionCache):
    """What Numba asks for a kernel's machine code, and gives it to.

    ``stamp`` says what all kernels are made of: what was compiled from anything else is not taken.
    """

    _impl_class = _Places

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)
        beside = _ReadOnly(function, function.__code__.co_filename).get_cache_path()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)
        self._is_read_only = isinstance(self._impl.locator, _ReadOnly)
        self._beside = _Files(beside, self._impl.filename_base, stamp)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context)
        if found is None and not self._is_read_only:
            data = self._beside.load(self._index_key(sig, target_context.codegen()))
            found = None if data is None else self._impl.rebuild(target_context, data)
        if found is None and self._is_read_only:
            _say()
        return found

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._is_read_only:
            super()._save_overload(sig, data)


_said: list[str] = []


def _say() -> None:
    """Warn, once in a process, that kernels are compiled for this process only."""
    if not _said:
        _said.append(
            "there is no place to keep compiled code, so each process compiles what it needs (some seconds): "
            "set NUMBA_CACHE_DIR to a folder that can be written to"
        )
        warnings.warn(_said[0], SpaseqWarning, stacklevel=2)
