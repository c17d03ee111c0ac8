"""Identification while running: time and memory of an update, recordings replayed against the batch, a pick-up.

python -m benchmarks.online              # all parts; the replays need the data folder of the studies
python -m benchmarks.online --update     # only the time of an update
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numba.core.runtime import _nrt_python, rtsys
from numpy.typing import NDArray

import dynid
from dynid.excitation.basis import random_fourier
from dynid.online import OnlineIdentification, PayloadMonitor
from dynid.signals.settings import Signals, uniform
from studies.reproduce.robot_cases import Case, lwr4, ur10e
from tests.support import carrying_plant
from tests.support.carrying_plant import MASS, carry

Array = NDArray[np.float64]

LAW = "viscous+coulomb+offset"


def seven_joints(samples: int, rate: float = 1000.0) -> tuple[dynid.Robot, Array, Array, Array]:
    """An arm of seven joints with friction and rotor inertia, and a motion of it."""
    robot = dynid.load_robot("wam7").without("*").with_drives(LAW, rotor_inertia=True)
    t = np.arange(samples) / rate
    ones = np.ones(robot.n)
    q, v, a = random_fourier(-1.5 * ones, 1.5 * ones, 2.0 * ones, 20.0, t, 0)
    return robot, t, q, dynid.inverse_dynamics(robot, q, v, a)


def update_times(samples: int) -> None:
    """Time of every single update on one core, and what it allocates.

    On a computer that is busy, the time by the clock contains that of other programs.
    """
    robot, t, q, torque = seven_joints(samples)
    print(f"update, {robot.n} joints at 1 kHz, {samples} samples one by one:")
    for cutoff in (16.0, 100.0):
        one = OnlineIdentification(robot, rate=1000.0, cutoff=cutoff)
        rows = [(float(t[k]), q[k], torque[k]) for k in range(samples)]
        spent = np.zeros((samples, 2))
        for k, row in enumerate(rows):
            clock, own = time.perf_counter_ns(), time.thread_time_ns()
            one.update(*row)
            spent[k, 1] = time.thread_time_ns() - own
            spent[k, 0] = time.perf_counter_ns() - clock
        print(
            f"  cut-off {cutoff:g} Hz, {one.base.count} base parameters, a row per joint every {one.filters.step} "
            "samples:"
        )
        for name, us in zip(("by the clock", "of the processor"), spent[1000:].T / 1e3, strict=True):
            print(
                f"    {name}: mean {us.mean():.1f} us, median {np.median(us):.1f}, "
                f"99.9 % {np.percentile(us, 99.9):.0f}, maximum {us.max():.0f}"
            )
        blocks = OnlineIdentification(robot, rate=1000.0, cutoff=cutoff)
        started, cpu = time.perf_counter(), time.process_time()
        blocks.update_block(t, q, torque)
        print(
            f"    in one block: {1e6 * (time.perf_counter() - started) / samples:.1f} us per sample by the clock, "
            f"{1e6 * (time.process_time() - cpu) / samples:.1f} us of the processor"
        )
    memory(robot, t, q, torque)


def memory(robot: dynid.Robot, t: Array, q: Array, torque: Array) -> None:
    """Memory of Python that one update uses and keeps, and records of the compiler's runtime."""
    one = OnlineIdentification(robot, rate=1000.0)
    rows = [(float(t[k]), q[k], torque[k]) for k in range(4000)]
    for row in rows[:1000]:
        one.update(*row)
    passing = np.zeros(3000)
    tracemalloc.start()
    one.update(*rows[1000])
    before = tracemalloc.get_traced_memory()[0]
    for k, row in enumerate(rows[1001:]):
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        one.update(*row)
        passing[k] = tracemalloc.get_traced_memory()[1] - start
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    stream = one._rows
    assert stream is not None
    _nrt_python.memsys_enable_stats()
    counts = []
    for size in (1, 100):
        part = [np.ascontiguousarray(x[:size]) for x in (q, q, torque)]
        first = rtsys.get_allocation_stats()
        one._factors.fold(stream, stream._filter(*part, False))
        last = rtsys.get_allocation_stats()
        counts.append((last.alloc - first.alloc, last.free - first.free))
    _nrt_python.memsys_disable_stats()
    print(f"  memory: kept after 3000 updates {kept} bytes; used and released in one {passing.max():.0f} bytes at most")
    print(
        f"  records of arrays at the border of Python: {counts[0][0]} taken, {counts[0][1]} given back for one sample, "
        f"{counts[1][0]} for 100 samples: {counts[1][0] - counts[0][0]} inside the compiled code"
    )


def replay(case: Callable[[], Case]) -> None:
    """A recording sample by sample against the batch: differences in standard deviations of the batch."""
    found = case()
    batch = dynid.identify(found.robot, found.train, "wls")
    runs = [uniform(run, Signals()) for run in found.train.runs]
    rate = runs[0][1]
    fastest = np.max([np.abs(np.gradient(run.q, run.t, axis=0)).max(axis=0) for run, _ in runs], axis=0)
    for name, least in (("1 % of the velocity so far", "1%"), ("1 % of the final velocity", tuple(0.01 * fastest))):
        one = OnlineIdentification(found.robot, rate=rate, base=batch.base, min_velocity=least)  # type: ignore[arg-type]
        late = 0.0
        for run, _ in runs:
            assert run.torque is not None
            t = late + np.arange(len(run.t)) / rate
            for sample in zip(t.tolist(), run.q, run.torque, strict=True):
                one.update(*sample)
            late = float(t[-1]) + 1.0
        estimate = one.estimate()
        off = np.abs(estimate.beta - batch.beta) / batch.std
        worst = batch.base.names[int(np.argmax(off))]
        print(
            f"  {case.__name__}, rows above {name}: {one.samples} samples, rows {sum(estimate.rows)} "
            f"(batch {sum(batch.rows)}); of {len(off)} base parameters {np.count_nonzero(off <= 1)} within one "
            f"standard deviation, median {np.median(off):.2f}, rms {np.sqrt(np.mean(off**2)):.2f}, largest "
            f"{off.max():.2f} ({worst}); standard deviations over those of the batch: "
            f"median {np.median(estimate.std / batch.std):.2f}"
        )


def pick_up(seeds: int) -> None:
    """An arm of seven joints that Pinocchio integrates picks up a body at 12 s and releases it at 15 s."""
    plant = carrying_plant.arm(7)
    model = plant.with_terms(*(plant.joint_term(k, "Ia", carrying_plant.ROTOR) for k in range(plant.n)))
    late, wrong, sure, count, quiet = [], [], [], 0, 0.0
    for seed in range(seeds):
        first = carry(plant, 30.0, seed=100 + seed, correlation=0.9)
        recording = dynid.Recording(model.coordinates, (dynid.Run(first.t, first.q, torque=first.torque),))
        estimate = dynid.identify(model, recording, "wls")
        run = carry(plant, 18.0, hold=(12.0, 15.0), seed=seed, correlation=0.9)
        monitor = PayloadMonitor(estimate, "link7", rate=run.rate)
        before = run.t <= 13.0
        events = monitor.update_block(run.t[before], run.q[before], run.torque[before])
        state = monitor.payload()
        events += monitor.update_block(run.t[~before], run.q[~before], run.torque[~before])
        quiet += 18.0 - 5.0
        count += len(events)
        assert state is not None
        late += [event.detected - at for event, at in zip(events, (12.0, 15.0), strict=False)]
        wrong.append(abs(state.mass - MASS) / MASS)
        sure.append(abs(state.mass - MASS) / state.mass_std)
    print(
        f"pick-up and release of {MASS:g} kg, {seeds} seeds: {count} events ({2 * seeds} true), found after "
        f"{np.mean(late):.2f} s on average and {max(late):.2f} s at most; mass one second after the pick-up wrong by "
        f"{100 * np.mean(wrong):.2f} % on average and {100 * max(wrong):.2f} % at most, "
        f"{np.sqrt(np.mean(np.square(sure))):.1f} standard deviations (rms)"
    )


def quiet(runs: int, seconds: float) -> None:
    """Events while nothing is picked up, with autocorrelated noise."""
    plant = carrying_plant.arm(6)
    model = plant.with_terms(*(plant.joint_term(k, "Ia", carrying_plant.ROTOR) for k in range(plant.n)))
    events = disturbances = 0
    for seed in range(runs):
        run = carry(plant, seconds, rate=250.0, seed=1000 + seed, correlation=0.9)
        monitor = PayloadMonitor(model, "link6", rate=run.rate)
        events += len(monitor.update_block(run.t, run.q, run.torque))
        disturbances += monitor.disturbances
    print(
        f"nothing picked up in {runs * seconds / 60:.0f} minutes: {events} events, {disturbances} disturbances; "
        f"stated at most {0.1 * runs * seconds / 3600:.2g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="only the time of an update")
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    update_times(arguments.samples)
    if arguments.update:
        return
    print("recordings replayed sample by sample, against wls on the whole recording:")
    for case in (ur10e, lwr4):
        replay(case)
    pick_up(arguments.seeds)
    quiet(5, 120.0)


if __name__ == "__main__":
    main()
