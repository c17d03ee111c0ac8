"""Compiler settings of the kernels: cached on disk, without the interpreter lock."""

from collections.abc import Callable
from typing import Any

from numba import njit
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.types import unliteral

from dynid.dynamics.kernels.cache import kernel_cache

_KERNEL: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    # Sums may be reordered and products fused; infinities and NaN are preserved.
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "no_cfunc_wrapper": True,  # no C code calls one by its address
}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, or read it from the cache."""
    dispatcher = _without_literals(njit(**_KERNEL)(function))
    dispatcher._cache = kernel_cache(function)
    return dispatcher


def step(function: Callable[..., Any]) -> Any:
    """Compile a function into the kernels that call it; called from Python it is interpreted.

    The back end inlines it: a robot is a dozen arrays, which are expensive to pass at every call. A step allocates no
    arrays and counts no references: counting is atomic, and slow where threads share a robot.
    """
    dispatcher = _without_literals(njit(**STEP)(function))

    def keep(compiled: Any) -> None:
        dispatcher.overloads[tuple(compiled.signature.args)] = compiled

    # Python has no entry to the compiled code: its address is zero.
    dispatcher.add_overload, dispatcher._compile_for_args = keep, lambda *args, **kwargs: function
    return dispatcher


def _without_literals(dispatcher: Any) -> Any:
    """Make a call with the number 0 compile what a call with any other integer compiles, not a second function."""
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template(
        [unliteral(a) for a in args], {name: unliteral(a) for name, a in kws.items()}
    )
    return dispatcher


class _StepLibrary(JITCodeLibrary):
    """Code of a step as it is written. It is optimised and translated within each kernel.

    Numba does both for every function, though nothing calls a step by itself: with steps within steps within steps that
    is a third of the time of compilation.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _StepEntry(LoweringPass):
    """The object by which kernels find the code of a step."""

    _name = "step_entry"

    def __init__(self) -> None:  # abstract in the base class
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        lowered, library = state["cr"], state.library
        made = lowered.fndesc.lookup_module(), lowered.fndesc.unique_name, "step", 0, lowered.env, (library,)
        entry = make_function(*made)
        state.targetctx.insert_user_function(entry, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class _StepCompiler(CompilerBase):
    """Numba's compiler without its last part, code that can be called."""

    def define_pipelines(self) -> list[Any]:
        self.state.flags.no_compile = True
        self.state.library = _StepLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_StepEntry, NativeLowering)
        passes.finalize()
        return [passes]


STEP: Any = _KERNEL | {
    "forceinline": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "pipeline_class": _StepCompiler,
}
