"""Dynamics against Pinocchio: python -m benchmarks.dynamics

Both sides compute the same values, which is checked before anything is timed. Measurements are interleaved and the
best of several repeats counts, so that other load on the computer affects both sides alike. Ratios above one mean that
dynid is faster; the adjoint is compared with our own regressor. dynid allocates its results in every call, Pinocchio
writes into preallocated arrays.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter

import numba
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.dynamics.batch import thread_count

Array = NDArray[np.float64]
Work = Callable[[], object]

REPEATS = 10
SAMPLES = 100_000
HUMANOID_SAMPLES = 2_000  # one regressor has 44 x 390 values: 275 MB for all


def main() -> None:
    threads = thread_count()
    print(
        f"dynid {dynid.__version__}, pinocchio {pin.__version__}, numba {numba.__version__}, numpy {np.__version__}, "
        f"python {platform.python_version()}, {platform.machine()}, {threads} cores"
    )
    arm = dynid.load_robot("iiwa14").with_drives("none", rotor_inertia=False)
    side_by_side("7-joint arm", arm, pinocchio_arm(arm), SAMPLES, threads, goals=True)
    model = humanoid()
    side_by_side("44-degree-of-freedom humanoid", Robot.from_pinocchio(model), model, HUMANOID_SAMPLES, threads)
    growth(arm)
    closed_loops()
    start_up()


# -- what is compared ----------------------------------------------------------------------------


def side_by_side(title: str, robot: Robot, model: pin.Model, samples: int, threads: int, goals: bool = False) -> None:
    """Every function against the same one of Pinocchio, on all threads and on one."""
    q, v, a = motion(robot, samples)
    G = np.random.default_rng(1).normal(size=(samples, len(robot.channels), len(robot.layout)))
    data, pool = model.createData(), pin.ModelPool(model, threads)
    columns = [np.asfortranarray(x.T) for x in (q, v, a)]
    result, matrices = np.zeros((model.nv, samples), order="F"), np.zeros((samples, model.nv, 10 * (model.njoints - 1)))

    ours: dict[str, Work] = {
        "regressor": partial(dynid.regressor, robot, q, v, a),
        "inverse dynamics": partial(dynid.inverse_dynamics, robot, q, v, a),
        "forward dynamics": partial(dynid.forward_dynamics, robot, q, v, a),
        "adjoint": partial(dynid.dynamics.regressor_adjoint, robot, G, q, v, a),
    }
    theirs: dict[str, Work] = {
        "loop over computeJointTorqueRegressor": partial(
            loop, pin.computeJointTorqueRegressor, model, data, (q, v, a), matrices
        ),
        "loop over rnea": partial(loop, pin.rnea, model, data, (q, v, a), result.T),
        "loop over aba": partial(loop, pin.aba, model, data, (q, v, a), result.T),
        "rneaInParallel": partial(pin.rneaInParallel, threads, pool, *columns, result),
        "abaInParallel": partial(pin.abaInParallel, threads, pool, *columns, result),
        "rneaInParallel, 1 thread": partial(pin.rneaInParallel, 1, pool, *columns, result),
        "abaInParallel, 1 thread": partial(pin.abaInParallel, 1, pool, *columns, result),
    }
    pairs = (
        ("regressor", "loop over computeJointTorqueRegressor"),
        ("inverse dynamics", "rneaInParallel"),
        ("forward dynamics", "abaInParallel"),
    )
    for name, peer in pairs:
        check(f"{title}, {name}", ours[name](), run(theirs[peer], matrices if name == "regressor" else result.T))

    works = theirs | {f"{name}, {n} threads": on(n, work) for name, work in ours.items() for n in sorted({1, threads})}
    time = {name: 1e6 * seconds / samples for name, seconds in best(works).items()}

    def line(name: str, n: int, peer: str, goal: float | None = None) -> list[str]:
        us, them = time[f"{name}, {n} threads"], time[peer]
        return [name, str(n), f"{us:.2f}", peer, f"{them:.2f}", f"{them / us:.2f}", *verdict(them / us, goal)]

    rows = [
        line("regressor", threads, "loop over computeJointTorqueRegressor", 5.0 if goals else None),
        line("regressor", 1, "loop over computeJointTorqueRegressor"),
        line("inverse dynamics", threads, "rneaInParallel", 1.0 if goals else None),
        line("inverse dynamics", 1, "rneaInParallel, 1 thread"),
        line("inverse dynamics", 1, "loop over rnea"),
        line("forward dynamics", threads, "loop over aba", 1.5 if goals else None),
        line("forward dynamics", 1, "loop over aba"),
        line("forward dynamics", threads, "abaInParallel"),
        line("forward dynamics", 1, "abaInParallel, 1 thread"),
    ]
    for n in sorted({1, threads}, reverse=True):
        us, base = time[f"adjoint, {n} threads"], time[f"regressor, {n} threads"]
        goal = 4.0 if goals and n == threads else None
        cost = [f"{us:.2f}", "cost over our regressor", f"{base:.2f}", f"{us / base:.2f}"]
        rows.append(["adjoint", str(n), *cost, *verdict(us / base, goal, most=True)])
    print(f"\n{title}, {samples:,} samples, us per sample")
    table(["", "threads", "dynid", "peer", "peer us", "ratio", "goal", ""], rows)


def growth(robot: Robot) -> None:
    """Time per sample, which must not depend on the number of samples."""
    sizes = (1_000, 10_000, 100_000)
    works: dict[str, Work] = {}
    for size in sizes:
        q, v, a = motion(robot, size)
        G = np.ones((size, len(robot.channels), len(robot.layout)))
        works |= {
            f"regressor {size}": partial(dynid.regressor, robot, q, v, a),
            f"inverse dynamics {size}": partial(dynid.inverse_dynamics, robot, q, v, a),
            f"forward dynamics {size}": partial(dynid.forward_dynamics, robot, q, v, a),
            f"adjoint {size}": partial(dynid.dynamics.regressor_adjoint, robot, G, q, v, a),
        }
    time = best({name: on(1, work) for name, work in works.items()})
    names = ("regressor", "inverse dynamics", "forward dynamics", "adjoint")
    print("\n7-joint arm, one thread, us per sample by number of samples")
    table(["", *(f"{n:,}" for n in sizes)], [[x, *(f"{1e6 * time[f'{x} {n}'] / n:.2f}" for n in sizes)] for x in names])


def closed_loops() -> None:
    """Regressor of a leg of twelve joints with two loops over that of its tree, along the same motion on one thread."""
    robot = dynid.load_robot("leg12")
    t = np.arange(SAMPLES)[:, None] / 1000.0
    w = np.linspace(0.5, 3.0, robot.n)
    q, v, a = robot.home + 0.3 * np.sin(w * t), 0.3 * w * np.cos(w * t), -0.3 * w**2 * np.sin(w * t)
    x = dynid.dynamics.assemble(robot, q, v, a)
    works = {
        "tree": on(1, partial(dynid.regressor, robot.tree, x.q, x.v, x.a)),
        "loops": on(1, partial(dynid.regressor, robot, q, v, a)),
        "assembly": on(1, partial(dynid.dynamics.assemble, robot, q, v, a)),
    }
    time = {name: 1e6 * seconds / SAMPLES for name, seconds in best(works).items()}
    ratio = time["loops"] / time["tree"]
    print(f"\n12-joint leg with two closed loops, {SAMPLES:,} samples, one thread, us per sample")
    row = ["regressor", *(f"{time[x]:.2f}" for x in ("loops", "assembly", "tree")), f"{ratio:.2f}"]
    table(["", "with loops", "assembly alone", "tree", "ratio", "goal", ""], [[*row, *verdict(ratio, 4.0, most=True)]])


def start_up() -> None:
    """From the start of a process to its first results, without and with the compiled kernels in the cache."""
    code = (
        "import dynid, numpy as np\n"
        "robot = dynid.load_robot('iiwa14').with_drives('none', rotor_inertia=False)\n"
        "x = np.full((10, 7), 0.5)\n"
        "for f in (dynid.regressor, dynid.inverse_dynamics, dynid.forward_dynamics): f(robot, x, x, x)\n"
        "print('done', flush=True)\n"
    )
    taken = []
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONWARNINGS": "ignore"}
        for _ in range(3):
            start = perf_counter()
            # The notice about the compilation on stderr is expected and not shown.
            with subprocess.Popen(
                [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as child:
                assert child.stdout is not None
                line = child.stdout.readline()
                taken.append(perf_counter() - start)
            if line != b"done\n":
                raise SystemExit("the child process failed")
    first, later = taken[0], min(taken[1:])
    print("\nfrom process start to the first regressor, inverse and forward dynamics, s")
    table(
        ["", "dynid", "goal", ""],
        [
            ["first use, compiling", f"{first:.1f}", "", ""],
            ["later processes, from the cache", f"{later:.1f}", *verdict(later, 4.0, most=True)],
        ],
    )


# -- robots and motions --------------------------------------------------------------------------


def pinocchio_arm(robot: Robot) -> pin.Model:
    """The arm with Pinocchio's fastest joint type: all its axes are z."""
    model = pin.Model()
    model.gravity.linear = robot.gravity
    for joint, link in zip(robot.joints, robot.links[1:], strict=True):
        if joint.kind != "revolute" or tuple(joint.axis) != (0, 0, 1) or not np.array_equal(joint.mount, np.eye(4)):
            raise SystemExit(f"joint '{joint.name}' does not turn about its z axis")
        i = model.addJoint(joint.parent, pin.JointModelRZ(), pin.SE3(np.asarray(joint.placement)), joint.name)
        model.inertias[i] = pin.Inertia.FromDynamicParameters(np.asarray(link.inertia))
    return model


def humanoid() -> pin.Model:
    """Free-flyer pelvis, two legs of 6, waist of 3, two arms of 7 with hands of 3, neck of 3: 44 degrees of freedom."""
    rng = np.random.default_rng(0)
    model = pin.Model()

    def body(joint: int) -> None:
        half = rng.uniform(0.03, 0.15, 3)
        inertia = pin.Inertia.FromBox(rng.uniform(0.5, 5.0), *(2 * half))
        model.appendBodyToJoint(joint, inertia, pin.SE3(pin.SE3.Identity().rotation, rng.uniform(-0.1, 0.1, 3)))

    def limb(parent: int, name: str, axes: str) -> int:
        for i, axis in enumerate(axes):
            kind = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}[axis]()
            where = pin.SE3(np.eye(3), rng.uniform(-0.2, 0.2, 3))
            parent = model.addJoint(parent, kind, where, f"{name}{i + 1}")
            body(parent)
        return parent

    pelvis = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    body(pelvis)
    for side in ("left", "right"):
        limb(pelvis, f"{side}_leg", "zxyyyx")
    chest = limb(pelvis, "waist", "zyx")
    for side in ("left", "right"):
        wrist = limb(chest, f"{side}_arm", "yxzyzyx")
        for finger in ("thumb", "index", "ring"):
            limb(wrist, f"{side}_{finger}", "x")
    limb(chest, "neck", "zyx")
    assert model.nv == 44
    return model


def motion(robot: Robot, samples: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    q = rng.uniform(-1, 1, (samples, robot.nq))
    if robot.base == "floating":
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, rng.uniform(-1, 1, (samples, robot.nv)), rng.uniform(-1, 1, (samples, robot.nv))


# -- measuring and printing ----------------------------------------------------------------------


def loop(function: Callable[..., Array], model: pin.Model, data: pin.Data, state: Sequence[Array], out: Array) -> None:
    for k, (q, v, a) in enumerate(zip(*state, strict=True)):
        out[k] = function(model, data, q, v, a)


def run(work: Work, result: Array) -> Array:
    """Contents of `result` after the work."""
    work()
    return result


def on(threads: int, work: Work) -> Work:
    """The work on this many threads of dynid."""

    def limited() -> None:
        os.environ["DYNID_THREADS"] = str(threads)
        work()

    return limited


def best(works: dict[str, Work]) -> dict[str, float]:
    """Best time of each work in seconds; repeats are interleaved."""
    times: dict[str, float] = dict.fromkeys(works, np.inf)
    for _ in range(REPEATS):
        for name, work in works.items():
            start = perf_counter()
            work()
            times[name] = min(times[name], perf_counter() - start)
    return times


def check(what: str, ours: object, theirs: Array) -> None:
    """Stop unless both sides give the same values."""
    ours = np.asarray(ours)
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if ours.shape != theirs.shape or not error < 1e-9:
        raise SystemExit(f"{what}: results differ by {error:.1e}")
    print(f"{what}: results agree to {error:.0e}")


def verdict(value: float, goal: float | None, most: bool = False) -> list[str]:
    if goal is None:
        return ["", ""]
    met = value <= goal if most else value >= goal
    return [f"{'<=' if most else '>='} {goal:g}", "met" if met else "not met"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [head, *rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)).rstrip())


if __name__ == "__main__":
    main()
