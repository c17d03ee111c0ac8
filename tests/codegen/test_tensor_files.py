"""Files for PyTorch and JAX: the text computes our numbers, here with NumPy in the place of PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid import Robot, generate_code
from dynid.codegen.functions import FUNCTIONS
from dynid.codegen.tensor_file import TENSOR_FUNCTIONS
from dynid.errors import DataError, ModelError, NotApplicable, UnknownName, Unsupported
from dynid.robot import ActuatorLaw
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.generated import expected, states
from tests.support.random_robots import random_robot, with_custom_terms
from tests.support.tensor_files import ROBOTS, by_numpy, law_of, tensor, torque_of


@pytest.fixture(params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


def test_every_function_gives_our_numbers(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """To 1e-10 of the largest number, over two axes of samples and for one sample alone."""
    module, at = by_numpy(monkeypatch, robot), states(robot, 6)
    for name in TENSOR_FUNCTIONS:
        given = [at[x].reshape(2, 3, -1) for x in FUNCTIONS[name][0]]
        ours = getattr(module, name)(*(tensor(x) for x in given))
        assert difference(ours.reshape(6, *ours.shape[2:]), expected(robot, name, at)) < 1e-10, name
        assert difference(getattr(module, name)(*(tensor(x[0, 0]) for x in given)), ours[0, 0]) < 1e-10


def test_parameters_are_an_argument(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other values, one vector for all samples or one per sample; also base parameters."""
    module, at = by_numpy(monkeypatch, robot), states(robot, 4)
    q, v, a = (at[x] for x in "qva")
    each = robot.parameters * np.linspace(1.0, 1.3, 4)[:, None]
    expect = [dynid.inverse_dynamics(robot, q[k], v[k], a[k], each[k]) for k in range(4)]
    assert difference(module.inverse_dynamics(*map(tensor, (q, v, a, each))), expect) < 1e-10
    assert difference(module.inverse_dynamics(*map(tensor, (q[1], v[1], a[1], each[1]))), expect[1]) < 1e-10
    base = dynid.base_parameters(robot)
    module = by_numpy(monkeypatch, robot, functions=("inverse_dynamics", "mass_matrix"), parameters="symbolic-base")
    assert base.names == module.PARAMETERS
    expect = dynid.inverse_dynamics(robot, q, v, a)
    assert difference(module.inverse_dynamics(*map(tensor, (q, v, a))), expect) < 1e-10


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_law_of_the_actuators(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torque of an instant, and the acceleration that it causes together with the friction under load."""
    robot = random_robot(3, 4, base=base, drives=True).with_smooth_coulomb(20.0)
    law, at = law_of(robot), states(robot, 40)
    module = by_numpy(monkeypatch, robot, functions=("mass_matrix",), law=law)
    q, v = at["q"], at["v"]
    command = q[:, -robot.n :] + np.random.default_rng(3).normal(size=(40, robot.n))
    torque = torque_of(law, command, q[:, -robot.n :], v[:, -robot.n :])
    given = tuple(map(tensor, (command, q, v)))
    assert difference(module.actuator_torque(*given), torque) < 1e-12
    limited = torque_of(
        law.changed(torque_limit=np.inf, stall_torque=np.inf), command, q[:, -robot.n :], v[:, -robot.n :]
    )
    assert 0.1 < np.mean(np.abs(limited - torque) > 1e-9) < 0.9  # some samples at their limits, some not
    friction = 0.05 * np.abs(torque) * np.tanh(20.0 * v[:, -robot.n :])
    tau = np.zeros(v.shape)
    tau[:, -robot.n :] = torque - friction
    expect = dynid.forward_dynamics(robot, q, v, tau)
    assert difference(module.forward_dynamics_under_law(*given), expect) < 1e-10
    assert difference(module.Dynamics().forward(*given), expect) < 1e-10
    # Another gain, given alone; the velocity of the command and a torque fed forward.
    other = torque_of(law.changed(kp=50.0), command, q[:, -robot.n :], v[:, -robot.n :])
    assert difference(module.actuator_torque(*given, law={"kp": 50.0}), other) < 1e-12
    pushed = module.actuator_torque(*given, 0.5, 2.0, {"torque_limit": np.inf, "stall_torque": np.inf})
    shift = law.gain * (law.kd * 0.5 + 2.0)
    assert (
        difference(
            pushed - module.actuator_torque(*given, law={"torque_limit": np.inf, "stall_torque": np.inf}),
            np.tile(shift, (40, 1)),
        )
        < 1e-12
    )
    with pytest.raises(ValueError, match="the law has no 'Kp', only kp, kd"):
        module.actuator_torque(*given, law={"Kp": 1.0})


def test_module_holds_values(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = dynid.load_robot("twolink")
    module, at = by_numpy(monkeypatch, robot), states(robot, 3)
    model = module.Dynamics(trainable=("parms",))
    q, v, a = (tensor(at[x]) for x in "qva")
    assert np.array_equal(model.forward(q, v, a), module.inverse_dynamics(q, v, a))
    assert np.array_equal(model.mass_matrix(q), module.mass_matrix(q))
    with pytest.raises(ValueError, match="'kp' cannot be trained, only parms"):
        module.Dynamics(trainable=("kp",))


def test_no_physical_robot_gives_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters that no robot has are refused, and give no acceleration where they are asked for."""
    robot = dynid.load_robot("twolink")
    bad = robot.with_parameters(-robot.parameters)
    with expect_error(DataError, "allow_infeasible", code="untrusted"):
        generate_code(bad, language="torch")
    at = states(robot, 2)
    module = by_numpy(monkeypatch, bad, allow_infeasible=True)
    given = [tensor(at[x]) for x in ("q", "v", "tau")]
    assert np.all(np.isnan(module.forward_dynamics(*given)))
    assert np.all(np.isfinite(module.forward_dynamics(*given, robot.parameters)))
    with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., 2\), got \(3,\)"):
        module.gravity_torque(tensor([0.0, 0.0, 0.0]))


@pytest.mark.parametrize("language", ["torch", "jax"])
def test_text_of_the_file(language: str, tmp_path: Path) -> None:
    """It compiles, imports one library, is the same for the same call, and no name can break it."""
    robot = replace(dynid.load_robot("tx40"), name='a""" + exec("raise SystemExit") + """\n\\')
    codes = [generate_code(robot, "all", language=language, law=law_of(robot), date="2026-01-31") for _ in range(2)]
    assert codes[0].files == codes[1].files and codes[0].operations == {}
    (path,) = codes[0].write(tmp_path)
    text = path.read_text(encoding="utf-8")
    compile(text, path.name, "exec")
    assert {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith("import ")} == {language}
    assert "np." not in text.replace("jnp.", "") and "Date: 2026-01-31" in text
    assert all(name in text for name in robot.parameter_names)


def test_what_is_refused() -> None:
    """In one sentence each."""
    robot = dynid.load_robot("twolink")
    for language in ("torch", "jax"):
        with expect_error(NotApplicable, "language"):
            generate_code(dynid.load_robot("fourbar"), language=language)
        with expect_error(NotApplicable, "parameters"):
            generate_code(robot, language=language, parameters="standard")
        with expect_error(Unsupported):
            generate_code(robot, ("regressor",), language=language)
        with expect_error(ModelError, code="unsupported"):
            generate_code(with_custom_terms(robot), language=language)
        with expect_error(UnknownName, "joints"):
            generate_code(robot, language=language, law=ActuatorLaw(("elbow",)))
    with expect_error(NotApplicable):
        generate_code(robot, law=ActuatorLaw(robot.coordinates))
