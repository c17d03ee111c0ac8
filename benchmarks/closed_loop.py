"""Closed-loop simulation and PC-DIDIM: a TX40 at 5 kHz against other simulators, ratios from one run.

All but the Monte Carlo runs use one thread and are timed in CPU seconds, so that other programs do not count. Monte
Carlo runs are timed in wall-clock seconds and need an idle computer.

python -m benchmarks.closed_loop                      # needs mujoco for all comparisons
python -m benchmarks.closed_loop --seconds 2
python -m benchmarks.closed_loop --monte-carlo 300    # all runs of the paper; 0 for none
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("DYNID_THREADS", "1")

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dynid
from dynid import controllers
from dynid.excitation.basis import random_fourier
from dynid.export.mjcf import write_mjcf
from dynid.identification.estimators.feasible import feasible
from dynid.identification.experiment import Experiment
from dynid.montecarlo.scenario import Estimator, MonteCarloStudy
from dynid.montecarlo.study import monte_carlo
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from studies.reproduce.pc_didim import scenarios, tx40_loop, tx40_sensors, tx40_truth

Array = NDArray[np.float64]

RATE = 5000.0
BANDWIDTH = [10, 10, 10, 20, 20, 20]  # Hz
EXACT = Sensors(velocity="exact")


def shared_robot() -> dynid.Robot:
    """The TX40 with the terms that all simulators support: inertias, rotors and viscous friction."""
    robot = dynid.load_robot("tx40")
    kept = tuple(t for t in robot.drives if not t.motor and t.symbol in ("Ia", "fv"))
    return replace(robot, drives=kept, transmission=None)


def reference(robot: dynid.Robot, seconds: float) -> Reference:
    limits = [robot.limits[c] for c in robot.coordinates]
    lower, upper, velocity = np.array([[x.lower, x.upper, x.velocity] for x in limits]).T
    return Reference(RATE, *random_fourier(lower, upper, velocity, 8.0, np.arange(round(seconds * RATE)) / RATE, 0))


def fastest(call: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of several calls, after a warm-up call."""
    call()
    out = []
    for _ in range(times):
        began = time.process_time()
        call()
        out.append(time.process_time() - began)
    return min(out)


def looped_pinocchio(robot: dynid.Robot, path: Reference, kp: Array, kv: Array) -> tuple[Array, Array]:
    """The same cascade and RK4 in an optimised Python loop over pin.aba."""
    model = robot.to_pinocchio()
    data = model.createData()
    fv = np.array([t.value for t in robot.drives if t.symbol == "fv"])
    aba, h = pin.aba, 1 / RATE
    q, v = path.q[0].copy(), path.v[0].copy()
    Q, V = np.empty(path.q.shape), np.empty(path.q.shape)
    for k in range(len(path)):
        Q[k], V[k] = q, v
        tau = kv * (kp * (path.q[k] - q) - v)
        a1 = aba(model, data, q, v, tau - fv * v)
        v2 = v + 0.5 * h * a1
        a2 = aba(model, data, q + 0.5 * h * v, v2, tau - fv * v2)
        v3 = v + 0.5 * h * a2
        a3 = aba(model, data, q + 0.5 * h * v2, v3, tau - fv * v3)
        v4 = v + h * a3
        a4 = aba(model, data, q + h * v3, v4, tau - fv * v4)
        q = q + h / 6 * (v + 2 * v2 + 2 * v3 + v4)
        v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return Q, V


def compare_pinocchio(robot: dynid.Robot, path: Reference, ours: Simulation, seconds: float) -> None:
    kp, kv = controllers.bandwidth_gains(robot, BANDWIDTH)
    began = time.process_time()
    Q, V = looped_pinocchio(robot, path, kp, kv)
    theirs = time.process_time() - began
    apart = max(np.abs(Q - ours.q).max(), np.abs(V - ours.v).max())
    print(
        f"  Python loop over pin.aba {pin.__version__}, same RK4 and controller: {theirs:.2f} s, states differ by "
        f"{apart:.1e}, ratio {theirs / seconds:.1f} (goal 6)"
    )


def compare_mujoco(robot: dynid.Robot, path: Reference, ours: Simulation, seconds: float) -> None:
    """MuJoCo's rollout with RK4 at the same step, once with our torques and once with position and velocity servos."""
    try:
        import mujoco
        from mujoco import rollout
    except ImportError as error:
        print(f"  {error.name} is not installed")
        return
    kp, kv = controllers.bandwidth_gains(robot, BANDWIDTH)
    spec = _mujoco_spec(robot)
    forces = spec.copy()
    for name in robot.coordinates:
        forces.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    servos = spec.copy()
    for name, p, d in zip(robot.coordinates, kp, kv, strict=True):
        # kv (kp (u - q) - v), as the cascade, but evaluated in every stage of a step instead of held over it.
        servo = servos.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.gainprm[0], servo.biastype = p * d, mujoco.mjtBias.mjBIAS_AFFINE
        servo.biasprm[:3] = 0, -p * d, -d
    for what, file, control in (("given torques", forces, ours.torque), ("servos", servos, path.q)):
        model = file.compile()
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = path.q[0], path.v[0]
        start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        states = np.empty((1, len(path), len(start)))

        def run(model=model, data=data, start=start, control=control, states=states) -> None:  # type: ignore[no-untyped-def]
            rollout.rollout(model, data, initial_state=start[None], control=control[None], state=states)

        theirs = fastest(run, 3)
        Q = states[0, :-1, 1 : 1 + robot.n]  # each row is the state after its step
        apart = np.abs(Q - ours.q[1:]).max()
        print(
            f"  MuJoCo {mujoco.__version__} rollout, RK4, {what}: {theirs:.2f} s, positions differ by {apart:.1e}, "
            f"ratio {theirs / seconds:.2f} (goal 1)"
        )


def _mujoco_spec(robot: dynid.Robot):  # type: ignore[no-untyped-def]
    """The robot as MJCF with the same time step and integrator, without contacts and limits."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        write_mjcf(robot, path)
        spec = mujoco.MjSpec.from_file(str(path))
    spec.option.timestep, spec.option.integrator = 1 / RATE, mujoco.mjtIntegrator.mjINT_RK4
    for flag in (mujoco.mjtDisableBit.mjDSBL_CONTACT, mujoco.mjtDisableBit.mjDSBL_LIMIT):
        spec.option.disableflags |= int(flag)
    return spec


def compare_simulation(seconds: float) -> None:
    """Our closed loop against a Python loop over Pinocchio and against MuJoCo's rollout."""
    robot = shared_robot()
    path = reference(robot, seconds)
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(robot, BANDWIDTH))

    def run() -> Simulation:
        return simulate(robot, ClosedLoop(controller=law, sensors=EXACT, integrator="rk4", substeps=1), path)

    ours, time_of_ours = run(), fastest(run)
    print(
        f"closed loop, TX40, {len(path)} control periods of RK4, cascade: {time_of_ours:.3f} s, "
        f"{time_of_ours / len(path) * 1e6:.2f} us per period"
    )
    compare_pinocchio(robot, path, ours, time_of_ours)
    compare_mujoco(robot, path, ours, time_of_ours)


def compare_integrators(seconds: float) -> None:
    """Cost and error of every integrator on the coupled TX40 with Coulomb friction of slope 100 s/rad."""
    robot = dynid.load_robot("tx40").with_smooth_coulomb(100.0)
    path = reference(robot, seconds)
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(robot, BANDWIDTH))
    truth = simulate(robot, ClosedLoop(controller=law, integrator="dopri5", tolerance=1e-12), path)
    print("integrators, TX40 with coupling and friction, error of positions against dopri5 at 1e-12:")
    loops = {
        "rk4, one step": ClosedLoop(integrator="rk4", substeps=1),
        "rk4": ClosedLoop(integrator="rk4"),
        "semi-implicit": ClosedLoop(integrator="semi-implicit"),
        "dopri5": ClosedLoop(integrator="dopri5"),
        "implicit": ClosedLoop(integrator="implicit"),
        "implicit, 8 steps": ClosedLoop(integrator="implicit", substeps=8),
    }
    for name, settings in loops.items():
        loop = replace(settings, controller=law)
        taken = fastest(lambda loop=loop: simulate(robot, loop, path), 3)  # type: ignore[misc]
        error = np.abs(simulate(robot, loop, path).q - truth.q).max()
        print(f"  {name}: {taken / len(path) * 1e6:.1f} us per period, error {error:.1e} rad")


def compare_iteration(seconds: float) -> None:
    """One iteration of PC-DIDIM, part by part; the measured run is filtered once, before the first iteration."""
    robot = tx40_truth()
    law, motion = tx40_loop(RATE)
    loop = ClosedLoop(controller=law, sensors=tx40_sensors(32000))
    made = simulate(robot, loop, motion, duration=seconds, seed=0)
    signals = Signals(cutoff=200.0, decimate=(10, 2), trim=0.6)
    experiment = Experiment(robot, made.recording(), loop, signals)
    simulations = experiment.simulate(robot.parameters)
    rows = experiment.observe(simulations)
    parts = {
        "simulation": fastest(lambda: experiment.simulate(robot.parameters)),
        "regressor, decimation and factor": fastest(lambda: experiment.observe(simulations)),
        "semidefinite program": fastest(lambda: feasible(rows)),
    }
    total = sum(parts.values())
    print(
        f"one iteration of PC-DIDIM, TX40, {seconds:g} s at 5 kHz, {rows.total_rows} rows, one thread: {total:.3f} s "
        f"(goal 1; the paper took 6 to 16)"
    )
    for name, taken in parts.items():
        print(f"  {name}: {taken:.3f} s, {100 * taken / total:.0f} %")


def accurate_study(runs: int) -> MonteCarloStudy:
    """S1 of the PC-DIDIM study with PC-DIDIM alone."""
    study = scenarios(runs)
    noise, filters = {"accurate": study.noise["accurate"]}, {"good": study.filters["good"]}
    return replace(study, noise=noise, filters=filters, pairs=None, estimators=(Estimator("pc-didim"),), measure=None)


def compare_processes(runs: int, whole: int = 300) -> None:
    """Monte Carlo runs of PC-DIDIM with one and with two processes, each warmed up first."""
    taken = {}
    for workers in (1, 2):
        monte_carlo(accurate_study(workers), workers=workers)
        began = time.perf_counter()
        found = monte_carlo(accurate_study(runs), workers=workers).fits
        taken[workers] = time.perf_counter() - began
        converged, iterations = int((found["outcome"] == "converged").sum()), found["iterations"].mean()
    scaled = f", scaled to {whole}" if runs != whole else ""
    print(f"Monte Carlo, S1, PC-DIDIM, {runs} runs ({converged} converged, {iterations:.1f} iterations each){scaled}:")
    for workers, spent in taken.items():
        minutes = spent / runs * whole / 60
        goal = " (goal 10; the paper's figures add up to 100)" if workers == 2 else ""
        print(f"  processes: {workers}, {spent:.1f} s, {spent / runs:.2f} s each, {whole} in {minutes:.1f} min{goal}")
    print(f"  speed-up of two processes {taken[1] / taken[2]:.2f}, {len(os.sched_getaffinity(0))} cores here")


# Each prints its own figures.
PARTS: tuple[Callable[[float], None], ...] = (compare_simulation, compare_integrators, compare_iteration)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of the simulated motion")
    parser.add_argument("--monte-carlo", type=int, default=12, metavar="N", help="runs to time, at least 2; 0 for none")
    given = parser.parse_args()
    if given.monte_carlo < 0 or given.monte_carlo == 1:
        parser.error("--monte-carlo takes at least 2 runs, or 0 for none")
    with threadpool_limits(1):
        for part in PARTS:
            part(given.seconds)
        if given.monte_carlo:
            compare_processes(given.monte_carlo)


if __name__ == "__main__":
    main()
