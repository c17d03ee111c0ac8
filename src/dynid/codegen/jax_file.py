"""One Python file of JAX functions, which can be compiled, mapped and differentiated."""

from __future__ import annotations

from dynid.codegen.program import Program
from dynid.codegen.tensor_file import tensor_file
from dynid.codegen.tensor_library import TensorLibrary

__all__ = ["emit_jax"]

_JAX = TensorLibrary(
    module="jnp",
    imports="import jax\nimport jax.numpy as jnp",
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


def _per_link(function, *arrays):
    """A function of all links, one after the other: the compiler repeats less within one link than over all."""
    arrays = jax.tree.map(lambda x: jnp.moveaxis(x, -2, 0), arrays)
    count = max(len(x) for x in jax.tree.leaves(arrays))
    arrays = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape[1:])), arrays)
    out = jax.lax.map(lambda x: function(*x), arrays)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2), out)


def _link_by_link(function, *arrays):
    """A function of the rotation and the origin of the link before each link, stacked over the links."""
    arrays = [jnp.moveaxis(x, -2, 0) for x in arrays]
    samples = arrays[0].shape[-1]
    rotations = jnp.zeros((len(_PARENTS) + 1, 3, 3, samples), arrays[0].dtype)
    rotations = rotations.at[0].set(jnp.broadcast_to(_constant("identity", rotations)[..., None], (3, 3, samples)))
    origins = jnp.zeros((len(_PARENTS) + 1, 3, samples), arrays[0].dtype)

    def step(placed, given):
        rotations, origins = placed
        j, parent, x = given
        out = function(rotations[parent], origins[parent], *x)
        return (rotations.at[j].set(out[0]), origins.at[j].set(out[1])), out

    order = jnp.arange(1, len(_PARENTS) + 1), jnp.array(_PARENTS)
    _, out = jax.lax.scan(step, (rotations, origins), (*order, arrays))
    return tuple(jnp.moveaxis(x, 0, -2) for x in out)


def _solve(matrix, x):
    """The solution, or NaN where the matrix is not positive definite: the Cholesky factor is NaN there."""
    return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(matrix), True), x[..., None])[..., 0]
''',
)


def emit_jax(program: Program) -> dict[str, str]:
    """Text of NAME.py."""
    return {f"{program.name}.py": tensor_file(program, _JAX)}
