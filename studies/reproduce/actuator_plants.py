"""Legs and an arm with servos, integrated by MuJoCo with its own friction, and logged as their owners would."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw

Array = NDArray[np.float64]

RATE, CONTROL = 200.0, 1000.0
_LEG = """
<body name="{n}_hip" pos="0.2 {y} 0"><joint name="{n}_hip" axis="1 0 0" {j0}/>
  <inertial pos="0 {s} 0" mass="0.7" diaginertia="0.0006 0.0008 0.0005"/>
  <body name="{n}_thigh" pos="0 {w} 0"><joint name="{n}_thigh" axis="0 1 0" {j1}/>
    <inertial pos="-0.004 0 -0.033" mass="1.15" diaginertia="0.0058 0.0055 0.001"/>
    <body name="{n}_calf" pos="0 0 -0.213"><joint name="{n}_calf" axis="0 1 0" {j2}/>
      <inertial pos="0.005 0 -0.12" mass="0.24" diaginertia="0.0015 0.0015 0.00004"/></body></body></body>
"""
# Friction that is close to an ideal one: it stops a joint within a fraction of a millisecond.
STIFF = 'solimpfriction="0.99999 0.99999 0.001 0.5 2" solreffriction="0.0001 1"'


def legs(values: Array) -> str:
    """MJCF of two legs on a fixed trunk; values (6, 3) are armature, damping and friction of every joint."""
    joints = [f'armature="{a}" damping="{d}" frictionloss="{f}" {STIFF if f else ""}' for a, d, f in values]
    text = "".join(
        _LEG.format(n=n, y=0.05 * s, s=0.003 * s, w=0.095 * s, j0=joints[k], j1=joints[k + 1], j2=joints[k + 2])
        for n, s, k in (("L", 1, 0), ("R", -1, 3))
    )
    return f"<mujoco><worldbody>{text}</worldbody></mujoco>"


def truth(seed: int, *, friction: bool = True) -> Array:
    """Armature, damping and friction (6, 3)."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(0.008, 0.05, 6), rng.uniform(0.05, 0.6, 6), friction * rng.uniform(0.05, 0.6, 6)]
    return np.column_stack(parts)


def given_robot(tmp: str, *, friction: str = "viscous+coulomb") -> dynid.Robot:
    """The robot as its file has it: the same guess for every joint."""
    with open(tmp, "w", encoding="utf-8") as file:
        file.write(legs(np.tile([0.01, 0.3, 0.2], (6, 1))))
    return dynid.load_robot(tmp, friction=friction, rotor_inertia=True)


def chirps(seconds: float, seed: int, amplitude: float = 0.35) -> Array:
    """Commanded positions (K, 6): chirps to 4 Hz with a slow sway."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * (0.1 * t + 3.9 * t**2 / (2 * seconds))
    columns = [
        amplitude * rng.uniform(0.7, 1.1) * np.sin(phase * rng.uniform(0.9, 1.1))
        + 0.15 * np.sin(2 * np.pi * rng.uniform(0.2, 0.5) * t)
        for _ in range(6)
    ]
    return np.column_stack(columns) * np.minimum(1.0, t / 0.5)[:, None]


def logged(xml: str, law: ActuatorLaw, command: Array, *, counts: int | None = 4096, ratio: int = 40) -> Recording:
    """Positions and commands at 200 Hz of the robot under the law, which is computed at 1 kHz.

    `ratio` integration steps per control period: MuJoCo's steps are of first order and late by half a step.
    """
    return driven(mujoco.MjModel.from_xml_string(xml), law, command, counts=counts, ratio=ratio)[0]


def driven(
    model: mujoco.MjModel,
    law: ActuatorLaw,
    command: Array,
    *,
    counts: int | None,
    ratio: int,
    more: Callable[[Array], Array] | None = None,
    dry: Callable[[Array], Array] | None = None,
) -> tuple[Recording, Array]:
    """The log of a model under the law, and the torques (K, n) of its motors.

    `more` are further torques by position, `dry` is further dry friction by velocity.
    """
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.timestep, model.opt.tolerance, model.opt.iterations = 1 / CONTROL / ratio, 1e-12, 200
    data = mujoco.MjData(model)
    data.qpos[:] = command[0]
    rows, n = command.shape
    every, step = round(CONTROL / RATE), 0.0 if counts is None else 2 * np.pi / counts
    q, torques = np.zeros_like(command), np.zeros_like(command)
    line, each, friction = np.isfinite(law.stall_torque).any(), np.arange(n), model.dof_frictionloss.copy()
    aimed = np.gradient(command, axis=0) * RATE if law.velocity_target == "command" else np.zeros_like(command)
    behind, old = law.delayed == "torque", [np.zeros(n)] * (1 + round(float(law.delay.max()) * CONTROL))
    for tick in range((rows - 1) * every + 1):
        y = data.qpos + law.bias
        y = np.round(y / step) * step if step else y
        if tick % every == 0:
            q[tick // every] = y
        late = 0.0 if behind else law.delay
        row = np.clip(np.floor((tick / CONTROL - late) * RATE + 1e-9).astype(int), 0, rows - 1)
        error = command[row, each] - y
        error = np.sign(error) * np.maximum(np.abs(error) - law.backlash / 2, 0.0)
        raw = law.gain * (law.kp * error + law.kd * (aimed[row, each] - data.qvel))
        u = np.clip(raw, -law.torque_limit, law.torque_limit)
        if behind:
            old = [*old[1:], u]
            u = old[0]
        if tick % every == 0:
            torques[tick // every] = u
        model.dof_frictionloss[:] = friction + law.load_friction * np.abs(u)
        if dry is not None:
            model.dof_frictionloss[:] += dry(data.qvel)
        if more is not None:
            u = u + more(data.qpos)
        for _ in range(ratio if line else 1):
            if line:
                share = data.qvel / law.no_load_velocity
                data.qfrc_applied[:] = np.clip(u, -law.stall_torque * (1 + share), law.stall_torque * (1 - share))
            else:
                data.qfrc_applied[:] = u
            mujoco.mj_step(model, data, 1 if line else ratio)
    model.dof_frictionloss[:] = friction
    return recording(q, command, law.joints), torques


def recording(q: Array, command: Array, joints: Sequence[str] | None = None) -> Recording:
    """A log of positions and commands."""
    names = joints or [f"{side}_{joint}" for side in "LR" for joint in ("hip", "thigh", "calf")]
    return Recording(tuple(names), (Run(t=np.arange(len(q)) / RATE, q=q, reference=command),))


def servo_arm(seed: int, delay: float) -> tuple[dynid.Robot, Recording, ActuatorLaw, Array]:
    """An arm of six servos whose gains are not those of the law: robot as given, log, law, true values.

    The true values are armature, damping and friction of every joint, the delay, and the factors of the gains.
    """
    rng, given = np.random.default_rng(seed), dynid.load_robot("rv2sq", friction="viscous+coulomb", rotor_inertia=True)
    size = np.array([1.0, 1.0, 0.6, 0.1, 0.08, 0.05])
    values = {"Ia": rng.uniform(0.1, 0.5, 6) * size, "fv": rng.uniform(0.5, 3.0, 6) * size}
    values["fc"] = rng.uniform(0.5, 2.0, 6) * size
    guess = {"Ia": 0.1, "fv": 0.5, "fc": 0.3}
    given = given.with_parameters([guess.get(p.symbol, x) for p, x in zip(given.layout, given.parameters, strict=True)])
    with tempfile.TemporaryDirectory() as folder:
        dynid.export.write(given, Path(folder) / "arm.xml")
        model = mujoco.MjModel.from_xml_path(str(Path(folder) / "arm.xml"))
    model.dof_armature[:], model.dof_damping[:], model.dof_frictionloss[:] = values["Ia"], values["fv"], values["fc"]
    model.dof_solimp[:], model.dof_solref[:] = [0.99999, 0.99999, 0.001, 0.5, 2], [5e-5, 1]
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    kp = np.array([300.0, 300.0, 200.0, 40.0, 30.0, 15.0])
    law = ActuatorLaw(given.coordinates, kp=kp, kd=0.06 * kp, rate=CONTROL)
    gain = rng.uniform(0.85, 1.15, 6)
    t = np.arange(int(8.0 * RATE)) / RATE
    phase = np.outer(0.1 * t + 2.0 * t**2 / 16.0, [1.0, 0.93, 1.1, 1.2, 1.05, 1.3])
    command = (
        np.array([0.0, 0.2, 1.2, 0.3, 0.5, 0.0]) + 0.4 * np.sin(2 * np.pi * phase) * np.minimum(1, t / 0.5)[:, None]
    )
    # Steps of 5 us: with 20 us their own error shifts damping by three of the standard deviations of these encoders.
    log, _ = driven(model, law.changed(gain=gain, delay=delay), command, counts=2**15, ratio=200)
    return given, log, law, np.concatenate([values["Ia"], values["fv"], values["fc"], [delay], gain])


@dataclass(frozen=True, eq=False)
class SoftPlant:
    """A chain of one to three joints with the soft friction of MuJoCo, in steps of 1 to 5 ms, and its log.

    `true` holds armature, damping and friction of every joint, then the delay.
    """

    robot: dynid.Robot
    log: Recording
    law: ActuatorLaw
    true: Array


_MOTIONS, _STEPS = ("chirp", "steps", "multisine"), (1e-3, 2e-3, 5e-3)
_INTEGRATORS = ("EULER", "IMPLICITFAST", "RK4", "IMPLICIT")


def soft_plant(seed: int) -> SoftPlant:
    """A plant whose values, motion, encoders, steps, softness of friction and integrator follow from the seed."""
    rng = np.random.default_rng(7000 + seed)
    n = int(rng.integers(1, 4))
    values = np.column_stack(
        [np.exp(rng.uniform(np.log(0.008), np.log(0.06), n)), rng.uniform(0.05, 0.6, n), rng.uniform(0.05, 0.6, n)]
    )
    kp, ratio = float(rng.choice([20.0, 40.0, 80.0])), rng.uniform(0.4, 1.0)
    counts, late = int(rng.choice([4096, 16384, 65536])), int(rng.integers(0, 4))
    softness = rng.choice([0.01, 0.02, 0.04])
    step, integrator = _STEPS[(seed // 3) % 3], _INTEGRATORS[(seed // 2) % 4]
    model = mujoco.MjModel.from_xml_string(_soft_chain(values, float(softness)))
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    model.opt.timestep, model.opt.tolerance, model.opt.iterations = step, 1e-12, 200
    names = [f"j{k}" for k in range(n)]
    kd = ratio * np.sqrt(kp / model.dof_invweight0)
    told = None if integrator == "RK4" else step  # Runge-Kutta steps are as good as exact
    law = ActuatorLaw(names, kp=kp, kd=np.round(kd, 3), rate=1.0 / step, timestep=told)
    every = max(1, round(1.0 / step / RATE))
    log = _held(model, law, _soft_motion(seed, n, 1.0 / step / every), every, late, counts)
    guess = _soft_chain(np.tile([0.02, 0.3, 0.2], (n, 1)), float(softness))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.xml"
        path.write_text(guess, encoding="utf-8")
        robot = dynid.load_robot(path, friction="viscous+coulomb", rotor_inertia=True)
    return SoftPlant(robot, log, law, np.append(values.T.ravel(), late * step))


def _soft_chain(values: Array, softness: float) -> str:
    """MJCF of a chain; values (n, 3) are armature, damping and friction."""
    text, end = "", ""
    for k, (armature, damping, friction) in enumerate(values):
        text += (
            f'<body name="b{k}" pos="0 0 {-0.2 if k else 0}"><joint name="j{k}" axis="{("0 1 0", "1 0 0")[k % 2]}" '
            f'armature="{armature}" damping="{damping}" frictionloss="{friction}" solreffriction="{softness} 1"/>'
            f'<inertial pos="0.003 0.002 -0.1" mass="{(1.0, 0.6, 0.3)[k]}" diaginertia="0.004 0.004 0.0008"/>'
        )
        end += "</body>"
    return f"<mujoco><worldbody>{text}{end}</worldbody></mujoco>"


def _soft_motion(seed: int, n: int, rate: float, seconds: float = 10.0) -> Array:
    """Commanded positions (K, n): a chirp to 4 Hz, steps, or a sum of six sines."""
    rng, t = np.random.default_rng(900 + seed), np.arange(int(seconds * rate)) / rate
    phase, columns = 2 * np.pi * (0.1 * t + 3.9 * t**2 / (2 * seconds)), []
    for _ in range(n):
        if _MOTIONS[seed % 3] == "chirp":
            y = 0.4 * rng.uniform(0.7, 1.1) * np.sin(phase * rng.uniform(0.9, 1.1))
            y += 0.15 * np.sin(2 * np.pi * rng.uniform(0.2, 0.5) * t)
        elif _MOTIONS[seed % 3] == "steps":
            y = rng.uniform(-0.5, 0.5, int(seconds / 0.3) + 2)[(t / 0.3).astype(int)]
        else:
            waves = rng.uniform([0.2, 0.09, 0.0], [4.0, 0.22, 2 * np.pi], (6, 3))
            y = sum(size * np.sin(2 * np.pi * f * t + start) for f, size, start in waves)
        columns.append(y * np.minimum(1.0, t / 0.5))
    return np.column_stack(columns)


def _held(model: mujoco.MjModel, law: ActuatorLaw, command: Array, every: int, late: int, counts: int) -> Recording:
    """The log of a model whose law is computed in every step, with commands that are `late` steps old."""
    data, q, step = mujoco.MjData(model), np.zeros_like(command), 2 * np.pi / counts
    for tick in range((len(command) - 1) * every + 1):
        y = np.round(data.qpos / step) * step
        if tick % every == 0:
            q[tick // every] = y
        data.qfrc_applied[:] = law.kp * (command[max(tick - late, 0) // every] - y) - law.kd * data.qvel
        mujoco.mj_step(model, data)
    t = np.arange(len(q)) * every * model.opt.timestep
    return Recording(law.joints, (Run(t=t, q=q, reference=command),))
