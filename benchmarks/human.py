"""Identification of a person of 43 coordinates and 37 bodies from a minute on a force plate at 100 Hz, in seconds.

python -m benchmarks.human            # needs the skeleton of human-forceplate-figaroh and, for the comparison, cvxpy
python -m benchmarks.human --all-rows # also cvxpy on all rows of the regressor, without reduction
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from threadpoolctl import threadpool_limits

import dynid
from dynid.excitation.basis import random_fourier
from dynid.feasibility.baselines.result import body_columns
from dynid.feasibility.constraints import Inertia, Mass, link_scales
from dynid.feasibility.fit import fit
from dynid.feasibility.sets import feasible_set
from dynid.identification.observation import fold
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.recording.wrench import WrenchSensor
from dynid.robot.inertia import inertia_to_pseudo
from dynid.signals.settings import Signals
from studies.reproduce.study import data_folder

Array = NDArray[np.float64]

SECONDS, RATE, MASS = 60.0, 100.0, 94.4
# Weight of the prior, on both sides.
PULL = 1.0
SIGNALS = Signals(cutoff=5.0, decimate=(), min_velocity=0.0)
MARGIN = Inertia().margin


def person() -> dynid.Robot:
    skeleton = dynid.load_robot(data_folder() / "human-forceplate-figaroh" / "human.urdf", base="floating")
    return dynid.human.with_anthropometric_prior(skeleton, "male", MASS, virtual_share=1e-3)


def minute(robot: dynid.Robot, truth: Array) -> Recording:
    """A minute of all coordinates in motion, a millimetre and a newton of noise."""
    rng = np.random.default_rng(0)
    t = np.arange(round(SECONDS * RATE)) / RATE
    width = robot.n + 6
    x, dx, ddx = random_fourier(-0.6 * np.ones(width), 0.6 * np.ones(width), 3 * np.ones(width), 10.0, t, seed=1)
    turn = Rotation.from_rotvec(0.3 * x[:, 3:6])
    # The accelerations of the base are not exact derivatives of its poses; only the magnitude of the wrench matters.
    q = np.hstack([x[:, :3], turn.as_quat(), x[:, 6:]])
    load = dynid.inverse_dynamics(robot, q, dx, ddx, truth)[:, :6]
    joints = q[:, 7:] + 1e-3 * rng.normal(size=x[:, 6:].shape)
    wrench = load + rng.normal(size=load.shape)
    run = Run(t, joints, base=q[:, :7], wrenches={"plate": wrench}, sensors={"plate": WrenchSensor("base")})
    return Recording(robot.coordinates, (run,))


def through_cvxpy(robot: dynid.Robot, R: Array, z: Array) -> tuple[Array, float]:
    """The same program in cvxpy, in our units, with Clarabel at our tolerance; also the seconds of the solver alone."""
    import cvxpy as cp

    scale, sizes, pseudo = feasible_set(robot, "full").scale, link_scales(robot), inertia_to_pseudo(np.eye(10))
    u = cp.Variable(len(scale))
    masses = np.array([s if p.symbol == "m" else 0.0 for s, p in zip(scale, robot.layout, strict=True)])
    laws = [masses @ u == MASS]
    for c in body_columns(robot):
        mass, length = sizes[robot.layout[c].owner]
        matrix = cp.sum([pseudo[k] * scale[c + k] * u[c + k] for k in range(10)])
        laws.append(matrix >> MARGIN * mass * np.diag([length**2] * 3 + [1.0]))
    pull = cp.sum_squares(u - robot.parameters / scale)
    goal = 0.5 * cp.sum_squares((R * scale) @ u - z) + 0.5 * PULL * pull
    problem = cp.Problem(cp.Minimize(goal), laws)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return np.asarray(scale * u.value), float(problem.solver_stats.solve_time)


def in_direct_form(robot: dynid.Robot, R: Array, z: Array, solver: str | None = None) -> tuple[Array, float]:
    """The program in the direct form of cvxpy: SI units, cp.bmat for every body, default tolerances.

    Without `solver` cvxpy selects one; for matrix constraints this is SCS.
    """
    import cvxpy as cp

    scale, sizes = feasible_set(robot, "full").scale, link_scales(robot)
    pi = cp.Variable(len(scale))
    first = body_columns(robot)
    laws = [cp.sum([pi[c] for c in first]) == MASS]
    for c in first:
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = (pi[c + k] for k in range(10))
        half = 0.5 * (xx + yy + zz)
        rows = [
            [half - xx, -xy, -xz, hx],
            [-xy, half - yy, -yz, hy],
            [-xz, -yz, half - zz, hz],
            [hx, hy, hz, m],
        ]
        mass, length = sizes[robot.layout[c].owner]
        laws.append(cp.bmat(rows) >> MARGIN * mass * np.diag([length**2] * 3 + [1.0]))
    pull = cp.sum_squares(cp.multiply(1 / scale, pi - robot.parameters))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(R @ pi - z) + 0.5 * PULL * pull), laws)
    problem.solve(solver=solver)
    return np.asarray(pi.value), float(problem.solver_stats.solve_time)


def seconds(what: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """Shortest time of several calls, and the result."""
    best, out = np.inf, None
    for _ in range(times):
        started = time.perf_counter()
        out = what()
        best = min(best, time.perf_counter() - started)
    return best, out


def measured(whole: bool) -> dict[str, float]:
    robot = person()
    rng = np.random.default_rng(2)
    bodies = robot.parameters.reshape(-1, 10)
    truth = (bodies * rng.uniform(0.9, 1.1, (len(bodies), 1))).ravel()
    recording = minute(robot, truth)
    laws = ["full", Mass(MASS, MASS)]
    dynid.identification.observe(
        robot, Recording(robot.coordinates, (recording.runs[0].rows(0, 600),)), signals=SIGNALS, channels="wrench"
    )
    out: dict[str, float] = {"coordinates": robot.nq, "bodies": len(bodies), "samples": len(recording.runs[0])}
    out["regressor"], seen = seconds(
        lambda: dynid.identification.observe(robot, recording, signals=SIGNALS, channels="wrench"), 1
    )
    for metric in ("euclidean", "entropic"):
        options = {"constraints": laws, "metric": metric, "weight": PULL}
        taken, estimate = seconds(lambda o=options: dynid.identify(robot, seen, "feasible", **o), 1)
        assert estimate.status == "solved"
        out |= {f"identify, {metric}": taken, f"all, {metric}": out["regressor"] + taken}
    noise = estimate.noise
    blocks = list(seen.blocks())
    rows = np.vstack([np.column_stack([x.W, x.y]) / noise[x.channel] for x in blocks])
    K = seen.base.matrix

    def reduced() -> tuple[Array, Array]:
        factor = fold(np.asfortranarray(rows))[: seen.base.count]
        return factor[:, :-1] @ K, factor[:, -1]

    with threadpool_limits(1, "blas"):
        out["rows"] = len(rows)
        out["reduction"], (R, z) = seconds(reduced)
        ours_s, ours = seconds(lambda: fit(feasible_set(robot, laws), R, z, robot.parameters, weight=PULL))
        out |= {"program, dynid": ours_s, "iterations": ours.solution.iterations}
        size = feasible_set(robot, "full").scale
        peers: dict[str, Callable[[dynid.Robot, Array, Array], tuple[Array, float]]] = {
            "cvxpy, our units": through_cvxpy,
            "cvxpy, bmat, Clarabel": partial(in_direct_form, solver="CLARABEL"),
            "cvxpy, bmat, its own solver": in_direct_form,
        }
        for name, peer in peers.items():
            theirs_s, (theirs, inside) = seconds(lambda peer=peer: peer(robot, R, z), 3)
            out |= {
                name: theirs_s,
                f"{name}: its solver alone": inside,
                f"{name}: over dynid": theirs_s / ours_s,
                f"{name}: objective above dynid's": objective(robot, R, z, theirs)
                - objective(robot, R, z, ours.parameters),
                f"{name}: outside its constraints, typical sizes": max(0.0, -feasible_set(robot, laws).slack(theirs)),
                f"{name}: largest difference, typical sizes": float(np.abs((ours.parameters - theirs) / size).max()),
            }
        if whole:
            W, y = rows[:, :-1] @ K, rows[:, -1]
            together = ours_s + out["reduction"]
            for name, peer in list(peers.items())[:2]:
                all_s, _ = seconds(lambda peer=peer: peer(robot, W, y), 1)
                out |= {
                    f"all rows, {name}": all_s,
                    f"all rows, {name}: over dynid with its reduction": all_s / together,
                }
    return out


def objective(robot: dynid.Robot, R: Array, z: Array, pi: Array) -> float:
    """Objective of the program."""
    away = (pi - robot.parameters) / feasible_set(robot, "full").scale
    return 0.5 * float(np.sum((R @ pi - z) ** 2) + PULL * np.sum(away**2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--all-rows", action="store_true", help="also cvxpy without the reduction, for minutes")
    given = parser.parse_args()
    found = measured(given.all_rows)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:36s} {value:10.4g}")


if __name__ == "__main__":
    main()
