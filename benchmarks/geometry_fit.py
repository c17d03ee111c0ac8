"""Time of a geometric calibration, beside least squares with Pinocchio and finite differences, from one run.

python -m benchmarks.geometry_fit            # 559 postures, about 60 unknowns; needs pin

The peer is what FIGAROH does: Pinocchio's kinematics posture by posture, `scipy.optimize.least_squares` with its own
finite differences, the same effects, a prior, and starts of base and marker that are known to it. It has no noise to
learn, no outliers to find and no covariance.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.optimize import least_squares

from dynid.geometry.measurements.points import Points
from dynid.geometry.problem import Problem
from dynid.geometry.solve import solve
from dynid.geometry.unknowns import GeometryModel
from studies.reproduce.geometry_plants import TOOL, Plant, Sizes

Array = NDArray[np.float64]

KIND = "6R, parallel axes"


def ours(plant: Plant, measured: Points, model: GeometryModel, robust: bool = True) -> tuple[float, Array, int]:
    """Seconds of processor time, the placements of joints found, and the number of unknowns."""
    started = time.process_time()
    problem = Problem.of(plant.robot, [measured], model)
    found = solve(problem, robust=robust)
    return time.process_time() - started, found.x, len(problem.unknowns)


def peer(plant: Plant, measured: Points, started_at: Points, prior: GeometryModel) -> tuple[float, float, int]:
    """Seconds of processor time, root mean square of the residuals (m), and the number of unknowns."""
    model, points = plant.nominal.copy(), measured.points[:, 0]
    data, frame, n = model.createData(), model.getFrameId(TOOL), model.nq
    nominal = [place.copy() for place in plant.nominal.jointPlacements]
    assert started_at.base is not None and started_at.known is not None
    base = pin.SE3(started_at.base)
    # Of each joint: placement (6); compliances; base (6) and marker (3).
    sizes = np.concatenate([[prior.position] * 3, [prior.zero] * 3])
    scale = np.concatenate([np.tile(sizes, n), np.full(n, prior.compliance)])

    def residual(x: Array) -> Array:
        for i in range(n):
            model.jointPlacements[i + 1] = nominal[i + 1] * pin.exp6(x[6 * i : 6 * i + 6])
        compliance, at = x[6 * n : 7 * n], base * pin.exp6(x[7 * n : 7 * n + 6])
        marker, out = started_at.known[0] + x[7 * n + 6 :], np.empty((len(points), 3))  # type: ignore[index]
        for k, q in enumerate(measured.q):
            bent = q - compliance * pin.computeGeneralizedGravity(model, data, q)
            pin.framesForwardKinematics(model, data, bent)
            out[k] = at * (data.oMf[frame] * marker) - points[k]
        return np.concatenate([out.ravel() / measured.noise, x[: 7 * n] / scale])

    begun = time.process_time()
    found = least_squares(residual, np.zeros(7 * n + 9), x_scale="jac", loss="linear", method="trf")
    left = found.fun[: 3 * len(points)] * measured.noise
    return time.process_time() - begun, float(np.sqrt((left**2).mean())), len(found.x)


def main() -> None:
    """Print times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postures", type=int, default=559)
    parser.add_argument("--repeats", type=int, default=3, help="the shortest time counts")
    args = parser.parse_args()
    plant = Plant.drawn(KIND, 3, Sizes(eccentricity=0.0))
    measured = plant.taken(args.postures, np.random.default_rng(3), markers=1, outliers=0.0).measurement
    model = GeometryModel(eccentricity=0.0, bending=0.0)
    full = GeometryModel(eccentricity=0.0)
    ours(plant, measured, model)  # compiles
    repeats = range(args.repeats)
    print(f"{KIND}: {args.postures} postures, {os.cpu_count()} cores; seconds of processor time")
    times = [min(ours(plant, measured, m)[::2] for _ in repeats) for m in (model, full)]
    for seconds, unknowns in times:
        print(f"dynid, {unknowns} unknowns: {seconds:.2f} s, starts, noise, sizes, outliers and covariance included")
    plain = replace(model, learned=False)
    alone = min(ours(plant, measured, plain, robust=False)[0] for _ in repeats)
    print(f"dynid, least squares with a fixed prior, start and noise found: {alone:.2f} s")
    start = Problem.of(plant.robot, [measured], model).measurements[0]
    assert isinstance(start, Points)
    seconds, left, unknowns = min(peer(plant, measured, start, model) for _ in repeats)
    print(f"scipy and Pinocchio, {unknowns} unknowns: {seconds:.1f} s, residual {1e3 * left:.3f} mm")
    print(f"ratio {seconds / times[0][0]:.0f}, with a fixed prior {seconds / alone:.0f}")


if __name__ == "__main__":
    main()
