"""Time of method auto, and of the feasible fit with its search of the weight relative to one solve.

python -m benchmarks.auto
"""

from __future__ import annotations

import time
from collections.abc import Callable

import dynid
from dynid.cli.demo import synthetic_recording

DURATION = 60.0  # s, at 1 kHz


def seconds(work: Callable[[], object]) -> float:
    """Time of one call, after a first one that compiles and fills caches."""
    work()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Print times and ratios of a 7-joint arm."""
    truth = dynid.load_robot("iiwa14").with_drives("viscous+coulomb", rotor_inertia=True)
    values = [v if p.inertial else 0.1 for p, v in zip(truth.layout, truth.parameters, strict=True)]
    truth = truth.with_parameters(values)
    recording = synthetic_recording(truth, 0, DURATION)
    robot = truth.with_drives("none", rotor_inertia=False)
    whole = seconds(lambda: dynid.identify(robot, recording))
    print(f"auto, {robot.n} joints, {DURATION:g} s at 1 kHz: {whole:.1f} s")
    observation = dynid.identification.observe(truth, recording)
    search = seconds(lambda: dynid.identify(truth, observation, "feasible", noise_model="white"))
    single = seconds(lambda: dynid.identify(truth, observation, "feasible", weight=1.0, noise_model="white"))
    print(
        f"feasible: {search:.2f} s with the search of the weight, {single:.2f} s with one solve: {search / single:.1f}x"
    )


if __name__ == "__main__":
    main()
