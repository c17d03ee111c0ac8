"""Springs, dampers, friction, armature and actuators of a compiled MJCF model: drive terms, or a sentence for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from dynid.robot.drives import DriveTerm, FileDrives, Transmission
from dynid.robot.model import Robot
from dynid.robot.notes import listed, quoted
from dynid.robot.shafts import shaft_direction, shaft_term

__all__ = ["drive_values", "driven_joints", "fixed_tendon", "with_passive_elements"]


# Fixed tendons of a compiled MJCF model: lengths that are linear in the positions of joints.


def fixed_tendon(model: Any, tendon: int, names: Sequence[str]) -> dict[str, float] | None:
    """Length of a fixed tendon per position of each joint, by name; None for a tendon that runs through space."""
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    out: dict[str, float] = {}
    for k in range(start, start + count):
        if model.wrap_type[k] != int(mujoco.mjtWrap.mjWRAP_JOINT):
            return None
        name = names[model.wrap_objid[k]]
        out[name] = out.get(name, 0.0) + float(model.wrap_prm[k])
    return out


Array = NDArray[np.float64]

_ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_ON_TENDON = int(mujoco.mjtTrn.mjTRN_TENDON)


def drive_values(model: Any, names: Sequence[str]) -> FileDrives:
    """Armature, damping and friction of every hinge and slide, those of the actuators on it included."""
    out: FileDrives = {}
    for j, name in enumerate(names):
        if name:
            dof = int(model.jnt_dofadr[j])
            values = (model.dof_armature[dof], model.dof_damping[dof], model.dof_frictionloss[dof])
            out[name] = {symbol: float(x) for symbol, x in zip(("Ia", "fv", "fc"), values, strict=True)}
    for i in range(len(model.actuator_trntype)):
        if model.actuator_trntype[i] in _ON_JOINT and names[model.actuator_trnid[i, 0]]:
            for symbol, value in _of_actuator(model, i).items():
                out[names[model.actuator_trnid[i, 0]]][symbol] += value
    return out


def servo_gains(model: Any, names: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """kp, kd and the largest torque of each joint that one position actuator moves without a gear."""
    out: dict[str, tuple[float, float, float]] = {}
    for i in range(len(model.actuator_trntype)):
        kp, (constant, position, velocity) = float(model.actuator_gainprm[i, 0]), model.actuator_biasprm[i, :3]
        plain = model.actuator_trntype[i] in _ON_JOINT and float(model.actuator_gear[i, 0]) == 1.0
        if not plain or kp <= 0 or constant or position != -kp or velocity > 0:
            continue
        limits = model.actuator_forcerange[i] if model.actuator_forcelimited[i] else (-np.inf, np.inf)
        if -limits[0] == limits[1]:
            out[names[model.actuator_trnid[i, 0]]] = (kp, -float(velocity), float(limits[1]))
    return out


def driven_joints(model: Any, names: Sequence[str]) -> set[str]:
    """Names of the joints that an actuator moves, alone or through a fixed tendon."""
    out: set[str] = set()
    for kind, target in zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True):
        if kind in _ON_JOINT:
            out.add(names[target])
        elif kind == _ON_TENDON:
            out |= set(fixed_tendon(model, int(target), names) or ())
    return out


def _of_actuator(model: Any, i: int) -> dict[str, float]:
    """Rotor inertia and damping of an actuator on the joint or tendon that it moves; zero before MuJoCo 3.5."""
    gear = float(model.actuator_gear[i, 0]) ** 2
    armature, damping = getattr(model, "actuator_armature", None), getattr(model, "actuator_damping", None)
    return {
        "Ia": 0.0 if armature is None else gear * float(armature[i]),
        "fv": 0.0 if damping is None else gear * float(damping[i]),
    }


def with_passive_elements(robot: Robot, model: Any, names: Sequence[str]) -> Robot:
    """The robot with springs as drive terms and its transmission, and with a sentence on all that has no such term."""
    springs = [*_joint_springs(robot, model, names), *_tendon_terms(robot, model, names)]
    motors = _transmission(robot, model, names)
    robot = replace(robot, drives=(*robot.drives, *springs), transmission=motors)
    notes = [*_tendon_notes(model, names), *_polynomials(model, names), *_actuator_notes(model), *_world_notes(model)]
    return replace(robot, notes=(*robot.notes, *notes))


def _joint_springs(robot: Robot, model: Any, names: Sequence[str]) -> list[DriveTerm]:
    out = []
    for j, name in enumerate(names):
        if name and model.jnt_stiffness[j]:
            rest = float(model.qpos_spring[model.jnt_qposadr[j]])
            out.append(shaft_term(robot, "k", name, {name: 1.0}, float(model.jnt_stiffness[j]), rest))
    return out


def _tendon_values(model: Any, t: int) -> dict[str, float]:
    armature = getattr(model, "tendon_armature", None)
    out = {
        "k": float(model.tendon_stiffness[t]),
        "Ia": 0.0 if armature is None else float(armature[t]),
        "fv": float(model.tendon_damping[t]),
        "fc": float(model.tendon_frictionloss[t]),
    }
    for i in range(len(model.actuator_trntype)):
        if model.actuator_trntype[i] == _ON_TENDON and model.actuator_trnid[i, 0] == t:
            for symbol, value in _of_actuator(model, i).items():
                out[symbol] += value
    return out


def _spring_is_linear(model: Any, t: int) -> bool:
    lower, upper = model.tendon_lengthspring[t]
    return bool(lower == upper)


def _tendon_terms(robot: Robot, model: Any, names: Sequence[str]) -> list[DriveTerm]:
    """Springs, dampers, friction and armature of fixed tendons."""
    out = []
    for t in range(model.ntendon):
        weights = fixed_tendon(model, t, names)
        if not weights or "" in weights or not np.any(shaft_direction(robot, weights)[0]):
            continue
        for symbol, value in _tendon_values(model, t).items():
            if value and (symbol != "k" or _spring_is_linear(model, t)):
                rest = float(model.tendon_lengthspring[t, 0]) if symbol == "k" else 0.0
                out.append(shaft_term(robot, symbol, model.tendon(t).name or f"tendon{t}", weights, value, rest))
    return out


def _tendon_notes(model: Any, names: Sequence[str]) -> list[str]:
    """Sentences on springs, dampers, friction and armature of tendons that are not linear in the joints."""
    words = {"k": "spring", "Ia": "armature", "fv": "damping", "fc": "friction"}
    out = []
    for t in range(model.ntendon):
        has = [symbol for symbol, value in _tendon_values(model, t).items() if value]
        name = model.tendon(t).name or f"tendon{t}"
        if has and fixed_tendon(model, t, names) is None:
            out.append(f"tendon '{name}' runs through space: its {listed([words[s] for s in has])} is not modeled")
        elif "k" in has and not _spring_is_linear(model, t):
            out.append(f"the spring of tendon '{name}' has a slack range and is not modeled")
    return out


def _polynomials(model: Any, names: Sequence[str]) -> list[str]:
    """Sentences on the higher coefficients of stiffness and damping that MuJoCo 4 has."""
    out = []
    for kind, field in (("stiffness", "jnt_stiffnesspoly"), ("damping", "dof_dampingpoly")):
        values = getattr(model, field, None)
        if values is not None:
            index = range(model.njnt) if field.startswith("jnt") else model.jnt_dofadr
            found = [n or f"joint {j}" for j, (n, i) in enumerate(zip(names, index, strict=True)) if np.any(values[i])]
            if found:
                out.append(f"the polynomial {kind} of {quoted('joint', found)} is read up to its linear term")
    for kind in ("stiffness", "damping"):
        values = getattr(model, f"tendon_{kind}poly", None)
        if values is not None and np.any(values):
            found = [model.tendon(t).name for t in range(model.ntendon) if np.any(values[t])]
            out.append(f"the polynomial {kind} of {quoted('tendon', found)} is read up to its linear term")
    values = getattr(model, "actuator_dampingpoly", None)
    if values is not None and np.any(values):
        found = [model.actuator(i).name for i in range(len(model.actuator_trntype)) if np.any(values[i])]
        out.append(f"the polynomial damping of {quoted('actuator', found)} is read up to its linear term")
    return out


def _actuator_notes(model: Any) -> list[str]:
    """Sentences on actuators that are more than a torque on a joint or fixed tendon."""
    servos, elsewhere = [], []
    for i in range(len(model.actuator_trntype)):
        name = model.actuator(i).name or f"actuator{i}"
        if np.any(model.actuator_biasprm[i]):
            servos.append(name)
        kind = model.actuator_trntype[i]
        if kind not in (*_ON_JOINT, _ON_TENDON):
            elsewhere.append(name)
    out = []
    if servos:
        out.append(
            f"{quoted('actuator', servos)} have feedback of their own (bias), which is no part of the robot here: a "
            "torque is what the actuator delivers"
        )
    if elsewhere:
        out.append(f"{quoted('actuator', elsewhere)} act on sites, bodies or cranks, not on joints, and were left out")
    return out


def _world_notes(model: Any) -> list[str]:
    """Sentences on forces that act on bodies: compensation of gravity and the medium."""
    out = []
    held = [model.body(b).name for b in range(model.nbody) if model.body_gravcomp[b]]
    if held:
        out.append(
            f"the gravity compensation of {quoted('body', held).replace('bodys', 'bodies')} is not modeled: torques "
            "carry the full weight"
        )
    if model.opt.density or model.opt.viscosity:
        out.append(
            f"the medium (density {model.opt.density:g} kg/m3, viscosity {model.opt.viscosity:g} Pa s) is not modeled"
        )
    return out


def _transmission(robot: Robot, model: Any, names: Sequence[str]) -> Transmission | None:
    """The coupling of motors on joints and fixed tendons; None where every motor moves one joint."""
    motors, columns, ratios = [], [], []
    coupled = False
    for i in range(len(model.actuator_trntype)):
        kind, target = model.actuator_trntype[i], int(model.actuator_trnid[i, 0])
        if kind in _ON_JOINT:
            weights: dict[str, float] | None = {names[target]: 1.0}
        else:
            weights = fixed_tendon(model, target, names) if kind == _ON_TENDON else None
        gear = float(model.actuator_gear[i, 0])
        if not weights or "" in weights or not gear:
            return None
        direction = shaft_direction(robot, weights)[0]
        coupled = coupled or bool(np.count_nonzero(direction) > 1)
        motors.append(model.actuator(i).name or f"actuator{i}")
        columns.append(direction)
        ratios.append(gear)
    if not coupled or len(set(motors)) != len(motors):
        return None
    return Transmission(tuple(motors), np.array(columns).T, np.array(ratios))
