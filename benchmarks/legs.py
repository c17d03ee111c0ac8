"""Projection of contact forces and the cone program of a quadruped: times and ratios from one run.

python benchmarks/legs.py            # 60 s at 500 Hz; the NumPy loop on a part of it; needs cvxpy and pin
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import dynid
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.feasible import feasible_fit, preference
from dynid.identification.legs import Contact, legs_base_parameters, standing_run
from dynid.identification.legs.estimation import LEG_SIGNALS, mean_noise
from dynid.identification.legs.fold import observe_legs
from dynid.identification.legs.runs import LegRun, prepare_legs, used_modes
from dynid.identification.observation import Observation
from dynid.robot.inertia import inertia_to_pseudo
from studies.reproduce.legs_models import QUADRUPED_FEET, quadruped_xml

Array = NDArray[np.float64]

STAND = np.tile([0.0, 0.75, -1.5], 4)


def setting(seconds: float) -> tuple[dynid.Robot, list[Contact], list[LegRun], str]:
    """The robot, its feet and its run, prepared with every sample in use; and the path of its file."""
    folder = tempfile.mkdtemp()
    file = Path(folder) / "quadruped.xml"
    file.write_text(quadruped_xml())
    robot = dynid.load_robot(file, friction="viscous+coulomb", rotor_inertia=True)
    feet = [Contact(frame=frame) for frame in QUADRUPED_FEET]
    run = standing_run(robot, feet, STAND, imu="imu", duration=seconds, rate=500.0)
    recording = dynid.Recording(robot.coordinates, (run,))
    runs = prepare_legs(robot, recording, feet, imu="imu", signals=LEG_SIGNALS, foot_std=0.03, every=1)
    return robot, feet, runs, str(file)


def fold_numpy(robot: dynid.Robot, feet: list[Contact], run: LegRun, file: str, kept: list[int], samples: int) -> float:
    """Seconds of a loop with Pinocchio's regressor, scipy's null space and a QR per 1000 rows, no whitening."""
    import scipy

    model = pin.buildModelFromMJCF(file)
    data = model.createData()
    frames = [model.getFrameId(foot.frame) for foot in feet]
    chosen = np.linspace(0, len(run.q) - 1, samples).astype(int)
    started = time.perf_counter()
    factor, block = np.zeros((0, 1 + 130)), []
    for k in chosen:
        q, v, a = run.q[k], run.v[k], run.a[k]
        Y = pin.computeJointTorqueRegressor(model, data, q, v, a)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        J = np.vstack(
            [
                pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL)[:3]
                for frame, on in zip(frames, run.touching[k], strict=True)
                if on
            ]
            or [np.zeros((0, model.nv))]
        )
        N = scipy.linalg.null_space(J) if len(J) else np.eye(model.nv)
        friction = np.zeros((model.nv, 36))
        for j in range(12):
            friction[6 + j, 3 * j : 3 * j + 3] = a[6 + j], v[6 + j], np.sign(v[6 + j])
        whole = np.hstack([Y, friction])[:, :131]
        y = np.concatenate([np.zeros(6), run.motion.torque[k]])  # type: ignore[index]
        block.append(N.T @ np.column_stack([whole[:, :130], y]))
        if len(block) == 100:
            factor = np.linalg.qr(np.vstack([factor, *block]), mode="r")
            block = []
    np.linalg.qr(np.vstack([factor, *block]), mode="r")
    return (time.perf_counter() - started) / samples


def solve_cvxpy(observation: Observation, noise: Array) -> float:
    """Seconds of the same program, written in cvxpy: whitened least squares, 13 pseudo-inertias, signs of drives."""
    import cvxpy as cp

    robot, base = observation.robot, observation.base
    factor = observation.stacked(1.0 / noise)
    started = time.perf_counter()
    pi = cp.Variable(len(robot.layout))
    size = np.linalg.norm(factor[:, :-1], axis=0)
    constraints = []
    for first in [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]:
        basis = [inertia_to_pseudo(row) for row in np.eye(10)]
        body = sum(pi[first + k] * basis[k] for k in range(10))
        constraints.append(body >> 1e-8 * np.eye(4))
    constraints += [pi[i] >= 0 for i, p in enumerate(robot.layout) if not p.inertial]
    rows = factor[:, :-1] @ base.matrix
    scale = float(size.max())
    cost = cp.sum_squares((rows @ pi - factor[:, -1]) / scale) + 1e-6 * cp.sum_squares(pi - robot.parameters)
    cp.Problem(cp.Minimize(cost), constraints).solve(solver="CLARABEL")
    return time.perf_counter() - started


def best(call, repeats: int = 3) -> tuple[float, object]:  # type: ignore[no-untyped-def]
    """Shortest time of some calls, and the last result."""
    times, out = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        out = call()
        times.append(time.perf_counter() - started)
    return min(times), out


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--loop-samples", type=int, default=1000)
    args = parser.parse_args()
    robot, feet, runs, file = setting(args.seconds)
    base = legs_base_parameters(robot, used_modes(runs, feet))
    noise = mean_noise(runs)
    print(f"{robot.name}: {robot.nv} coordinates, {base.count} base parameters, {os.cpu_count()} cores")

    def folded() -> Observation:
        return observe_legs(robot, base, runs, feet, noise, settings=LEG_SIGNALS, keep=False)

    folded()  # compiles
    seconds, observation = best(folded)
    assert isinstance(observation, Observation)
    samples = len(runs[0].used)
    print(f"fold of {samples} samples, {observation.total_rows} whitened rows: {seconds:.2f} s")
    each = fold_numpy(robot, feet, runs[0], file, list(base.kept), args.loop_samples)
    print(f"NumPy loop with Pinocchio, without whitening: {each * samples:.1f} s ({1e3 * each:.2f} ms per sample)")
    print(f"ratio {each * samples / seconds:.1f}")
    kept = observe_legs(robot, base, [runs[0]], feet, noise, settings=LEG_SIGNALS, keep=False)
    scale = np.ones(len(kept.rows))
    wanted, _ = preference(kept, scale, excess=0.0)
    allowed = feasible_set(robot)
    whitened = kept.stacked(1.0 / scale)
    ours, _ = best(lambda: feasible_fit(base, allowed, whitened, wanted))
    theirs, _ = best(lambda: solve_cvxpy(kept, scale))
    print(f"cone program with {len(robot.links)} bodies: {1e3 * ours:.0f} ms, in cvxpy {1e3 * theirs:.0f} ms")
    print(f"ratio {theirs / ours:.1f}")
    total_ours, total_theirs = seconds + ours, each * samples + theirs
    print(f"fold and program: {total_ours:.2f} s against {total_theirs:.1f} s, ratio {total_theirs / total_ours:.1f}")


if __name__ == "__main__":
    main()
