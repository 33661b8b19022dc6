"""Compiling the hot loops: the one place that says how."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba

from spaseq._kept import KernelCache
from spaseq._linked import Apart, Linked

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Without `_nrt`, references to arrays are not counted: nothing is allocated in kernels, and their callers
#: hold all the arrays. Counting them would cost several times what the kernels do.
_compiled: Any = partial(numba.njit, nogil=True, boundscheck=False, error_model="numpy", _nrt=False)


#: How a file with kernels takes in what it is made of: `from spaseq.a.b import c, d`, where the names may be
#: modules.
_IMPORT: Final = re.compile(rb"^from (spaseq[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


@cache
def _read(file: Path) -> tuple[bytes, frozenset[Path]]:
    """A digest of what a file says, and which of the package's files it imports."""
    said, root = file.read_bytes(), Path(__file__).parents[1]
    named = list[Path]()
    for package, several, one in _IMPORT.findall(said):
        place = root.joinpath(*package.decode().split("."))
        names = (name.split()[0].decode() for name in (several or one).split(b",") if name.strip())
        named += [place.with_suffix(".py"), *(place / f"{name}.py" for name in names)]
    return blake2b(said).digest(), frozenset(imported for imported in named if imported.exists())


@cache
def _stamp(file: Path) -> str:
    """What all the files say that the kernels of ``file`` are made of: those it imports, directly or not."""
    this, found, due = Path(__file__), set[Path](), [file]
    try:
        while due:
            if (current := due.pop()) not in found:
                found.add(current)
                due.extend(_read(current)[1] if current != this else ())
        return blake2b(b"".join(_read(each)[0] for each in sorted(found))).hexdigest()
    except NotADirectoryError:
        raise ImportError(
            f"spaseq runs from a folder, not from inside an archive: unpack {Path(__file__).parents[1]} "
            "(spark-submit does with --archives, and not with --py-files)"
        ) from None


def kernel(function: _Function) -> _Function:
    """A function on arrays, compiled at its first call, and kept on disk where that is possible.

    Numba itself would take what it kept as long as the kernel's own file is the same, whatever its parts.
    """
    compiled = _compiled(function)
    with suppress(RuntimeError, AttributeError):  # another Numba, or no file: compile in every process
        compiled._cache = KernelCache(function, _stamp(Path(function.__code__.co_filename)))
    return cast(_Function, compiled)


def part(function: _Function) -> _Function:
    """A function that kernels call."""
    return _called(function)


def inlined(function: _Function) -> _Function:
    """A part of kernels that is small, and called so often that the call itself would cost."""
    return _called(function, forceinline=True)


def rare(function: _Function) -> _Function:
    """A part of kernels that most events do without: it stays a call, and leaves registers to the others."""
    return _called(function, Apart)


def _called(function: _Function, way: type[Linked] = Linked, **options: bool) -> _Function:
    """Lowered once for all its calls: not for Python, and not once more for each constant it is given."""
    compiled = _compiled(
        function, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=way, **options
    )
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return cast(_Function, compiled)
