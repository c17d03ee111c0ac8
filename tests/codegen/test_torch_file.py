"""The file for PyTorch with PyTorch itself: our numbers, gradients, single precision, training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.functions import FUNCTIONS
from dynid.codegen.tensor_file import TENSOR_FUNCTIONS
from tests.support.compare import difference
from tests.support.generated import expected, states
from tests.support.random_robots import random_robot
from tests.support.tensor_files import ROBOTS, law_of, module_of, torque_of

torch = pytest.importorskip("torch", reason="torch is not installed (it comes with the torch extra)")


@pytest.fixture(scope="module", params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


def tensors(at: dict[str, np.ndarray], names: tuple[str, ...], **options: Any) -> list[Any]:
    return [torch.tensor(at[x], **options) for x in names]


def test_every_function_gives_our_numbers(robot: Robot) -> None:
    """To 1e-10 in double precision, to 1e-4 in single precision, in which torques and accelerations are given."""
    module, at = module_of(robot, "torch"), states(robot, 8)
    for name in TENSOR_FUNCTIONS:
        expect = expected(robot, name, at)
        ours = getattr(module, name)(*tensors(at, FUNCTIONS[name][0]))
        assert ours.dtype == torch.float64 and difference(ours.numpy(), expect) < 1e-10, name
        single = getattr(module, name)(*tensors(at, FUNCTIONS[name][0], dtype=torch.float32))
        assert single.dtype == torch.float32 and difference(single.numpy(), expect) < 1e-4, name


@pytest.mark.parametrize("name", TENSOR_FUNCTIONS)
@pytest.mark.parametrize("base", ["fixed", pytest.param("floating", marks=pytest.mark.slow)])
def test_gradients(name: str, base: str) -> None:
    """Of all arguments and the parameters, against differences, to 1e-6."""
    robot = random_robot(5, 3, base=base, mimics=1, drives=True).with_smooth_coulomb(5.0)
    module, at = module_of(robot, "torch"), states(robot, 2)
    given = [x.requires_grad_() for x in tensors(at, (*FUNCTIONS[name][0], "parms"))]
    assert torch.autograd.gradcheck(getattr(module, name), given, eps=1e-6, atol=1e-6, rtol=1e-6)


def test_derivatives_are_those_of_our_kernels() -> None:
    """With respect to parameters the regressor, to accelerations the mass matrix; also by vmap over jacrev."""
    robot = random_robot(5, 3, drives=True)
    module, at = module_of(robot, "torch"), states(robot, 4)
    q, v, a, parms = tensors(at, ("q", "v", "a", "parms"))
    slopes = torch.func.vmap(torch.func.jacrev(module.inverse_dynamics, (2, 3)), (0, 0, 0, None))(q, v, a, parms)
    assert difference(slopes[0].numpy(), dynid.mass_matrix(robot, at["q"])) < 1e-10
    assert difference(slopes[1].numpy(), dynid.regressor(robot, at["q"], at["v"], at["a"])) < 1e-10


def test_sharp_friction_has_no_slope() -> None:
    """The sign of the velocity has derivative zero; the parameter has the sign."""
    robot = dynid.load_robot("twolink").with_terms(dynid.load_robot("twolink").joint_term(0, "fc", 2.0))
    module = module_of(robot, "torch")
    v = torch.tensor([[0.7, 0.1]], dtype=torch.float64, requires_grad=True)
    parms = torch.tensor(module.VALUES, dtype=torch.float64, requires_grad=True)
    module.drive_torque(torch.zeros_like(v), v, torch.zeros_like(v), parms)[0, 0].backward()
    (place,) = [i for i, x in enumerate(module.PARAMETERS) if x.startswith("fc_")]
    viscous = sum(module.VALUES[i] for i, x in enumerate(module.PARAMETERS) if x == "fv_joint1")
    assert v.grad[0, 0] == viscous and parms.grad[place] == 1.0


@pytest.mark.parametrize("base", ["fixed", pytest.param("floating", marks=pytest.mark.slow)])
def test_law(base: str) -> None:
    """Values as the docstring of the law has them; gradients also where joints have no limits."""
    robot = random_robot(3, 4, base=base, drives=True).with_smooth_coulomb(5.0)
    law, at = law_of(robot), states(robot, 30)
    module = module_of(robot, "torch", ("forward_dynamics",), law=law)
    q, v = at["q"][:, -4:], at["v"][:, -4:]
    command = q + np.random.default_rng(3).normal(size=q.shape)
    given = [torch.tensor(x) for x in (command, at["q"], at["v"])]
    assert difference(module.actuator_torque(*given).numpy(), torque_of(law, command, q, v)) < 1e-12
    names = tuple(module.LAW)

    def accelerated(command: Any, q: Any, v: Any, *values: Any) -> Any:
        return module.forward_dynamics_under_law(command, q, v, law=dict(zip(names, values, strict=True)))

    values = [torch.tensor(module.LAW[x], dtype=torch.float64) for x in names]
    small = [x[:3].clone().requires_grad_() for x in given]
    finite = [x.requires_grad_(bool(torch.isfinite(x).all())) for x in values]
    assert torch.autograd.gradcheck(accelerated, (*small, *finite), eps=1e-6, atol=1e-5, rtol=1e-6)
    model = module.Dynamics(trainable=names)
    model(*given).sum().backward()
    assert all(torch.isfinite(x.grad).all() for x in model.parameters()) and len(list(model.parameters())) == len(names)


def test_parameters_are_trained() -> None:
    """Friction and rotor inertia return from wrong values; buffers stay, and a module may be single."""
    robot = dynid.load_robot("tx40").with_smooth_coulomb(20.0)
    module, at = module_of(robot, "torch"), states(robot, 64)
    q, v, a = tensors(at, ("q", "v", "a"))
    model = module.Dynamics(trainable=("parms",))
    goal = model.inverse_dynamics(q, v, a).detach()
    free = torch.tensor([x.startswith(("fv", "fc", "Ia")) for x in module.PARAMETERS])
    with torch.no_grad():
        model.parms[free] *= 1.3
    search = torch.optim.LBFGS(model.parameters(), max_iter=300, line_search_fn="strong_wolfe", tolerance_change=1e-15)

    def loss() -> Any:
        search.zero_grad()
        out = ((model.inverse_dynamics(q, v, a) - goal) ** 2).mean()
        out.backward()
        model.parms.grad[~free] = 0.0
        return out

    before = float(loss())
    search.step(loss)
    assert float(loss()) < 1e-8 * before
    fixed = module.Dynamics(dtype=torch.float32)
    assert not list(fixed.parameters()) and fixed(q.float(), v.float(), a.float()).dtype == torch.float32


def test_inference_before_training() -> None:
    """Constants made in inference mode serve gradients afterwards."""
    module = module_of(dynid.load_robot("twolink"), "torch")
    q = torch.zeros(3, 2, dtype=torch.float64)
    with torch.inference_mode():
        module.mass_matrix(q)
    module.mass_matrix(q.requires_grad_()).sum().backward()
    assert torch.isfinite(q.grad).all()
