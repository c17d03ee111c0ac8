"""Force elements between two points: against MuJoCo's spatial tendons, and everything that follows from a column."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Recording, Robot, Run, Signals
from dynid.dynamics import check_gradient, potential_energy, potential_energy_regressor, regressor_adjoint
from dynid.robot import ForceElement, Gas
from dynid.robot.elements import LineForce
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.random_robots import random_motion, random_robot
from tests.support.robot_files import refused

Array = NDArray[np.float64]

MJCF = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <site name="hook" pos="0.1 -0.05 0.4"/>
  <body name="upper"><joint name="a" type="hinge" axis="0 1 0"/>
    <inertial pos="0 0 -0.2" mass="2" diaginertia="0.02 0.02 0.01"/>
    <site name="upper" pos="0.03 0.02 -0.15"/>
    <body name="lower" pos="0 0 -0.4"><joint name="b" type="hinge" axis="0 1 0.2"/>
      <inertial pos="0.02 0 -0.15" mass="1" diaginertia="0.01 0.01 0.004"/>
      <body name="slide" pos="0 0 -0.3"><joint name="c" type="slide" axis="1 0 0.3"/>
        <inertial pos="0 0.01 -0.05" mass="0.5" diaginertia="0.002 0.002 0.001"/>
        <site name="tip" pos="0.05 0.0 -0.1"/>
  </body></body></body></worldbody>{tendon}</mujoco>"""
TENDONS = """<tendon>
  <spatial name="long" stiffness="300" springlength="0.5"><site site="hook"/><site site="tip"/></spatial>
  <spatial name="short" stiffness="150" springlength="0.2"><site site="upper"/><site site="tip"/></spatial>
</tendon>"""
LONG = ForceElement("long", ("world", "slide"), ((0.1, -0.05, 0.4), (0.05, 0, -0.1)), stiffness=300.0, rest=0.5)
SHORT = ForceElement("short", ("upper", "slide"), ((0.03, 0.02, -0.15), (0.05, 0, -0.1)), stiffness=150.0, rest=0.2)


@pytest.fixture
def arm(tmp_path: Path) -> Robot:
    """The arm of the tendons, without them."""
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(tendon=""))
    return dynid.load_robot(path)


def test_torques_and_energy_are_those_of_mujoco(arm: Robot) -> None:
    """Inverse dynamics and the energy of two spatial tendons, one to the world and one between moving links."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF.format(tendon=TENDONS))
    data = mujoco.MjData(model)
    robot = arm.with_elements(
        *(
            ForceElement(e.name, (arm.links[0].name if e is LONG else "upper", "slide"), e.points, e.stiffness, e.rest)
            for e in (LONG, SHORT)
        )
    )
    q, v, a = random_motion(robot, 3, 20)
    torque = dynid.inverse_dynamics(robot, q, v, a)
    height = []
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(torque[k], data.qfrc_inverse, atol=1e-8 * np.abs(torque).max())
        data.qacc[:] = a[k]
        mujoco.mj_forward(model, data)
        height.append(data.energy[0])
    ours = potential_energy(robot, q)
    np.testing.assert_allclose(ours - ours[0], np.array(height) - height[0], atol=1e-8 * np.abs(height).max())


def hanging(robot: Robot) -> Robot:
    """A random robot with every law on lines between its links."""
    names = [link.name for link in robot.links]
    gas = Gas(area=1e-3, volume=2e-3, length=0.7, exponent=1.3)
    rod = Gas(area=2e-3, volume=9e-3, length=0.7, pulls=True)
    points = ((0.1, 0.2, -0.3), (0.3, -0.1, 0.2))
    return robot.with_elements(
        ForceElement("spring", (names[0], names[-1]), points, stiffness=200.0, rest=0.3, preload=-30.0),
        ForceElement("gas", (names[1], names[-1]), points, pressure=2e5, gas=gas),
        ForceElement("rod", (names[-2], names[0]), points, pressure=1e5, gas=rod),
    )


@pytest.mark.parametrize(("seed", "base", "mimics"), [(1, "fixed", 0), (2, "floating", 0), (3, "fixed", 2)])
def test_torques_are_the_slope_of_the_energy(seed: int, base: str, mimics: int) -> None:
    """Each column is the derivative of its own energy, with mimic joints and any base; energies from the length."""
    robot = hanging(random_robot(seed, 5, base=base, mimics=mimics))
    q, _, _ = random_motion(robot, seed, 1)
    zero = np.zeros((1, robot.nv))
    Y = dynid.regressor(robot, q, zero, zero)[0]
    first = robot.nq - robot.n
    for name in ("stiffness_spring", "preload_spring", "pressure_gas", "pressure_rod"):
        k = robot.parameter_names.index(name)

        def energy(x: Array, k: int = k) -> float:
            at = q.copy()
            at[0, first:] = x
            return float(potential_energy_regressor(robot, at)[0, k])

        assert check_gradient(energy, Y[-robot.n :, k], q[0, first:]) < 1e-6
        assert np.all(Y[: len(Y) - robot.n, k] == 0)  # inner forces exert no wrench on the base


def test_elements_of_a_linkage_push_its_drive() -> None:
    """A spring on a passive joint of the four-bar linkage: its torque on the crank is the slope of its energy."""
    spring = ForceElement("s", ("base", "rocker_link"), ((0.1, 0, 0.3), (0.3, 0, 0.02)), stiffness=200.0, rest=0.1)
    robot = dynid.load_robot("fourbar").with_elements(spring)
    q = np.linspace(-1.4, -0.6, 9)[:, None]
    column = robot.parameter_names.index("stiffness_s")
    torque = dynid.regressor(robot, q, 0 * q, 0 * q)[:, 0, column]
    step = 1e-5
    energies = [potential_energy_regressor(robot, q + s)[:, column] for s in (step, -step)]
    np.testing.assert_allclose(torque, (energies[0] - energies[1]) / (2 * step), rtol=1e-6, atol=1e-8)
    assert np.ptp(torque) > 1e-3


def test_torques_are_linear_in_the_parameters_and_gradients_are_right() -> None:
    robot = hanging(random_robot(4, 4, drives=True))
    q, v, a = random_motion(robot, 4, 6)
    Y = dynid.regressor(robot, q, v, a)
    np.testing.assert_allclose(
        Y @ robot.parameters, dynid.inverse_dynamics(robot, q, v, a), atol=1e-9 * np.abs(Y @ robot.parameters).max()
    )
    G = np.random.default_rng(0).normal(size=Y.shape) / np.maximum(np.abs(Y).max(axis=(0, 1)), 1e-9)
    dq, _, _ = regressor_adjoint(robot, G, q, v, a)
    gradient = check_gradient(lambda x: float(np.sum(G * dynid.regressor(robot, x, v, a))), dq, q)
    assert gradient < 1e-5


def test_saved_and_locked_robots_keep_their_elements() -> None:
    """All numbers to the bit through JSON; locked joints leave the torques of the others as they were."""
    robot = hanging(random_robot(5, 5))
    again = robot_from_dict(json.loads(json.dumps(robot_to_dict(robot))))
    q, v, a = random_motion(robot, 5, 4)
    assert np.array_equal(dynid.inverse_dynamics(again, q, v, a), dynid.inverse_dynamics(robot, q, v, a))
    held = robot.coordinates[2]
    locked = robot.locked({held: 0.7})
    free = [j for j in range(robot.n) if j != 2]
    q[:, 2], v[:, 2], a[:, 2] = 0.7, 0.0, 0.0
    torque = dynid.inverse_dynamics(robot, q, v, a)[:, free]
    np.testing.assert_allclose(
        dynid.inverse_dynamics(locked, q[:, free], v[:, free], a[:, free]), torque, atol=1e-9 * np.abs(torque).max()
    )
    terms = [t for t in locked.drives if isinstance(t.function, LineForce)]
    assert terms and all(np.isfinite(t.function.energy(q[:, free])).all() for t in terms)


def test_elements_of_a_toml_file(tmp_path: Path) -> None:
    """A table per element gives the robot that the code gives."""
    rows = '[[joint]]\nalpha = "pi/2"\n[[joint]]\na = 0.4\n'
    element = (
        '[[element]]\nname = "balance"\nlinks = ["base", "link2"]\npoints = [[0, 0.1, 0.3], [0.2, 0, 0]]\n'
        "stiffness = 900.0\nrest = 0.3\npressure = 1e5\ngas = { area = 1e-3, volume = 2e-3, length = 0.4 }\n"
    )
    path = tmp_path / "arm.toml"
    path.write_text(f'name = "arm"\nconvention = "modified"\n{rows}{element}')
    robot = dynid.load_robot(path)
    assert robot.parameter_names[-2:] == ("stiffness_balance", "pressure_balance")
    assert [p.unit for p in robot.layout[-2:]] == ["N/m", "Pa"]
    path.write_text(f'name = "arm"\nconvention = "modified"\n{rows}')
    same = dynid.load_robot(path).with_elements(
        ForceElement(
            "balance",
            ("base", "link2"),
            ((0, 0.1, 0.3), (0.2, 0, 0)),
            900.0,
            0.3,
            pressure=1e5,
            gas=Gas(1e-3, 2e-3, 0.4),
        )
    )
    state = random_motion(robot, 1)
    assert np.array_equal(dynid.inverse_dynamics(robot, *state), dynid.inverse_dynamics(same, *state))


def test_stiffness_and_preload_from_a_simulation_of_mujoco(arm: Robot) -> None:
    """Torques of MuJoCo along a motion, with noise: both parameters within three standard deviations."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF.format(tendon=TENDONS.split('<spatial name="short"')[0] + "</tendon>"))
    data = mujoco.MjData(model)
    t = np.arange(0.0, 20.0, 0.01)
    w = 2 * np.pi * np.array([[0.2, 0.5], [0.3, 0.7], [0.4, 0.9]])
    size = np.array([[0.5, 0.3], [0.6, 0.2], [0.1, 0.05]])
    q, v, a = (
        np.stack([np.sum(s * w[j] ** k * np.sin(np.outer(t, w[j]) + k * np.pi / 2 + j) , axis=1)
                  for j, s in enumerate(size)], axis=1)
        for k in range(3)
    )  # fmt: skip
    torque = np.empty_like(q)
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, data)
        torque[k] = data.qfrc_inverse
    rng = np.random.default_rng(0)
    noisy = torque + 0.02 * torque.std(axis=0) * rng.standard_normal(torque.shape)
    # The user does not know the rest length: a spring from length zero and a preload say the same.
    spring = ForceElement("long", (arm.links[0].name, "slide"), LONG.points, stiffness=0.0, preload=0.0)
    robot = arm.with_elements(spring)
    recording = Recording(robot.coordinates, (Run(t, q, torque=noisy),))
    estimate = dynid.identify(robot, recording, "wls", signals=Signals(min_velocity=0.0))
    std = dict(zip(estimate.base.names, estimate.std, strict=True))
    beta = dict(zip(estimate.base.names, estimate.beta, strict=True))
    assert abs(beta["stiffness_long"] - 300.0) < 3 * std["stiffness_long"] < 30.0
    assert abs(beta["preload_long"] + 150.0) < 3 * std["preload_long"] < 15.0


def test_unusable_elements_are_refused() -> None:
    robot = dynid.load_robot("twolink")
    lines = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0))
    refused(lambda: robot.with_elements(ForceElement("x", ("base", "hand"), lines, 1.0)), "'x'", "hand")
    refused(lambda: robot.with_elements(ForceElement("x", ("link1", "link1"), lines, 1.0)), "no joint")
    refused(lambda: ForceElement("x", ("base", "link1"), lines), "'x'", "stiffness")
    refused(lambda: ForceElement("x", ("base", "link1"), lines, pressure=1.0), "gas")
    refused(lambda: Gas(area=-1.0, volume=1.0, length=1.0), "area")
