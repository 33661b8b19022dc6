"""Compiling the hot loops: the one place that says how, and where what was compiled is kept."""

from __future__ import annotations

import io
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final, TypeVar, cast

import numba
from numba._dynfunc import make_function
from numba.core import caching
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from spaseq.errors import SpaseqWarning

# Where compiled kernels are kept: written where that is possible, and read from wherever they are.
#
# Numba keeps what it compiled beside the source, or in the user's cache, and not at all where it can write to
# neither; what stands beside the source in an installation that is read-only it does not even look at.


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


class _CachePlaces(caching.CompileResultCacheImpl):
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

    _impl_class = _CachePlaces

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


# How parts of kernels are compiled: not by themselves, but with each kernel that calls them.
#
# Numba optimises each function together with every function that it calls, and compiles each to machine code.
# A part of a kernel is called by other parts only, so a part below eight others would be optimised eight
# times; that was most of the minute that the runs kernel took. Here parts are linked unoptimised, and the
# kernel is optimised once with all its parts: in less than half of the time, to code that is as fast.


class _Library(JITCodeLibrary):
    """The code of a part, with what it calls: for linking alone."""

    def _optimize_final_module(self) -> None:
        """The kernel that it is linked into is optimised."""

    def _finalize_final_module(self) -> None:
        """What Numba does of it here, but for machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Apart(_Library):
    """The same of a part that stays a call: what calls it does not take it in."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Takes in the code of the part, which its caller may have wanted inlined like all else."""
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.discard("alwaysinline")
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """A part → its library."""

    _name = "linked_lowering"
    _library = _Library

    def run_pass(self, state: Any) -> bool:
        """Compile as Numba does, into our own library and without a callable entry point."""
        library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state["library"] = library
        state.flags.no_compile = True
        super().run_pass(state)
        state.flags.no_compile = False
        lowered = state["cr"]
        name = lowered.fndesc.qualname.rpartition(".")[2]
        nowhere = make_function(
            lowered.fndesc.lookup_module(), name, "a part of kernels", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(nowhere, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=nowhere)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringApart(_Lowering):
    """A part that stays a call → its library."""

    _name = "linked_lowering_apart"
    _library = _Apart


class Linked(CompilerBase):
    """Numba's way from a function of Python to machine code, up to what is linked: see ``numba.njit``."""

    _lowering: type[NativeLowering] = _Lowering

    def define_pipelines(self) -> list[Any]:
        """Its own passes, the lowering exchanged."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (self._lowering if each is NativeLowering else each, said) for each, said in passes.passes
        ]
        passes.finalize()
        return [passes]


class Apart(Linked):
    """The same of a part that stays a call."""

    _lowering = _LoweringApart


# Compiling the hot loops: the one place that says how.

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
