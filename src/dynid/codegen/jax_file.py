"""One Python file of JAX functions, which can be compiled, mapped and differentiated."""

from __future__ import annotations

from dynid.codegen.program import Program
from dynid.codegen.tensor_file import tensor_file
from dynid.codegen.tensor_library import TensorLibrary

__all__ = ["emit_jax"]

_JAX = TensorLibrary(
    module="jnp",
    imports="import jax.numpy as jnp\nfrom jax.scipy.linalg import cho_solve",
    helpers='''

def _array(x, like=None):
    """An array of floating-point numbers; what is no array gets the type of `like`."""
    if like is not None and not hasattr(x, "dtype"):
        return jnp.asarray(x, dtype=like.dtype)
    x = jnp.asarray(x)
    return x.astype(jnp.result_type(x, 0.0))


def _constant(name, like):
    return jnp.asarray(_CONSTANTS[name], dtype=like.dtype)


def _columns(x):
    return x.T


def _samples_first(x):
    return jnp.moveaxis(x, -1, 0)


def _take(x, index):
    return x[jnp.array(index, dtype=int)]


def _solve(matrix, x):
    """The solution, or NaN where the matrix is not positive definite: the Cholesky factor is NaN there."""
    return cho_solve((jnp.linalg.cholesky(matrix), True), x[..., None])[..., 0]
''',
)


def emit_jax(program: Program) -> dict[str, str]:
    """Text of NAME.py."""
    return {f"{program.name}.py": tensor_file(program, _JAX)}
