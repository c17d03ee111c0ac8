"""Models and recordings of all real robots in the data folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.drives import DriveTerm
from dynid.robot.elements import ForceElement, Gas
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link, Mimic
from dynid.robot.spatial import placement
from studies.reproduce.study import data_folder
from studies.reproduce.tx40 import tx40_recording

__all__ = ["CASES", "KR300_PRESSURE", "Case"]

Array = NDArray[np.float64]

_FRICTION = "viscous+coulomb+offset"
_TX40_TRAIN, _TX40_TEST = 24750 / 5000, 29250 / 5000  # s


@dataclass(frozen=True, eq=False)
class Case:
    """A robot, its training recording and, if there is one, an unseen test recording.

    `divisor` is the training recording with the torques by which published errors are divided, if those are not the
    measured ones.
    """

    robot: Robot
    train: Recording
    test: Recording | None = None
    divisor: Recording | None = None


def lwr4() -> Case:
    folder = data_folder() / "kuka-lwr4-flobaroid"
    robot = load_robot(folder / "kuka_lwr4.urdf", friction=_FRICTION)
    columns = {"q": "positions", "torque": "torques"}
    runs = [load_recording(folder / f"measurements_{k}.npz", robot, columns=columns, time="times") for k in (1, 2, 3)]
    return Case(robot, runs[0] + runs[2], runs[1])


def ur10e() -> Case:
    folder = data_folder() / "ur10e-mamedov"
    robot = load_robot(folder / "ur10e.urdf", friction=_FRICTION, rotor_inertia=True)
    gains = [10.0, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232]

    def read(file: str, first: int, last: int) -> Recording:
        columns = {"q": "1:7", "v": "7:13", "current": "13:19"}
        path = folder / f"{file}.csv.gz"
        return load_recording(path, robot, columns=columns, time=0, gain=gains, rows=(first - 1, last))

    train = read("identification/ur-20_02_10-30sec_12harm", 635, 3510)
    return Case(robot, train, read("validation/ur-20_01_17-ptp_10_points", 700, 4200))


def med7() -> Case:
    folder = data_folder() / "kuka-lbr-med7"
    robot = load_robot(folder / "med7dock.urdf", friction=_FRICTION)

    def read(file: str) -> Recording:
        columns = {"q": "q_{k}", "torque": "tau_{k}"}
        sign = {"torque": -1.0}
        return load_recording(folder / f"{file}.csv.xz", robot, columns=columns, time=None, rate=100.0, sign=sign)

    return Case(robot, read("measurements_with_ext_tau_1_dgr"), read("measurements"))


def kinova_sensor() -> Case:
    return _kinova("TorqueSm{i}", rotor_inertia=False)


def kinova_current() -> Case:
    return _kinova("TorqueCur{i}", rotor_inertia=True)


def _kinova(torque: str, rotor_inertia: bool) -> Case:
    folder = data_folder() / "kinova-gen3-dynamapp"
    # Joints 2 and 5 turn in one direction only: an offset could not be distinguished from Coulomb friction.
    laws = {f"joint_{k}": "viscous+coulomb" if k in (2, 5) else _FRICTION for k in range(1, 8)}
    robot = load_robot(folder / "gen3.urdf", friction=laws, rotor_inertia=rotor_inertia)
    runs = [
        load_recording(
            folder / f"opti_traj_testing{k}.csv.gz",
            robot,
            columns={"q": "Position{i}", "torque": torque},
            time=None,
            rate=1000.0,
        )
        for k in (1, 2)
    ]
    return Case(robot, *runs)


def xmate_sensor() -> Case:
    return _xmate("torque", rotor_inertia=False)


def xmate_motor() -> Case:
    return _xmate("motor", rotor_inertia=True)


def _xmate(torque: str, rotor_inertia: bool) -> Case:
    folder = data_folder() / "rokae-xmate3pro"
    lengths = (0.3415, 0.0, 0.394, 0.0, 0.366, 0.0, 0.2503)
    twists = (0.0, *(-np.pi / 2, np.pi / 2) * 3)
    rows = [(alpha, 0.0, d, 0.0) for alpha, d in zip(twists, lengths, strict=True)]
    robot = Robot.from_dh(rows, "modified", name="xmate3pro").with_drives(_FRICTION, rotor_inertia=rotor_inertia)
    files = {"q": folder / "excit_ang_record.txt.gz", "torque": folder / f"excit_{torque}_record.txt.gz"}
    columns = {"q": "0:7", "torque": "0:7"}
    recording = load_recording(files, robot, columns=columns, time=None, rate=1000.0)
    return Case(robot, recording.between(0.5, 14.0), recording.between(14.0, 19.5))


def kr300() -> Case:
    folder = data_folder() / "kuka-kr300-weigand"
    robot = load_robot(folder / "kr300_cad.urdf", friction=_FRICTION, rotor_inertia=True)
    robot = robot.with_elements(_counterbalance())
    ratios = [1798 / 7, 1872 / 7, 757 / 3, 221.0, 5032 / 21, 206793 / 1340]

    def read(letter: str) -> Recording:
        return load_recording(
            folder / f"recording_{letter}.csv.gz",
            robot,
            columns={"q": "pos_mot_deg_{i}", "torque": "torque_abs_nm_{i}"},
            time="t",
            units={"q": "deg"},
            scale={"torque": ratios},
            offset={"q": [0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]},
        )

    return Case(robot, read("A") + read("B"), read("C"))


# Pressure (Pa) of the counterbalance at its length of reference, by the authors: factor, gas constant (J/kg K),
# temperature (K) and mass (kg) of the gas over its volume (m3).
KR300_PRESSURE = 1.01 * 296.8 * 328 * 0.159 / 0.00096


def _counterbalance() -> ForceElement:
    """The gas spring of the KR300 between links 1 and 2, with the authors' geometry: 0.8 m and 0.2 m from joint 2.

    The lines from joint 2 to the ends enclose 95 degrees where it is at zero. The unknown part of the pressure is a
    preload, since the cylinder also has oil.
    """
    away = np.deg2rad(95.0)
    gas = Gas(area=np.pi / 4 * (0.055**2 - 0.030**2), volume=0.00096, length=0.6, pulls=True)
    points = ((0.35 + 0.8 * np.cos(away), 0.0, -0.675 - 0.8 * np.sin(away)), (0.2, 0.0, 0.0))
    return ForceElement("counterbalance", ("link_1", "link_2"), points, preload=0.0, pressure=0.0, gas=gas)


def pendulum_a0() -> Case:
    return _double_pendulum("A.0", 0.3)


def pendulum_c0() -> Case:
    return _double_pendulum("C.0", 0.2)


def pendulum_c1() -> Case:
    return _double_pendulum("C.1", 0.2)


def _double_pendulum(design: str, length: float) -> Case:
    robot = _planar_arm(f"double pendulum {design}", length, hanging=True).with_drives(_FRICTION)
    # The rotor of motor 2 is mounted on link 1: it turns with v1 - 6 v2, here divided by its gear ratio.
    rotor = DriveTerm("Ia", "rotor2", np.array([-1 / 6, 1.0]), owner=1, motor=True)
    robot = robot.with_terms(rotor)
    files = sorted((data_folder() / "double-pendulum-dfki" / f"design_{design}").glob("*.csv.xz"))
    columns = {"q": "pos_meas{i}", "torque": "tau_meas{i}"}
    runs = [load_recording(file, robot, columns=columns, time="time") for file in files]
    held = runs[2::3]
    return Case(robot, _joined([run for run in runs if run not in held]), _joined(held))


def _joined(recordings: list[Recording]) -> Recording:
    return Recording(recordings[0].joints, tuple(run for one in recordings for run in one.runs))


def _planar_arm(name: str, length: float, hanging: bool = False, absolute: bool = False) -> Robot:
    """Two links in a vertical plane; with `absolute` the second angle is measured in the world, not from link 1.

    Angles are measured from the horizontal, or from hanging straight down.
    """
    axis = np.array([0.0, 0.0, 1.0])
    elbow = placement(translation=(length, 0.0, 0.0))
    links = [Link("base", np.zeros(10)), Link("link1", np.zeros(10))]
    joints = [Joint("joint1", "revolute", 0, np.eye(4), axis)]
    if absolute:  # a massless link at the elbow that cancels the rotation of link 1
        joints.append(Joint("elbow", "revolute", 1, elbow, axis, mimic=Mimic("joint1", -1.0)))
        links.append(Link("elbow", np.zeros(10), virtual=True))
        elbow = np.eye(4)
    joints.append(Joint("joint2", "revolute", len(links) - 1, elbow, axis))
    links.append(Link("link2", np.zeros(10)))
    gravity = np.array([9.81, 0.0, 0.0] if hanging else [0.0, -9.81, 0.0])
    return Robot(name, tuple(links), tuple(joints), gravity=gravity)


def two_link() -> Case:
    robot = _planar_arm("two-link arm", 0.327, absolute=True).with_drives(_FRICTION)
    # Friction by the relative velocity as well reduces the error of link 2 by a fifth.
    elbow = [DriveTerm(symbol, "bearing2", np.array([-1.0, 1.0]), owner=1, motor=True) for symbol in ("fv", "fc")]
    robot = robot.with_terms(*elbow)

    def read(file: str) -> Recording:
        return load_recording(
            data_folder() / "pendulum-twolink-lvjonok" / f"two_link_observer_05_{file}.csv.gz",
            robot,
            columns={"q": [1, 3], "torque": [5, 6]},
            time=0,
            scale={"torque": 1 / 400},
        )

    return Case(robot, read("slow") + read("fast"), read("norm"))


def pendulum_1() -> Case:
    return _pendulum(1, 2)


def pendulum_2() -> Case:
    return _pendulum(2, 1)


def _pendulum(train: int, test: int) -> Case:
    joint = Joint("joint1", "revolute", 0, np.eye(4), np.array([0.0, 0.0, 1.0]))
    links = (Link("base", np.zeros(10)), Link("link1", np.zeros(10)))
    robot = Robot("pendulum", links, (joint,), gravity=np.array([9.81, 0.0, 0.0])).with_drives(_FRICTION)
    folder = data_folder() / "pendulum-twolink-lvjonok"
    runs = [
        load_recording(folder / f"harmonic_input_{k}.csv.gz", robot, columns={"q": [1], "torque": [3]}, time=0)
        for k in (train, test)
    ]
    return Case(robot, *runs)


def tx40() -> Case:
    """All data for training, nothing held out."""
    return Case(load_robot("tx40"), tx40_recording())


def tx40_halves() -> Case:
    """The first half for training, the second for testing."""
    recording = tx40_recording()
    train = recording.between(0.0, _TX40_TRAIN)
    return Case(load_robot("tx40"), train, recording.between(_TX40_TEST, np.inf))


def tiago() -> Case:
    folder = data_folder() / "tiago-figaroh"
    whole = load_robot(folder / "tiago_48_schunk.urdf", friction="none")
    moving = ["torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))]
    robot = whole.locked({name: 0.0 for name in whole.coordinates if name not in moving})
    robot = robot.with_drives(_FRICTION, rotor_inertia=True)
    gains = [1.0, *[100 * 0.136] * 2, *[-100 * 0.087] * 2, *[-336 * 0.0613] * 3]

    def read(first: int, last: int) -> Recording:
        return load_recording(
            {"q": folder / "tiago_position.csv.gz", "torque": folder / "tiago_effort.csv.gz"},
            robot,
            time="t",
            scale={"torque": gains},
            rows=(first, last),
        )

    return Case(robot, read(921, 4149), read(4736, 6791))


def wam() -> Case:
    folder = data_folder() / "barrett-wam-2dof"
    whole = load_robot("wam7")
    robot = whole.locked({name: 0.0 for name in whole.coordinates if name not in ("joint2", "joint4")})
    state, model = folder / "state_4.json.gz", folder / "gravity_4.json.gz"
    effort, gravity = (
        load_recording(
            {"t": state, "q": state, "torque": file},
            robot,
            columns={"q": ["position[1]", "position[3]"], "torque": [f"{name}[1]", f"{name}[3]"]},
            time="time",
        ).runs[0]
        for file, name in ((state, "effort"), (model, "gravity"))
    )
    assert effort.torque is not None and gravity.torque is not None
    rest = replace(effort, torque=effort.torque - gravity.torque)
    measured, moving = (Recording(robot.coordinates, (run,)) for run in (effort, rest))
    return Case(robot, measured.between(0.0, 7.0), measured.between(7.0, 10.0), moving.between(0.0, 7.0))


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (
        ur10e,
        lwr4,
        med7,
        kinova_sensor,
        kinova_current,
        xmate_sensor,
        xmate_motor,
        kr300,
        tiago,
        pendulum_a0,
        pendulum_c0,
        pendulum_c1,
        wam,
        two_link,
        pendulum_1,
        pendulum_2,
        tx40,
        tx40_halves,
    )
}
