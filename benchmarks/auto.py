"""Time of method auto on 20,000 samples of six joints, beside feasible and weighted least squares.

python -m benchmarks.auto [--quick]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import dynid
from dynid.cli.demo import synthetic_recording

SAMPLES, QUICK = 20_000, 4_000  # at 1 kHz
REPETITIONS = 3
METHODS = ("auto", "feasible", "wls")
MOST, RATIO = 3.0, 15.0  # s of auto, and its time over that of wls


def seconds(work: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Shortest time of several calls, after a first one that compiles and fills caches."""
    work()
    return min(_timed(work) for _ in range(repetitions))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def times(samples: int, repetitions: int = REPETITIONS) -> dict[str, float]:
    """Seconds of each method on one recording of a six-joint arm; auto is given the bodies alone."""
    truth = dynid.load_robot("rv2sq").with_drives("viscous+coulomb", rotor_inertia=True)
    values = [x if p.inertial else 0.1 for p, x in zip(truth.layout, truth.parameters, strict=True)]
    recording = synthetic_recording(truth.with_parameters(values), 0, samples / 1000.0)
    bare = truth.with_drives("none", rotor_inertia=False)
    robots = {method: bare if method == "auto" else truth for method in METHODS}
    return {m: seconds(partial(dynid.identify, r, recording, m), repetitions) for m, r in robots.items()}


def main() -> None:
    """Print times, and their ratios to weighted least squares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, one repetition")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    samples = QUICK if given.quick else SAMPLES
    found = times(samples, 1 if given.quick else REPETITIONS)
    if given.json:
        print(json.dumps({"samples": samples, "seconds": found}))
        return
    print(f"six joints, {samples} samples, warm")
    for method, spent in found.items():
        print(f"  {method:9} {spent:7.3f} s   {spent / found['wls']:6.1f} times wls")
    print(f"  aim: auto below {MOST:g} s on two cores and at most {RATIO:g} times wls")


if __name__ == "__main__":
    main()
