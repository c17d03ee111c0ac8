"""The file for JAX with JAX itself: our numbers, gradients, compiled, mapped and in single precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.codegen.functions import FUNCTIONS
from dynid.codegen.tensor_file import TENSOR_FUNCTIONS
from tests.support.compare import difference
from tests.support.generated import expected, states
from tests.support.random_robots import random_robot
from tests.support.tensor_files import ROBOTS, law_of, module_of, torque_of

jax = pytest.importorskip("jax", reason="jax is not installed (it comes with the jax extra)")
check_grads = pytest.importorskip("jax.test_util").check_grads


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(ROBOTS))
def test_every_function_gives_our_numbers(kind: str) -> None:
    """To 1e-10 in double precision and to 1e-4 in single precision; compiled together, which takes most of the time."""
    robot = ROBOTS[kind]()
    module, at = module_of(robot, "jax"), states(robot, 8)

    @jax.jit
    def every(at: dict[str, Any]) -> dict[str, Any]:
        return {name: getattr(module, name)(*(at[x] for x in FUNCTIONS[name][0])) for name in TENSOR_FUNCTIONS}

    ours, single = every(at), every({name: x.astype(np.float32) for name, x in at.items()})
    for name in TENSOR_FUNCTIONS:
        expect = expected(robot, name, at)
        assert ours[name].dtype == np.float64 and difference(ours[name], expect) < 1e-10, name
        assert single[name].dtype == np.float32 and difference(single[name], expect) < 1e-4, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
def test_gradients(name: str) -> None:
    """Of all arguments and the parameters, forward and reverse, against differences, to 1e-6."""
    robot = random_robot(5, 3, base="floating", mimics=1, drives=True).with_smooth_coulomb(5.0)
    module, at = module_of(robot, "jax"), states(robot, 2)
    given = [jax.numpy.array(at[x]) for x in (*FUNCTIONS[name][0], "parms")]
    check_grads(jax.jit(getattr(module, name)), given, 1, atol=1e-6, rtol=1e-6, eps=1e-5)


@pytest.mark.slow
def test_compiled_and_mapped() -> None:
    """jit and vmap give the same; derivatives are the regressor and the mass matrix."""
    robot = random_robot(5, 3, drives=True)
    module, at = module_of(robot, "jax"), states(robot, 4)
    q, v, a, tau, parms = (at[x] for x in ("q", "v", "a", "tau", "parms"))
    expect = dynid.forward_dynamics(robot, q, v, tau)
    assert difference(jax.jit(module.forward_dynamics)(q, v, tau), expect) < 1e-10
    assert difference(jax.jit(jax.vmap(module.forward_dynamics))(q, v, tau), expect) < 1e-10
    slopes = jax.jit(jax.vmap(jax.jacrev(module.inverse_dynamics, (2, 3)), (0, 0, 0, None)))(q, v, a, parms)
    assert difference(slopes[0], dynid.mass_matrix(robot, q)) < 1e-10
    assert difference(slopes[1], dynid.regressor(robot, q, v, a)) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_law(base: str) -> None:
    """Values as the docstring of the law has them; gradients also where joints have no limits."""
    robot = random_robot(3, 4, base=base, drives=True).with_smooth_coulomb(5.0)
    law, at = law_of(robot), states(robot, 30)
    module = module_of(robot, "jax", ("forward_dynamics",), law=law)
    q, v = at["q"][:, -4:], at["v"][:, -4:]
    command = q + np.random.default_rng(3).normal(size=q.shape)
    assert difference(module.actuator_torque(command, at["q"], at["v"]), torque_of(law, command, q, v)) < 1e-12
    values = {x: jax.numpy.array(y) for x, y in module.LAW.items()}

    @jax.jit
    def accelerated(command: Any, q: Any, v: Any, values: Any) -> Any:
        return module.forward_dynamics_under_law(command, q, v, law=values)

    finite = {x: y for x, y in values.items() if np.all(np.isfinite(y))}
    given = (command[:3], at["q"][:3], at["v"][:3], finite)
    check_grads(accelerated, given, 1, modes=("rev",), atol=1e-5, rtol=1e-6, eps=1e-6)
    slopes = jax.grad(lambda x: accelerated(*given[:3], x).sum())(values)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(slopes))


def test_not_a_physical_robot() -> None:
    """NaN in a compiled function, which cannot raise."""
    robot = dynid.load_robot("twolink")
    module, at = module_of(robot, "jax"), states(robot, 2)
    given = [at[x] for x in ("q", "v", "tau")]
    assert np.all(np.isnan(jax.jit(module.forward_dynamics)(*given, -robot.parameters)))
    with pytest.raises(ValueError, match=r"v must have shape \(\.\.\., 2\), got \(2, 3\)"):
        module.coriolis_torque(at["q"], np.zeros((2, 3)))
