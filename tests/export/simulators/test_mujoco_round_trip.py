"""The MuJoCo file of actuators, simulated by MuJoCo, against the robot under the same law integrated with Pinocchio."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.actuators import Commands, Segments, rollout
from dynid.export import Lost, actuator_text, write_actuators
from dynid.robot import ActuatorLaw
from tests.support.actuated_plant import law_torque, simulated_positions

mujoco = pytest.importorskip("mujoco")
Array = NDArray[np.float64]

RATE = 1000.0
INF = float("inf")


def by_mujoco(path: Path, law: ActuatorLaw, commands: Array) -> Array:
    """Positions (N, n) of the exported model under held commands, from rest at the first of them."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in law.joints]
    q = np.array([j.qposadr[0] for j in joints])
    u = np.array([model.actuator(name).id for name in law.joints])
    data.qpos[q] = commands[0] - law.bias
    for actuator, command in zip(u, commands[0], strict=True):
        samples = int(model.actuator_history[actuator, 0])
        if samples:
            mujoco.mj_initCtrlHistory(model, data, actuator, None, np.full(samples, command))
    out = np.empty_like(commands)
    for k, command in enumerate(commands):
        out[k] = data.qpos[q]
        data.ctrl[u] = command
        mujoco.mj_step(model, data)
    return out


def chirps(robot: Robot, seconds: float, center: Array, size: float) -> Array:
    """Commands at 200 Hz, held: a sweep per joint from 0.3 to 3 Hz, no two joints the same."""
    t = np.floor(np.arange(int(seconds * RATE)) / 5) * 0.005
    phase = 2 * np.pi * (0.3 * t + 0.5 * (3.0 - 0.3) / seconds * t**2)
    start = np.linspace(0, 2, robot.n)
    rise = np.minimum(t / 0.3, 1.0)
    return center + size * rise[:, None] * (np.sin(phase[:, None] + start))


def error_of(robot: Robot, law: ActuatorLaw, commands: Array, path: Path) -> tuple[Array, Array]:
    """Largest difference of positions per joint, relative to the range of its motion, and the positions (N, n)."""
    write_actuators(robot, law, path, "mujoco")
    ours = simulated_positions(robot, law, commands, RATE)
    size = np.ptp(ours, axis=0)
    assert size.min() > 0.05
    return np.abs(by_mujoco(path, law, commands) - ours).max(axis=0) / size, ours


def with_drives(robot: Robot, armature: list[float], viscous: list[float], coulomb: list[float]) -> Robot:
    robot = replace(robot, drives=(), transmission=None)
    rows = zip(robot.coordinates, armature, viscous, coulomb, strict=True)
    return robot.with_terms(
        *(robot.joint_term(j, s, x) for j, *values in rows for s, x in zip(("Ia", "fv", "fc"), values, strict=True))
    )


LAWS = {
    "ideal": {},
    "gain, bias and delay": {"gain": [0.8, 1.2], "bias": [0.05, -0.03], "delay": [0.004, 0.0096]},
    "servo": {"torque_limit": [6.0, 2.5], "back_emf": [0.6, 0.2]},
    "motor": {"stall_torque": [8.0, 3.0], "no_load_velocity": [4.0, 5.0], "delay": 0.003},
    "motor with a torque limit": {"stall_torque": 9.0, "no_load_velocity": 4.0, "torque_limit": [7.0, 2.5]},
}


@pytest.mark.parametrize("kind", LAWS)
def test_two_joints_move_as_the_law_says(kind: str, tmp_path: Path) -> None:
    """Within 1 % of the range of the motion at all times."""
    robot = with_drives(dynid.load_robot("twolink"), [0.08, 0.05], [0.3, 0.15], [0.7, 0.3])
    law = ActuatorLaw(robot.coordinates, kp=[60.0, 25.0], kd=[3.0, 1.0], rate=RATE, **LAWS[kind])
    commands = chirps(robot, 1.2, np.array([0.2, -0.3]), 0.5)
    error, ours = error_of(robot, law, commands, tmp_path / "arm.xml")
    assert error.max() < 0.01
    if kind != "ideal":  # the setting matters: without it the motion is another one
        ideal = simulated_positions(robot, ActuatorLaw(law.joints, kp=law.kp, kd=law.kd, rate=RATE), commands, RATE)
        assert np.abs(ours - ideal).max() > 0.02 * np.ptp(ideal)


def test_a_law_that_acts_continuously(tmp_path: Path) -> None:
    robot = with_drives(dynid.load_robot("twolink"), [0.08, 0.05], [0.3, 0.15], [0.7, 0.3])
    law = ActuatorLaw(robot.coordinates, kp=[60.0, 25.0], kd=[3.0, 1.0], delay=0.005)
    assert error_of(robot, law, chirps(robot, 1.5, np.array([0.2, -0.3]), 0.5), tmp_path / "arm.xml")[0].max() < 0.01


def test_six_joints_under_gravity(tmp_path: Path) -> None:
    robot = dynid.load_robot("tx40")
    scale = np.array([1.0, 1.0, 0.5, 0.2, 0.2, 0.1])
    robot = with_drives(robot, [0.3, 0.3, 0.1, 0.03, 0.03, 0.01], list(5.0 * scale), list(6.0 * scale))
    law = ActuatorLaw(
        robot.coordinates,
        kp=2000.0 * scale,
        kd=60.0 * scale,
        delay=[0.002, 0.003, 0.004, 0.005, 0.006, 0.007],
        rate=RATE,
    )
    center = np.array([0.1, 0.4, -0.5, 0.3, 0.2, -0.4])
    assert error_of(robot, law, chirps(robot, 2.0, center, 0.3), tmp_path / "arm.xml")[0].max() < 0.01


def go2(data: Path) -> tuple[Robot, ActuatorLaw]:
    """Twelve joints with other armature, damping, friction and delay each, at the gains of its recording."""
    file = data / "unitree-go2-legs-iit" / "go2.xml"
    if not file.is_file():
        pytest.skip("no model of the Go2")
    robot = dynid.load_robot(file, base="fixed", friction="viscous+coulomb", rotor_inertia=True)
    rng = np.random.default_rng(1)
    robot = with_drives(robot, *(list(rng.uniform(*x, robot.n)) for x in ((0.01, 0.05), (0.1, 0.6), (0.2, 1.0))))
    limit = np.tile([23.7, 23.7, 45.43], 4)
    delay = rng.uniform(0.002, 0.012, 12)
    return robot, ActuatorLaw(robot.coordinates, kp=20.0, kd=1.5, delay=delay, torque_limit=limit, rate=RATE)


@pytest.mark.real
def test_go2_legs_with_the_base_held(data: Path, tmp_path: Path) -> None:
    robot, law = go2(data)
    commands = chirps(robot, 2.0, np.tile([0.0, 0.8, -1.6], 4), 0.35)
    assert error_of(robot, law, commands, tmp_path / "go2.xml")[0].max() < 0.01


@pytest.mark.real
@pytest.mark.slow
def test_go2_under_the_commands_of_its_recording_moves_as_our_rollout(data: Path, tmp_path: Path) -> None:
    """All 23.5 s of the log: 0.15 % of the range of each joint's motion where measured."""
    robot, law = go2(data)
    with lzma.open(data / "unitree-go2-legs-iit" / "legs_in_air.csv.xz") as file:
        log = pl.read_csv(file.read())
    commands = np.column_stack([log[f"qd_{x.removesuffix('_joint')}"].to_numpy() for x in robot.coordinates])
    write_actuators(robot, law, tmp_path / "go2.xml", "mujoco")
    theirs = by_mujoco(tmp_path / "go2.xml", law, np.repeat(commands, 5, axis=0))[::5]
    start = Segments(np.array([0]), len(commands) - 1, commands[:1], np.zeros((1, robot.n)))
    ours = rollout(robot, law, Commands(position=commands, rate=200.0), start).q[0]
    assert (np.abs(theirs - ours).max(axis=0) / np.ptp(ours, axis=0)).max() < 0.01


def test_forces_of_the_actuators_are_those_of_the_law(tmp_path: Path) -> None:
    """At random states, to rounding: gains, bias, limit, and the line of a DC motor."""
    robot = with_drives(dynid.load_robot("twolink"), [0.1, 0.1], [0.2, 0.2], [0.0, 0.0])
    law = ActuatorLaw(
        robot.coordinates,
        kp=[20.0, 30.0],
        kd=[0.5, 0.7],
        gain=[1.3, 0.9],
        bias=[0.1, 0.0],
        torque_limit=[3.0, 4.0],
        stall_torque=[INF, 5.0],
        no_load_velocity=[INF, 8.0],
    )
    write_actuators(robot, law, tmp_path / "arm.xml", "mujoco")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    for q, v, command in np.random.default_rng(0).uniform(-1, 1, (200, 3, 2)) * [[[0.3], [12.0], [0.3]]]:
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, command
        mujoco.mj_forward(model, data)
        assert data.actuator_force == pytest.approx(law_torque(law, command - q - law.bias, v, v), abs=1e-12)


def test_a_joint_that_sticks_does_not_creep(tmp_path: Path) -> None:
    """Held by friction under a constant torque below it for 5 s; with MuJoCo's own settings it moves much farther."""
    robot = with_drives(dynid.load_robot("twolink"), [0.02, 0.02], [0.0, 0.0], [1.0, 1.0])
    law = ActuatorLaw(robot.coordinates, kp=1.0, kd=0.0, rate=RATE)
    text, _ = actuator_text(robot, law, "mujoco")
    moved = []
    for version in (text, text.replace("solreffriction", "solreflimit").replace("solimpfriction", "solimplimit")):
        model = mujoco.MjModel.from_xml_string(version)
        data = mujoco.MjData(model)
        data.ctrl[:] = 0.7
        mujoco.mj_step(model, data, 5000)
        moved.append(np.abs(data.qpos).max())
    assert moved[0] < 5e-4 and moved[1] > 20 * moved[0]


def test_delays_are_in_seconds_and_start_with_one_step(tmp_path: Path) -> None:
    robot = dynid.load_robot("twolink")
    for delay, written, samples, lost in (
        (0.0034, 0.0034, 4, 0.0),
        (0.0008, 0.001, 1, -0.0002),
        (0.0003, 0.0, 0, 0.0003),
    ):
        law = ActuatorLaw(robot.coordinates, kp=10.0, delay=delay, rate=RATE)
        file = write_actuators(robot, law, tmp_path / "arm.xml", "mujoco")
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
        assert model.actuator_delay == pytest.approx(written) and set(model.actuator_history[:, 0]) == {samples}
        found = [x.value for x in file.lost if x.code == Lost.DELAY_PART]
        assert found == ([pytest.approx(lost)] * 2 if lost else [])
    old = ActuatorLaw(robot.coordinates, kp=10.0, delay=0.004, delayed="torque", rate=RATE)
    assert [x.code for x in actuator_text(robot, old, "mujoco")[1]][-2:] == [Lost.DELAYED_MEASUREMENT] * 2
