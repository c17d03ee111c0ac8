"""Projection of contact forces and the cone program of a quadruped: times and ratios from one run.

python -m benchmarks.legs            # 60 s at 500 Hz; the NumPy loop on a part of it; needs cvxpy and pin
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
from dynid.identification.observation import Observation
from dynid.legs import Contact, LegNoise, legs_base_parameters, standing_run
from dynid.legs.estimation import LEG_SIGNALS, mean_noise
from dynid.legs.fold import observe_legs
from dynid.legs.runs import LegRun, prepare_legs, used_modes
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


def fold_numpy(feet: list[Contact], run: LegRun, file: str, noise: LegNoise, samples: int) -> float:
    """Seconds per sample of a loop with Pinocchio, a null space, the same whitening, and a QR every 100 samples."""
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
        pin.crba(model, data, q)
        M = np.triu(data.M) + np.triu(data.M, 1).T
        S = np.zeros((model.nv, model.nv))
        S[6:, 6:] = np.diag(noise.torque**2)
        L = np.linalg.cholesky(N.T @ (S + (M * noise.acceleration**2) @ M) @ N)
        rows = N.T @ np.column_stack([whole[:, :130], y])
        block.append(scipy.linalg.solve_triangular(L, rows, lower=True))
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
    used = time.process_time()
    seconds, observation = best(folded)
    used = (time.process_time() - used) / 3
    assert isinstance(observation, Observation)
    samples = len(runs[0].used)
    print(f"fold of {samples} samples, {observation.total_rows} whitened rows: {seconds:.2f} s, {used:.2f} s of CPU")
    loop = time.process_time()
    each = fold_numpy(feet, runs[0], file, noise, args.loop_samples)
    print(f"NumPy loop with Pinocchio: {each * samples:.1f} s ({1e3 * each:.2f} ms per sample)")
    loop = (time.process_time() - loop) / args.loop_samples * samples
    print(f"ratio {each * samples / seconds:.1f}, of the time of CPU {loop / used:.1f}")
    kept = observe_legs(robot, base, [runs[0]], feet, noise, settings=LEG_SIGNALS, keep=False)
    scale = np.ones(len(kept.rows))
    wanted, _ = preference(kept, scale, metric="euclidean", excess=0.0, weight=1.0)
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
