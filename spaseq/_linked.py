"""How parts of kernels are compiled: not by themselves, but with each kernel that calls them.

Numba optimises each function together with all that it calls, and makes machine code of it, though nobody
calls a part of a kernel but another part: what is called through eight parts is optimised eight times, and
most of the minute that the runs kernel took was that. Here parts are linked as they were lowered, and a
kernel is optimised once, with all of them: in less than half of the time, to code that is as fast.
"""

from __future__ import annotations

from typing import Any

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


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
        """As Numba's, with a library of ours, and an entry point that is none."""
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
