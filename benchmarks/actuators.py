"""Actuators from encoders alone: time of the simulation with exact derivatives, and comparisons with other tools.

python -m benchmarks.actuators kernel           # CPU time of one step, with and without derivatives
python -m benchmarks.actuators go2 --budget 20  # a real Go2 against mujoco.sysid and CMA-ES
python -m benchmarks.actuators arm              # the test arm of mujoco.sysid, open loop

The comparisons need mujoco[sysid] and cma; what is not installed is skipped. The recording of the Go2 is looked for
under DYNID_DATA.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.actuators.rollouts import Commands, Directions, Segments, rollout
from dynid.robot.actuator_law import ActuatorLaw

Array = NDArray[np.float64]

LOG, LOOP = 200.0, 1000.0  # Hz
DRIVES = {"Ia": 0.1, "fv": 0.5, "fc": 0.3}
FIELDS = ("kp", "kd", "gain", "delay", "bias")


def fastest(call: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of several calls, after a warm-up call."""
    call()
    out = []
    for _ in range(times):
        began = time.process_time()
        call()
        out.append(time.process_time() - began)
    return min(out)


def serial_arm(joints: int) -> dynid.Robot:
    """The first joints of an iiwa14, with rotor inertia, viscous and Coulomb friction."""
    robot = dynid.load_robot("iiwa14")
    robot = robot.locked(dict.fromkeys(robot.coordinates[joints:], 0.0))
    robot = robot.with_drives("viscous+coulomb", rotor_inertia=True)
    values = [DRIVES.get(p.symbol, x) for p, x in zip(robot.layout, robot.parameters, strict=True)]
    return robot.with_parameters(values)


def first_columns(robot: dynid.Robot, count: int) -> Directions:
    """The first `count` of: drive parameters, and fields of the law of every joint."""
    drives = [i for i, p in enumerate(robot.layout) if not p.inertial]
    parameters = np.zeros((count, robot.parameters.size))
    law = {field: np.zeros((count, robot.n)) for field in FIELDS}
    for column in range(count):
        if column < len(drives):
            parameters[column, drives[column]] = 1.0
        else:
            field, joint = divmod(column - len(drives), robot.n)
            law[FIELDS[field]][column, joint] = 1.0
    return Directions(parameters, law)


def kernel(joints: int, columns: int, rows: int = 1001) -> None:
    """Time per step of 1 ms with and without derivatives, and that of central differences for the same columns."""
    robot = serial_arm(joints)
    t = np.arange(rows)[:, None] / LOG
    position = 0.3 * np.sin((2.0 + np.arange(joints)) * t)
    commands = Commands(LOG, position)
    law = ActuatorLaw(robot.coordinates, kp=400.0, kd=30.0, delay=0.0033, rate=LOOP)
    start = Segments(np.array([0]), rows - 1, position[:1], np.zeros((1, joints)))
    along, steps = first_columns(robot, columns), (rows - 1) * LOOP / LOG
    plain = 1e6 * fastest(lambda: rollout(robot, law, commands, start)) / steps
    exact = 1e6 * fastest(lambda: rollout(robot, law, commands, start, directions=along)) / steps
    runs = 2 * (columns + 2 * joints)
    print(
        f"  {joints} joints, {columns} columns and the initial state: {plain:.1f} us per step, {exact:.1f} us with "
        f"exact derivatives; central differences take {runs} runs, {runs * plain / exact:.0f} times as long"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=("kernel", "go2", "arm"))
    parser.add_argument("--budget", type=float, default=20.0, help="CPU time of each rival on the Go2, in ours")
    given = parser.parse_args()
    if given.section == "kernel":
        os.environ.setdefault("DYNID_THREADS", "1")  # CPU seconds of one thread, so that other programs do not count
        print("simulation under the law of the actuators, 1 ms steps")
        kernel(3, 20)
        kernel(7, 40)
    elif given.section == "go2":
        from benchmarks import actuators_go2

        actuators_go2.run(given.budget)
    else:
        from benchmarks import actuators_arm

        actuators_arm.run()


if __name__ == "__main__":
    main()
