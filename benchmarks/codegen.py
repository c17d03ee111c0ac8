"""Generated C against Pinocchio and CasADi: inverse dynamics of a 7-joint arm, nanoseconds per call, from one run.

All sides compute the same torques, which is checked before anything is timed. The generated C and the C that CasADi
generates from Newton-Euler written with its own expressions (common subexpressions shared by its `cse`) are compiled
by the same compiler with the same flags and called from one loop in C through a pointer. Pinocchio runs its own loop
in C++ over all samples on one thread (`rneaInParallel`), with no Python in between; its plain call from Python is
timed too, with the overhead of the call, measured on a robot of one joint, subtracted. Times are CPU times;
repeats are interleaved and the best counts.

python -m benchmarks.codegen
python -m benchmarks.codegen --robot wam7 --flags=-O3
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import casadi as ca
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import dynid
from dynid.codegen.compiled import find_compiler
from dynid.parameters.base import random_states

Array = NDArray[np.float64]

SAMPLES = 20_000
REPEATS = 15

LOOP = """
#include <stddef.h>
typedef void (*plain_function)(const double *, const double *, const double *, double *);
typedef int (*casadi_function)(const double **, double **, long long *, double *, int);
void loop_plain(plain_function f, size_t samples, size_t n,
                const double *q, const double *v, const double *a, double *t)
{
    for (size_t k = 0; k < samples; k++)
        f(q + k * n, v + k * n, a + k * n, t + k * n);
}
void loop_casadi(casadi_function f, size_t samples, size_t n,
                 const double *q, const double *v, const double *a, double *t)
{
    double w[4096];
    for (size_t k = 0; k < samples; k++) {
        const double *arg[8] = {q + k * n, v + k * n, a + k * n};
        double *res[8] = {t + k * n};
        f(arg, res, NULL, w, 0);
    }
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="iiwa14", help="a built-in robot without mimic joints")
    parser.add_argument("--flags", default="-O2", help="flags of the C compiler in one word: --flags='-O3 -ffast-math'")
    given = parser.parse_args()
    robot = dynid.load_robot(given.robot)
    robot = robot.without(*(t.name for t in robot.drives)) if robot.drives else robot
    q, v, a = random_states(robot, SAMPLES, 0)
    compiler = find_compiler()
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    print(
        f"{robot.name}, {robot.n} joints, inverse dynamics; dynid {dynid.__version__}, pinocchio {pin.__version__}, "
        f"casadi {ca.__version__}, {version} {given.flags}, {platform.machine()}"
    )
    # The published parameters of some built-in robots are infeasible; the time does not depend on it.
    code, plain = (
        dynid.generate_code(robot, ("inverse_dynamics",), name=name, sines=sines, allow_infeasible=True)
        for name, sines in (("arm", "inline"), ("plain", "library"))
    )
    print(f"generated C: {code.operations['inverse_dynamics']}")
    with tempfile.TemporaryDirectory() as folder:
        sides = compiled_sides(
            code, plain, casadi_inverse_dynamics(robot), Path(folder), compiler, given.flags.split(), (q, v, a)
        )
        sides |= pinocchio_sides(robot, q, v, a)
        expected = dynid.inverse_dynamics(robot, q, v, a)
        for name, (work, result) in sides.items():
            work()
            if result is not None:
                difference = np.abs(result() - expected).max() / np.abs(expected).max()
                assert difference < 1e-12, f"{name} differs by {difference:.1e}"
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(REPEATS):
            for name, (work, _) in sides.items():
                start = process_time()
                work()
                seconds[name].append(process_time() - start)
    ns = {name: 1e9 * min(times) / SAMPLES for name, times in seconds.items()}
    call = ns.pop("one joint, pin.rnea from Python")
    ns["pin.rnea from Python, overhead subtracted"] = ns["pin.rnea from Python"] - call
    ours = ns["dynid generated C"]
    for name, each in ns.items():
        print(f"{name:42s} {each:8.0f} ns per call   {each / ours:6.2f} times ours")


Side = tuple[Callable[[], object], Callable[[], Array] | None]


def compiled_sides(
    code: dynid.codegen.GeneratedCode,
    plain: dynid.codegen.GeneratedCode,
    peer: ca.Function,
    folder: Path,
    compiler: str,
    flags: list[str],
    motion: tuple[Array, Array, Array],
) -> dict[str, Side]:
    """Both generated C functions in one library, each called by a loop in C."""
    code.write(folder)
    plain.write(folder)
    generator = ca.CodeGenerator("peer.c")
    generator.add(peer)
    generator.generate(f"{folder}/")
    (folder / "loop.c").write_text(LOOP)
    command = [
        compiler,
        "-std=c99",
        *flags,
        "-shared",
        "-fPIC",
        "arm.c",
        "plain.c",
        "peer.c",
        "loop.c",
        "-o",
        "both.so",
        "-lm",
    ]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "both.so"))
    samples, n = motion[0].shape
    assert peer.sz_w() <= 4096

    def side(loop: str, function: str) -> Side:
        out = np.zeros((samples, n))
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*motion, out)]
        target = ctypes.cast(getattr(library, function), ctypes.c_void_p)
        run = getattr(library, loop)
        run.restype = None
        return lambda: run(target, ctypes.c_size_t(samples), ctypes.c_size_t(n), *pointers), lambda: out

    print(f"casadi C: {peer.n_instructions()} instructions, inputs and outputs included")
    return {
        "dynid generated C": side("loop_plain", "arm_inverse_dynamics"),
        "dynid generated C, sines of the library": side("loop_plain", "plain_inverse_dynamics"),
        "casadi generated C": side("loop_casadi", peer.name()),
    }


def pinocchio_sides(robot: dynid.Robot, q: Array, v: Array, a: Array) -> dict[str, Side]:
    """The loop in C++ on one thread, the call from Python, and that call for a robot of one joint."""
    model = robot.to_pinocchio()
    pool, data = pin.ModelPool(model, 1), model.createData()
    columns = [np.asfortranarray(x.T) for x in (q, v, a)]
    out = np.zeros((robot.n, len(q)), order="F")
    small = pin.Model()
    small.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
    small_data, zero = small.createData(), np.zeros(1)

    def one_by_one() -> None:
        for k in range(len(q)):
            pin.rnea(model, data, q[k], v[k], a[k])

    def overhead() -> None:
        for k in range(len(q)):
            pin.rnea(small, small_data, zero, zero, zero) if q[k] is not v[k] and v[k] is not a[k] else None

    return {
        "pinocchio, loop in C++": (lambda: pin.rneaInParallel(1, pool, *columns, out), lambda: out.T),
        "pin.rnea from Python": (one_by_one, None),
        "one joint, pin.rnea from Python": (overhead, None),
    }


def casadi_inverse_dynamics(robot: dynid.Robot) -> ca.Function:
    """Newton-Euler in link frames in CasADi's scalar expressions, with all parameters of the robot as constants."""
    q, v, a = (ca.SX.sym(name, robot.n) for name in "qva")
    w, dw, acceleration = [ca.SX(3, 1)], [ca.SX(3, 1)], [ca.SX(-ca.DM(robot.gravity))]
    frames = []
    for j, joint in enumerate(robot.joints):
        parent = joint.parent
        k = np.cross(np.eye(3), joint.axis)
        turn = ca.SX.eye(3) + ca.sin(q[j]) * sparse(k) + (1 - ca.cos(q[j])) * sparse(k @ k)
        turn = ca.sparsify(turn) if joint.kind == "revolute" else ca.SX.eye(3)
        rotation = sparse(joint.placement[:3, :3]) @ turn @ sparse(joint.mount[:3, :3])
        shift = sparse(joint.placement[:3, 3]) + sparse(joint.placement[:3, :3]) @ turn @ sparse(joint.mount[:3, 3])
        axis = sparse(joint.mount[:3, :3].T @ joint.axis)
        assert joint.kind == "revolute"
        w.append(rotation.T @ w[parent] + axis * v[j])
        dw.append(rotation.T @ dw[parent] + axis * a[j] + ca.cross(w[-1], axis * v[j]))
        start, reach = sparse(joint.placement[:3, 3]), sparse(joint.mount[:3, :3].T @ joint.mount[:3, 3])
        moved = acceleration[parent] + ca.cross(dw[parent], start) + ca.cross(w[parent], ca.cross(w[parent], start))
        out = ca.cross(dw[-1], reach) + ca.cross(w[-1], ca.cross(w[-1], reach))
        acceleration.append(rotation.T @ moved + out)
        frames.append((rotation, shift, axis))
    forces, moments = [ca.SX(3, 1)], [ca.SX(3, 1)]
    for b in range(1, len(robot.links)):
        m, h, t = robot.links[b].inertia[0], sparse(robot.links[b].inertia[1:4]), robot.links[b].inertia[4:]
        tensor = sparse(np.array([[t[0], t[1], t[3]], [t[1], t[2], t[4]], [t[3], t[4], t[5]]]))
        forces.append(m * acceleration[b] + ca.cross(dw[b], h) + ca.cross(w[b], ca.cross(w[b], h)))
        moments.append(tensor @ dw[b] + ca.cross(w[b], tensor @ w[b]) + ca.cross(h, acceleration[b]))
    tau = ca.SX(robot.n, 1)
    for j in range(robot.n - 1, -1, -1):
        rotation, shift, axis = frames[j]
        parent, b = robot.joints[j].parent, j + 1
        origin = ca.cross(sparse(robot.joints[j].mount[:3, :3].T @ robot.joints[j].mount[:3, 3]), forces[b])
        tau[j] = ca.dot(axis, moments[b] + origin)
        force = rotation @ forces[b]
        forces[parent] += force
        moments[parent] += rotation @ moments[b] + ca.cross(shift, force)
    return ca.Function("peer", [q, v, a], [ca.cse(ca.densify(tau))])


def sparse(x: Array) -> ca.SX:
    """Sparse constants without rounding errors of zeros and ones."""
    x = np.where(np.abs(x) < 1e-14, 0.0, x)
    x = np.where(np.abs(np.abs(x) - 1.0) < 1e-14, np.sign(x), x)
    return ca.SX(ca.sparsify(ca.DM(x)))


if __name__ == "__main__":
    main()
