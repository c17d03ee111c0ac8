"""Data sets of growing size: time and peak memory of `dynid identify`, one against two workers, and a lost worker.

python -m benchmarks.scale FOLDER                       # 1, 3 and 10 million samples, and a cluster
python -m benchmarks.scale FOLDER --samples 100000000   # one size alone
python -m benchmarks.scale_fold                         # the fold beside the one before

The data sets are written below FOLDER and kept there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dynid
from benchmarks import scale_data
from benchmarks.identify import arm
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.progress import Progress
from dynid.recording import connect, open_dataset

SIZES = (1_000_000, 3_000_000, 10_000_000)
# Smaller partitions for the cluster, so that two workers share them evenly.
CLUSTER_SAMPLES, CLUSTER_PARTITION = 2_000_000, 125_000
LIMIT_MIB = 1536


def data_set(folder: Path, samples: int, size: int = scale_data.PARTITION) -> Path:
    """A data set of this size, written where it is not there yet."""
    place = folder / f"{samples}-{size}"
    if not (place / "complete").exists():
        began = time.perf_counter()
        scale_data.write(place, samples, size)
        (place / "complete").touch()
        print(f"wrote {samples:,} samples in {time.perf_counter() - began:.0f} s", flush=True)
    return place


def identify(place: Path, method: str) -> tuple[float, float, float, dynid.Estimate]:
    """Wall and processor seconds, peak MiB and estimate of the command line, in a process of its own."""
    output = place / "estimate.json"
    robot = ("iiwa14", "--friction", "viscous+coulomb+offset", "--rotor-inertia")
    words = [sys.executable, "-m", "dynid", "identify", robot[0], str(place), *robot[1:]]
    words += ["--method", method, "--report", "none", "-o", str(output)]
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"dynid identify ended with {process.returncode}")
    spent = time.perf_counter() - began
    return spent, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, dynid.Estimate.load(output)


@contextmanager
def cluster(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and some workers of one thread each, as processes: its address, and the workers."""
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"dynid-scale-{os.getpid()}-{workers}.json"
    file.unlink(missing_ok=True)
    log = subprocess.DEVNULL
    plain = {"stdout": log, "stderr": log}
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen([*words, "--no-dashboard"], **plain)  # type: ignore[call-overload]
    started: list[subprocess.Popen[bytes]] = []
    try:
        while not file.exists() or not file.read_text():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        for _ in range(workers):
            started.append(subprocess.Popen([*words, "--no-dashboard"], **plain))  # type: ignore[call-overload]
        yield address, started
    finally:
        for process in (*started, scheduler):
            process.kill()
            process.wait()
        file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Shared:
    """A data set that was observed on a cluster.

    Attributes
    ----------
    seconds : float
        By the clock.
    client, workers : float
        Processor seconds of this process, which joins the factors, and of all workers together.
    found : Observation
        The observation.
    """

    seconds: float
    client: float
    workers: float
    found: Observation


def on_cluster(place: Path, workers: int, kill_after: int | None = None) -> Shared:
    """A data set on some workers; one is killed after some partitions, if asked for."""
    robot = arm()
    opened = open_dataset(place, robot)
    with cluster(workers) as (address, processes):
        client = connect(address)
        client.wait_for_workers(workers, timeout=120)
        # Compiled kernels are loaded before the clock starts.
        observe(robot, open_dataset(place, robot, rows=(0, 5000)).split(0.9)[0], client=client)
        done = 0
        killed = threading.Event()

        def watch(progress: Progress) -> None:
            nonlocal done
            done += 1
            if kill_after is not None and done >= kill_after and not killed.is_set():
                killed.set()
                os.kill(processes[0].pid, signal.SIGKILL)

        def used() -> float:
            return sum(client.run(time.process_time).values())

        before, own, began = used(), time.process_time(), time.perf_counter()
        found = observe(robot, opened, client=client, progress=watch)
        spent, own = time.perf_counter() - began, time.process_time() - own
        theirs = used() - before if kill_after is None else float("nan")
        client.close()
    assert kill_after is None or killed.is_set()
    return Shared(spent, own, theirs, found)


def equal(a: Observation, b: Observation) -> bool:
    return a.rows == b.rows and all(np.array_equal(x, y) for x, y in zip(a.factors, b.factors, strict=True))


def arm_values(estimate: dynid.Estimate) -> np.ndarray:
    """The true base parameters of the arm."""
    return estimate.base.values(arm().parameters)


def growth(folder: Path, sizes: tuple[int, ...], method: str) -> list[dict[str, float]]:
    """Time and memory over the number of samples."""
    rows = []
    for samples in sizes:
        wall, processor, peak, estimate = identify(data_set(folder, samples), method)
        error = np.abs(estimate.beta - arm_values(estimate)) / estimate.std
        rows.append({"samples": samples, "wall_s": wall, "processor_s": processor, "peak_mib": peak})
        print(
            f"{samples:>11,} samples, {method}: {wall:7.1f} s, {1e6 * wall / samples:5.1f} us per sample "
            f"(processor {1e6 * processor / samples:5.1f}), peak {peak:5.0f} MiB (goal < {LIMIT_MIB}), "
            f"{sum(estimate.rows):,} rows, truth within two standard deviations for {100 * np.mean(error < 2):.0f} % "
            f"of {len(error)} base parameters, largest {error.max():.1f}",
            flush=True,
        )
    return rows


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Time and memory over the number of samples, both axes logarithmic."""
    from dynid.report.charts import Chart
    from dynid.report.sheet import sheet

    samples = np.array([row["samples"] for row in rows])
    seconds, peak = (np.array([row[key] for row in rows]) for key in ("processor_s", "peak_mib"))
    time_chart = Chart("samples", "processor time, s", width=400, height=260, log_x=True, log_y=True)
    time_chart.line(samples, seconds[0] * samples / samples[0], "sixth").line(samples, seconds, "predicted")
    memory_chart = Chart("samples", "peak memory, MiB", width=400, height=260, log_x=True, log_y=True)
    memory_chart.line(samples, peak, "predicted").level(LIMIT_MIB, "limit").level(100.0, "zero")
    legend = [("predicted", "measured"), ("sixth", "linear"), ("limit", "goal")]
    path.write_text(
        sheet("dynid identify on a data set of a seven-joint arm", [("", [time_chart, memory_chart])], legend)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, nargs="*")
    parser.add_argument("--method", default="wls")
    parser.add_argument("--cluster-only", action="store_true")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    print(f"dynid {dynid.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    if not arguments.cluster_only:
        rows = growth(arguments.folder, tuple(arguments.samples or SIZES), arguments.method)
        if arguments.figure is not None:
            draw(rows, arguments.figure)
        if arguments.samples:
            return
    place = data_set(arguments.folder, CLUSTER_SAMPLES, CLUSTER_PARTITION)
    here = observe(arm(), open_dataset(place, arm()))
    seconds = {}
    for workers in (1, 2):
        done = on_cluster(place, workers)
        seconds[workers] = done.seconds
        same = "the same bits as without a cluster" if equal(here, done.found) else "OTHER BITS"
        print(
            f"{CLUSTER_SAMPLES:,} samples on {workers} worker(s): {done.seconds:.1f} s, processor time "
            f"{done.workers:.1f} s on workers and {done.client:.2f} s here, {same}, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    print(f"two workers are {seconds[1] / seconds[2]:.2f} times as fast as one (goal 1.7)", flush=True)
    alone = done.workers + done.client
    print(f"by processor time alone it would be {alone / (done.workers / 2 + done.client):.2f} times", flush=True)
    done = on_cluster(place, 2, kill_after=6)
    same = "the same bits" if equal(here, done.found) else "OTHER BITS"
    rows = sum(done.found.rows)
    print(f"one of two workers killed after 6 partitions: {done.seconds:.1f} s, {same}, {rows:,} rows", flush=True)


if __name__ == "__main__":
    main()
