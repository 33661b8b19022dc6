"""How the hot loops are compiled, and where machine code is cached; nothing else configures Numba."""

from __future__ import annotations

import ctypes
import io
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import blake2b
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import IO, Any, Final, TypeVar, cast

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba._dynfunc import make_function
from numba.core import caching, types
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

from spaseq.errors import SpaseqWarning

# Where compiled kernels are cached: written where possible, and read from everywhere.
#
# Numba caches beside the source or in the user's cache, and not at all if it can write to neither. It does
# not read the files beside the source in a read-only installation; spaseq does.


class _ReadOnly(caching.InTreeCacheLocator):
    """Beside the source, whether or not that is writable."""

    def ensure_cache_path(self) -> None:
        """Do nothing: nothing is written."""


class _UserWide(caching.UserWideCacheLocator):
    """In the user's cache. Not used without a home directory: Numba would make a folder named ``~``."""

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


#: A mark after the checksum of a file, so that a plain file of Numba is not mistaken for one of these.
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
        if not _is_whole(self._index_path):
            return {}
        try:
            index: dict[Any, str] = super()._load_index()
        except (AttributeError, ImportError):  # of older kernels: a type of their arguments has gone
            return {}
        return index

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_whole(path):
            raise OSError(f"{path}: the checksum is wrong")  # Numba treats this as a missing file
        return super()._load_data(name)


def _is_whole(path: str) -> bool:
    """Return whether a file is there, and ends with its checksum."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    rest = memoryview(data)[: -4 - len(_MARK)]
    return data[len(rest) :] == zlib.crc32(rest).to_bytes(4, "little") + _MARK


class KernelCache(caching.FunctionCache):
    """The cache in which Numba looks for a kernel's machine code, and stores it.

    ``stamp`` identifies the source of all kernels: code compiled from another source is not used.
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


# Parts of kernels are not compiled alone, but with each kernel that calls them.
#
# Numba optimises each function together with every function that it calls, and compiles each to machine code.
# Parts of kernels are called by other parts only, and a part below eight others would be optimised eight
# times; that was most of the minute that the runs kernel took. Here parts are linked unoptimised, and the
# kernel is optimised once with all its parts: in less than half of the time, to code that is as fast.


class _Library(JITCodeLibrary):
    """The code of a part and its callees, for linking only."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel that the part is linked into is optimised."""

    def _finalize_final_module(self) -> None:
        """Do what Numba does here, except for generating machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Apart(_Library):
    """The code of a part that stays a call: it is not inlined into its callers."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add the code of the part, which a caller might otherwise inline."""
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.discard("alwaysinline")
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Compile a part to its library."""

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
    """Compile a part that stays a call to its library."""

    _name = "linked_lowering_apart"
    _library = _Apart


class Linked(CompilerBase):
    """Numba's pipeline from a Python function to code for linking; see ``numba.njit``."""

    _lowering: type[NativeLowering] = _Lowering

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes with our lowering."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (self._lowering if each is NativeLowering else each, said) for each, said in passes.passes
        ]
        passes.finalize()
        return [passes]


class Apart(Linked):
    """The same pipeline for a part that stays a call."""

    _lowering = _LoweringApart


# The decorators of compiled functions.

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Without `_nrt`, references to arrays are not counted: nothing is allocated in kernels, and their callers
#: hold all the arrays. Counting them would cost several times what the kernels do.
_OPTIONS: Final = {"nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": False}
_compiled: Any = partial(numba.njit, **_OPTIONS)


#: An import in a file with kernels, always of this form: `from spaseq.a.b import c, d`. Names may be modules.
_IMPORT: Final = re.compile(rb"^from (spaseq[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


@cache
def _read(file: Path) -> tuple[bytes, frozenset[Path]]:
    """Return a digest of a file's text, and the files of the package that it imports."""
    said, root = file.read_bytes(), Path(__file__).parents[1]
    named = list[Path]()
    for package, several, one in _IMPORT.findall(said):
        place = root.joinpath(*package.decode().split("."))
        names = (name.split()[0].decode() for name in (several or one).split(b",") if name.strip())
        named += [place.with_suffix(".py"), *(place / f"{name}.py" for name in names)]
    return blake2b(said).digest(), frozenset(imported for imported in named if imported.exists())


@cache
def _stamp(file: Path) -> str:
    """Return the digest of all files that the kernels of ``file`` are made of, imported directly or
    indirectly.
    """
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
    """Return a function on arrays, compiled at its first call, and cached on disk where possible.

    Numba alone would use its cache as long as the kernel's own file is the same, even if an imported file
    changed.
    """
    compiled = _compiled(function)
    _cache(compiled, function)
    return cast(_Function, compiled)


def _cache(compiled: Any, function: Callable[..., Any]) -> None:
    with suppress(RuntimeError, AttributeError):  # another Numba, or no file: compile in every process
        compiled._cache = KernelCache(function, _stamp(Path(function.__code__.co_filename)))


def part(function: _Function) -> _Function:
    """Return a function that only kernels call."""
    return _called(function)


def inlined(function: _Function) -> _Function:
    """Return a small part of kernels that is inlined: it is called so often that calls would cost time."""
    return _called(function, forceinline=True)


def rare(function: _Function) -> _Function:
    """Return a part of kernels that few events need: it stays a call and leaves registers to the rest."""
    return _called(function, Apart)


def _called(function: _Function, way: type[Linked] = Linked, **options: bool) -> _Function:
    """Return a part, compiled once for all calls from kernels.

    Python cannot call it, and it is not compiled again for constant arguments.
    """
    compiled = _compiled(
        function, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=way, **options
    )
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return cast(_Function, compiled)


# Separate parts are compiled once for all kernels, and only if a query needs them.
#
# A kernel reads the address of such a part from memory. That memory has a name, which the linker resolves
# when it loads the kernel, so the kernel's own code is the same in all processes and can be cached.

#: The types of a separate part's parameters, by their annotations: arrays are passed as pointers.
_TYPES: Final = {
    "int": types.int64,
    "bool": types.boolean,
    "Ints": types.CPointer(types.int64),
    "Floats": types.CPointer(types.float64),
    "Codes": types.CPointer(types.int8),
}


def _type(annotation: str, names: dict[str, Any]) -> Any:
    """Return the type of a parameter: one of ``_TYPES``, or a machine, a NamedTuple of these."""
    if annotation in _TYPES:
        return _TYPES[annotation]
    machine = names[annotation]
    fields = (each.__forward_arg__ for each in machine.__annotations__.values())
    return types.NamedTuple([_TYPES[each] for each in fields], machine)


class _Separate:
    """The machine code of a separate part: 0 in ``address`` until it is loaded."""

    def __init__(self, function: Callable[..., Any]) -> None:
        names = function.__globals__
        *parameters, result = (_type(each, names) for each in function.__annotations__.values())
        self._parameters, self._result = parameters, result
        self._compiled: Any = CFunc(function, (tuple(parameters), result), {}, _OPTIONS)
        _cache(self._compiled, function)
        self._address = ctypes.c_int64(0)
        self._symbol = f"{function.__module__}.{function.__qualname__}"
        llvm.add_symbol(self._symbol, ctypes.addressof(self._address))

    def load(self) -> None:
        """Compile the part, or read its code from the cache, once in a process."""
        if self._address.value == 0:
            self._compiled.compile()
            self._address.value = self._compiled.address

    def typed(self, *arguments: Any) -> Any:
        """Return the signature of a call from a kernel, and the function that writes the call's code."""
        given = [
            kind if isinstance(kind, types.Array | types.BaseTuple) else wanted
            for kind, wanted in zip(arguments, self._parameters, strict=True)
        ]
        return self._result(*given), self._generate

    def _generate(self, context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        module, integer = builder.module, ir.IntType(64)
        address = module.globals.get(self._symbol) or ir.GlobalVariable(module, integer, self._symbol)
        result, *parameters = map(context.get_value_type, (self._result, *self._parameters))
        target = ir.FunctionType(result, parameters).as_pointer()
        passed = [
            _pointed(context, builder, *each)
            for each in zip(given.args, self._parameters, arguments, strict=True)
        ]
        return builder.call(builder.inttoptr(builder.load(address), target), passed)


def _pointed(context: Any, builder: Any, kind: Any, wanted: Any, value: Any) -> Any:
    """Return an argument with pointers in place of arrays."""
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    if isinstance(kind, types.BaseTuple):
        machine: Any = kind
        parts = [
            _pointed(context, builder, *each, builder.extract_value(value, i))
            for i, each in enumerate(zip(machine.types, wanted.types, strict=True))
        ]
        return context.make_tuple(builder, wanted, parts)
    return value


_SEPARATE: Final[dict[Any, _Separate]] = {}


def separate(function: _Function) -> _Function:
    """Return a part that is compiled once for all kernels; ``load`` it before a kernel calls it.

    Its result is an integer. A call costs as much as one of a ``rare`` part.
    """
    code = _Separate(function)

    def typed(_: Any, *arguments: Any) -> Any:
        return code.typed(*arguments)

    parameters = signature(function).parameters.values()
    # Numba reads it, and passes each argument by its name.
    typed.__signature__ = Signature([Parameter("_", Parameter.POSITIONAL_OR_KEYWORD), *parameters])  # type: ignore[attr-defined]
    call: Any = intrinsic(typed)
    _SEPARATE[call] = code
    return cast(_Function, call)


def load(part: Callable[..., Any]) -> None:
    """Load the machine code of a separate part, which compiles it if it is not in the cache."""
    _SEPARATE[part].load()
