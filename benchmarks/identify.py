"""Complete identification of 100,000 samples against FIGAROH, and streaming of ten million within 1 GiB of RAM.

python -m benchmarks.identify            # needs figaroh==1.0.2 (the bench extra) for the comparison
python -m benchmarks.identify --stream   # only the streaming part
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np

import dynid
from dynid.excitation.basis import random_fourier
from dynid.identification.jackknife import NoiseModel
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from
from dynid.online import OnlineIdentification
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.settings import Signals

# Signals are exact, so nothing is filtered on either side.
PLAIN = Signals(cutoff=None, derivative="central", trim=0.0, min_velocity=0.0, decimate=(), resample=None)


def arm() -> dynid.Robot:
    """Seven joints with viscous and Coulomb friction and rotor inertia."""
    return dynid.load_robot("iiwa14").with_drives("viscous+coulomb+offset", rotor_inertia=True)


def motion(robot: dynid.Robot, samples: int, rate: float = 1000.0) -> tuple[np.ndarray, ...]:
    limits = list(robot.limits.values())
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    velocity = np.array([x.velocity for x in limits])
    t = np.arange(samples) / rate
    return t, *random_fourier(lower, upper, velocity, 20.0, t, seed=1)


def recording(robot: dynid.Robot, samples: int) -> Recording:
    t, q, v, a = motion(robot, samples)
    torque = dynid.inverse_dynamics(robot, q, v, a)
    torque += np.random.default_rng(0).normal(size=torque.shape)
    return Recording(robot.coordinates, (Run(t, q, torque=torque),))


def whole(robot: dynid.Robot, data: Recording, noise_model: NoiseModel) -> tuple[float, np.ndarray]:
    """Regressor, base parameters and least squares, timed from the recording on.

    Standard deviations for autocorrelated noise, the default, read the rows a second time; those for white noise, which
    FIGAROH has, do not.
    """
    started = time.perf_counter()
    observation = observe(robot, data, signals=PLAIN)
    estimate = estimate_from(observation, "ols", noise_model=noise_model)
    return time.perf_counter() - started, estimate.beta


def figaroh(robot: dynid.Robot, data: Recording) -> tuple[float, int]:
    """The same three steps through FIGAROH's own functions, on the same derivatives."""
    import pinocchio as pin
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig, eliminate_non_dynaffect

    peer = pin.RobotWrapper(robot.without("*").to_pinocchio())
    run = data.runs[0]
    v = np.gradient(run.q, run.t, axis=0)
    a = np.gradient(v, run.t, axis=0)
    started = time.perf_counter()
    config = RegressorConfig(has_friction=True, has_actuator_inertia=True, has_joint_offset=True)
    W = RegressorBuilder(peer, config).build_basic_regressor(run.q, v, a, {"act_idxv": list(range(robot.n))})
    names = {f"p{i}": 0.0 for i in range(W.shape[1])}
    reduced, kept = eliminate_non_dynaffect(W, names)
    W_b = QRDecomposer().double_decomposition(run.torque.T.ravel(), reduced, kept)[0]
    return time.perf_counter() - started, W_b.shape[1]


def stream(samples: int) -> tuple[float, float]:
    """Seconds and peak MiB of folding `samples` samples that arrive as logs of 50,000, one after another."""
    robot = arm()
    log = 50_000
    arriving = recording(robot, log)
    identification = OnlineIdentification(robot)
    identification.add(arriving, signals=PLAIN)  # compile
    started = time.perf_counter()
    for _ in range(samples // log):
        identification.add(arriving, signals=PLAIN)
    identification.estimate("wls")
    return time.perf_counter() - started, peak_mib()


def peak_mib() -> float:
    """Peak resident set size of this process in MiB; getrusage would include that of the parent before exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not report the peak resident set size")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--samples", type=int)
    arguments = parser.parse_args()
    if arguments.samples:
        seconds, peak = stream(arguments.samples)
        print(f"{seconds:.2f} {peak:.0f}")
        return
    print(f"dynid {dynid.__version__}, numpy {np.__version__}, numba {metadata.version('numba')}")
    if not arguments.stream:
        robot = arm()
        data = recording(robot, 100_000)
        whole(robot, recording(robot, 30_000), "autocorrelated")  # compile
        ours = min(whole(robot, data, "white")[0] for _ in range(3))
        complete = min(whole(robot, data, "autocorrelated")[0] for _ in range(3))
        print(f"identification of 100,000 samples, 7 joints: dynid {ours:.2f} s; {complete:.2f} s with blocks of time")
        try:
            theirs, count = figaroh(robot, data)
        except ImportError:
            print("FIGAROH is not installed: pip install 'dynid[bench]' for the comparison")
        else:
            version = metadata.version("figaroh")
            print(f"  FIGAROH {version}: {theirs:.2f} s ({count} base parameters), ratio {theirs / ours:.1f} (goal 10)")
    for samples in (1_000_000, 10_000_000):
        out = subprocess.run(
            [sys.executable, __file__, "--samples", str(samples)], capture_output=True, text=True, check=True
        )
        seconds, peak = map(float, out.stdout.split())
        per = 1e6 * seconds / samples
        usage = f"peak {peak:.0f} MiB (goal < 1024)"
        print(f"streaming {samples:>10,} samples: {seconds:6.1f} s, {per:.2f} us per sample, {usage}")


if __name__ == "__main__":
    main()
