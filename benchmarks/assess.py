"""Time of an assessment with all checks beside that of the identification: 23 joints, 60 s at 200 Hz.

python -m benchmarks.assess
"""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import dynid
from dynid.excitation.basis import random_fourier

Array = NDArray[np.float64]
DURATION, RATE = 60.0, 200.0
LIMBS = {"left_arm": "yxzyzyx", "right_arm": "yxzyzyx", "waist": "zyx", "neck": "zyx", "tool": "zyx"}


def upper_body() -> dynid.Robot:
    """A fixed waist of 3 joints with two arms of 7, a neck of 3 and a third limb of 3, with friction."""
    rng = np.random.default_rng(0)
    model = pin.Model()
    chest = _limb(model, rng, 0, "waist")
    for name in ("left_arm", "right_arm", "neck", "tool"):
        _limb(model, rng, chest, name)
    robot = dynid.Robot.from_pinocchio(model, name="upper body").with_drives("viscous+coulomb")
    values = [v if p.inertial else 0.5 for p, v in zip(robot.layout, robot.parameters, strict=True)]
    return robot.with_parameters(values)


def _limb(model: pin.Model, rng: np.random.Generator, parent: int, name: str) -> int:
    for i, axis in enumerate(LIMBS[name]):
        kind = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}[axis]()
        parent = model.addJoint(parent, kind, pin.SE3(np.eye(3), rng.uniform(-0.2, 0.2, 3)), f"{name}{i + 1}")
        body = pin.Inertia.FromBox(rng.uniform(0.5, 5.0), *rng.uniform(0.06, 0.3, 3))
        model.appendBodyToJoint(parent, body, pin.SE3(np.eye(3), rng.uniform(-0.1, 0.1, 3)))
    return parent


def recorded(robot: dynid.Robot, seed: int) -> dynid.Recording:
    """Periodic motion with noise of encoders and torques."""
    rng = np.random.default_rng(seed)
    t, reach = np.arange(0.0, DURATION, 1.0 / RATE), np.ones(robot.n)
    q, v, a = random_fourier(-reach, reach, 3.0 * reach, DURATION / 3, t, seed, harmonics=20)
    torque = dynid.inverse_dynamics(robot, q, v, a)
    torque += 0.01 * np.abs(torque).max(axis=0) * rng.normal(size=torque.shape)
    run = dynid.Run(t, q + 1e-5 * rng.normal(size=q.shape), torque=torque)
    return dynid.Recording(robot.coordinates, (run,))


def main() -> None:
    """Print both times and their ratio, after a first round that compiles."""
    robot = upper_body()
    fitted, unseen = recorded(robot, 0), recorded(robot, 1)
    for last in (False, True):
        started = time.perf_counter()
        estimate = dynid.identify(robot, fitted, "feasible")
        identified = time.perf_counter()
        assessment = dynid.assess(estimate, unseen, recording=fitted)
        ended = time.perf_counter()
        if last:
            one, other = ended - identified, identified - started
            print(f"{robot.n} joints, {DURATION:g} s at {RATE:g} Hz: assessment {one:.1f} s ({assessment.verdict})")
            print(f"identification {other:.1f} s, ratio {one / other:.1f}")


if __name__ == "__main__":
    main()
