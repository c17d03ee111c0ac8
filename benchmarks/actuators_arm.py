"""The test arm of mujoco.sysid: open loop, torques given, positions measured, six seconds.

Five joints start upright and fall under the sinusoidal torques of mujoco.sysid's own test, which is three times as
long here. Joint limits are switched off. The arm is integrated twice: as its file says (first order, 2 ms), which
is how mujoco.sysid simulates too, and to high accuracy (Runge-Kutta, 0.25 ms), as a real arm moves.

Unknown are the armatures, as in that test, or armature, damping and all bodies. mujoco.sysid knows the exact initial
state; we do not use it. The models are compared by their torques on another motion, as a share of the true torques.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
from mujoco import sysid
from mujoco.sysid.tests.test_integration import ARM_XML
from numpy.typing import NDArray

import dynid
from dynid.actuators import identify_actuators
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw

Array = NDArray[np.float64]

RATE, SECONDS = 500.0, 6.0
SINES = ((5.0, 0.5, 0.0), (4.0, 0.7, 0.5), (3.0, 0.4, 1.0), (2.0, 0.9, 1.5), (1.0, 0.6, 2.0))
NOISE = (0.0, 1e-4)  # rad
# Start: armature as in the test, damping and bodies off.
ARMATURE, DAMPING, BODIES = 0.01, 0.3, 1.3
UNKNOWN = {"armature": ("armature",), "all": ("armature", "damping", "bodies")}
RK4, FILE = mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def arm(integrator: int) -> mujoco.MjSpec:
    spec = mujoco.MjSpec.from_string(ARM_XML)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    spec.option.integrator = integrator
    return spec


def simulated(integrator: int, steps: int) -> tuple[Array, Array]:
    """Positions and torques at 500 Hz; the torque is held over each row, which has this many steps."""
    model = arm(integrator).compile()
    model.opt.timestep = 1 / (RATE * steps)
    data = mujoco.MjData(model)
    t = np.arange(round(SECONDS * RATE)) / RATE
    torque = np.column_stack([a * np.sin(2 * np.pi * f * t + p) for a, f, p in SINES])
    q = np.zeros_like(torque)
    for k, u in enumerate(torque):
        q[k], data.ctrl[:] = data.qpos, u
        mujoco.mj_step(model, data, steps)
    return q, torque


def robot_of(spec: mujoco.MjSpec) -> dynid.Robot:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "arm.xml"
        spec.compile()
        file.write_text(spec.to_xml())
        return dynid.load_robot(file, friction="viscous", rotor_inertia=True)


def torque_error(found: dynid.Robot, true: dynid.Robot) -> float:
    """Percentage of the torques on another motion."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 10.0, 0.01)[:, None]
    size, w, phase = rng.uniform([[[0.1]], [[0.5]], [[0.0]]], [[[0.4]], [[4.0]], [[6.3]]], (3, 6, 5))
    q, v, a = np.zeros((3, len(t), 5))
    for s, f, p in zip(size, w, phase, strict=True):
        q, v, a = q + s * np.sin(f * t + p), v + s * f * np.cos(f * t + p), a - s * f**2 * np.sin(f * t + p)
    expected = dynid.inverse_dynamics(true, q, v, a)
    return float(100 * np.linalg.norm(dynid.inverse_dynamics(found, q, v, a) - expected) / np.linalg.norm(expected))


def start_of(spec: mujoco.MjSpec, unknown: str) -> mujoco.MjSpec:
    """The arm with wrong values of what is unknown."""
    for joint in spec.joints:
        joint.armature = ARMATURE
        if unknown == "all":
            joint.damping[0] = DAMPING
    for body in spec.bodies[1:] if unknown == "all" else ():
        body.mass, body.inertia = BODIES * body.mass, BODIES * np.array(body.inertia)
    return spec


def ours(q: Array, torque: Array, unknown: str) -> dynid.Robot:
    robot = robot_of(start_of(arm(FILE), unknown))
    recording = Recording(robot.coordinates, (Run(t=np.arange(len(q)) / RATE, q=q, torque=torque),))
    return identify_actuators(robot, recording, ActuatorLaw(robot.coordinates), unknown=UNKNOWN[unknown]).robot


def of_joint(name: str, quantity: str) -> Callable[[mujoco.MjSpec, sysid.Parameter], None]:
    def change(s: mujoco.MjSpec, p: sysid.Parameter) -> None:
        if quantity == "damping":
            s.joint(name).damping[0] = p.value[0]  # a polynomial
        else:
            s.joint(name).armature = p.value[0]

    return change


def of_body(name: str) -> Callable[[mujoco.MjSpec, sysid.Parameter], None]:
    """Bodies by log-Cholesky parameters; the package's own modifier leaves a zero inertia, which does not compile."""

    def change(s: mujoco.MjSpec, p: sysid.Parameter) -> None:
        pi, body = sysid.model_modifier.pi_from_theta(p.value), s.body(name)
        x, y, z = center = pi[1:4] / pi[0]
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        moments, axes = np.linalg.eigh(pi[4:].reshape(3, 3) + pi[0] * cross @ cross)
        axes *= np.sign(np.linalg.det(axes))
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, axes.ravel())
        body.mass, body.ipos, body.inertia, body.iquat = pi[0], center, moments, quat

    return change


def mujoco_sysid(q: Array, torque: Array, unknown: str, integrator: int) -> dynid.Robot:
    spec = start_of(arm(integrator), unknown)
    model = spec.compile()
    params = sysid.ParameterDict()

    for joint in spec.joints:
        change = of_joint(joint.name, "armature")
        params.add(sysid.Parameter(f"{joint.name} armature", ARMATURE, 0.001, 1.0, modifier=change))
        if unknown == "all":
            change = of_joint(joint.name, "damping")
            params.add(sysid.Parameter(f"{joint.name} damping", DAMPING, 0.0, 3.0, modifier=change))
    for body in spec.bodies[1:] if unknown == "all" else ():
        inertia = sysid.InertiaType.Pseudo
        params.add(sysid.body_inertia_param(spec, model, body.name, inertia, modifier=of_body(body.name)))

    def compare(p, predicted, measured, model, every, state):  # type: ignore[no-untyped-def]
        simulated = sysid.TimeSeries(predicted.times, state[:, 1:6], names)  # sensors are a step late
        logged = sysid.TimeSeries(predicted.times, measured.data[1:, :5], names)
        return (logged.data - simulated.data) / max(NOISE), simulated, logged

    t = np.arange(len(q)) / RATE
    measured = sysid.TimeSeries.from_names(t, np.hstack([q, np.zeros_like(q)]), model)
    names = {k: x for k, x in measured.signal_mapping.items() if k.endswith("_pos")}
    start = sysid.create_initial_state(model, np.zeros(5), np.zeros(5), np.zeros(0))
    sequences = sysid.ModelSequences("arm", spec, "run", start, sysid.TimeSeries(t, torque), measured)
    residual = sysid.build_residual_fn(models_sequences=[sequences], modify_residual=compare, n_threads=2)
    with contextlib.redirect_stdout(io.StringIO()):
        found, _ = sysid.optimize(params, residual, optimizer="mujoco", verbose=False, x_scale="jac", max_iters=200)
    return robot_of(sysid.apply_param_modifiers_spec(found, spec))


def run() -> None:
    os.environ["DYNID_THREADS"] = "2"
    true = robot_of(arm(FILE))
    warm = simulated(FILE, 1)
    for unknown in UNKNOWN:
        ours(*warm, unknown)  # compiled once
    print(f"{'motion':12}{'unknown':10}{'noise, rad':>10}  {'method':24}{'torque error, %':>16}{'s':>9}{'CPU s':>9}")
    for motion, integrator, steps in (("exact", RK4, 8), ("2 ms steps", FILE, 1)):
        clean, torque = simulated(integrator, steps)
        for unknown in UNKNOWN:
            for noise in NOISE:
                q = clean + noise * np.random.default_rng(1).normal(size=clean.shape)
                methods = {"dynid": None, "mujoco.sysid": FILE, "mujoco.sysid, Runge-Kutta": RK4}
                if integrator == FILE:
                    del methods["mujoco.sysid, Runge-Kutta"]
                for name, steps_of in methods.items():
                    wall, cpu = time.perf_counter(), time.process_time()
                    given = (q, torque, unknown)
                    found = ours(*given) if steps_of is None else mujoco_sysid(*given, steps_of)
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                    row = f"{motion:12}{unknown:10}{noise:10g}  {name:26}{torque_error(found, true):14.5f}"
                    print(f"{row}{wall:9.2f}{cpu:9.2f}", flush=True)
