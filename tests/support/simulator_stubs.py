"""Stubs of the classes of simulators that are not installed: the names and types that their configurations have.

From the sources of Isaac Lab 2.3, mjlab 1.6, Genesis 1.4 and Drake 1.40; an unknown name is a TypeError, as there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

PerJoint = dict[str, float] | float | None


# -- Isaac Lab ---------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class ActuatorBaseCfg:
    joint_names_expr: list[str]
    stiffness: PerJoint
    damping: PerJoint
    effort_limit: PerJoint = None
    velocity_limit: PerJoint = None
    effort_limit_sim: PerJoint = None
    velocity_limit_sim: PerJoint = None
    armature: PerJoint = None
    friction: PerJoint = None
    dynamic_friction: PerJoint = None
    viscous_friction: PerJoint = None


class ImplicitActuatorCfg(ActuatorBaseCfg):
    pass


class IdealPDActuatorCfg(ActuatorBaseCfg):
    pass


@dataclass(kw_only=True)
class DCMotorCfg(IdealPDActuatorCfg):
    saturation_effort: float

    def __post_init__(self) -> None:
        assert isinstance(self.saturation_effort, float)
        assert self.effort_limit is not None and self.velocity_limit is not None


@dataclass(kw_only=True)
class DelayedPDActuatorCfg(IdealPDActuatorCfg):
    min_delay: int = 0
    max_delay: int = 0

    def __post_init__(self) -> None:
        assert isinstance(self.min_delay, int) and isinstance(self.max_delay, int)


# -- mjlab -------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _MjlabActuatorCfg:
    target_names_expr: tuple[str, ...]
    stiffness: float
    damping: float
    armature: float | None = None
    frictionloss: float | None = None
    viscous_damping: float | None = None
    delay_min_lag: int = 0
    delay_max_lag: int = 0

    def __post_init__(self) -> None:
        assert isinstance(self.target_names_expr, tuple)
        for value in (self.stiffness, self.damping, self.armature, self.frictionloss, self.viscous_damping):
            assert value is None or value >= 0
        assert 0 <= self.delay_min_lag <= self.delay_max_lag


@dataclass(kw_only=True)
class BuiltinPositionActuatorCfg(_MjlabActuatorCfg):
    effort_limit: float | None = None


@dataclass(kw_only=True)
class IdealPdActuatorCfg(_MjlabActuatorCfg):
    effort_limit: float = float("inf")


@dataclass(kw_only=True)
class DcMotorActuatorCfg(IdealPdActuatorCfg):
    saturation_effort: float
    velocity_limit: float


@dataclass(kw_only=True)
class EntityArticulationInfoCfg:
    actuators: tuple[_MjlabActuatorCfg, ...] = ()
    soft_joint_pos_limit_factor: float = 1.0


# -- Drake -------------------------------------------------------------------------------------------


@dataclass
class PdControllerGains:
    p: float = 0.0
    d: float = 0.0


@dataclass
class DrakeActuator:
    of: DrakeJoint
    effort_limit: float = float("inf")
    values: dict[str, Any] = field(default_factory=dict)

    def joint(self) -> DrakeJoint:
        return self.of

    def set_effort_limit(self, effort_limit: float) -> None:
        self.effort_limit = effort_limit

    def set_default_rotor_inertia(self, rotor_inertia: float) -> None:
        self.values["rotor_inertia"] = rotor_inertia

    def set_default_gear_ratio(self, gear_ratio: float) -> None:
        self.values["gear_ratio"] = gear_ratio

    def set_controller_gains(self, gains: PdControllerGains) -> None:
        self.values["gains"] = gains


@dataclass
class DrakeJoint:
    called: str
    damping: float = 0.0

    def name(self) -> str:
        return self.called

    def set_default_damping(self, damping: float) -> None:
        self.damping = damping


class DrakePlant:
    """A plant with joints of these names; the first of them has an actuator already."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.joints = {name: DrakeJoint(name) for name in names}
        self.actuators = [DrakeActuator(self.joints[names[0]])]

    def GetJointActuatorIndices(self, model_instance: int) -> list[int]:
        return list(range(len(self.actuators)))

    def get_joint_actuator(self, actuator_index: int) -> DrakeActuator:
        return self.actuators[actuator_index]

    def GetJointByName(self, name: str, model_instance: int | None = None) -> DrakeJoint:
        return self.joints[name]

    def AddJointActuator(self, name: str, joint: DrakeJoint, effort_limit: float = float("inf")) -> DrakeActuator:
        assert effort_limit > 0
        self.actuators.append(DrakeActuator(joint, effort_limit))
        return self.actuators[-1]


# -- Genesis -----------------------------------------------------------------------------------------


class GenesisEntity:
    """An entity with a free joint of six dofs before its joints; values that were set, by dof."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.index = {name: 6 + i for i, name in enumerate(names)}
        self.values: dict[str, dict[int, float]] = {}

    def get_joint(self, name: str | None = None, uid: str | None = None) -> SimpleNamespace:
        assert name is not None
        return SimpleNamespace(dofs_idx_local=[self.index[name]])

    def _set(self, what: str, values: list[float], dofs: list[int]) -> None:
        self.values[what] = dict(zip(dofs, values, strict=True))

    def set_dofs_kp(self, kp: list[float], dofs_idx_local: list[int]) -> None:
        self._set("kp", kp, dofs_idx_local)

    def set_dofs_kv(self, kv: list[float], dofs_idx_local: list[int]) -> None:
        self._set("kv", kv, dofs_idx_local)

    def set_dofs_force_range(self, lower: list[float], upper: list[float], dofs_idx_local: list[int]) -> None:
        self._set("lower", lower, dofs_idx_local)
        self._set("upper", upper, dofs_idx_local)

    def set_dofs_armature(self, armature: list[float], dofs_idx_local: list[int]) -> None:
        self._set("armature", armature, dofs_idx_local)

    def set_dofs_damping(self, damping: list[float], dofs_idx_local: list[int]) -> None:
        self._set("damping", damping, dofs_idx_local)

    def set_dofs_frictionloss(self, frictionloss: list[float], dofs_idx_local: list[int]) -> None:
        self._set("frictionloss", frictionloss, dofs_idx_local)


# -- running a file ----------------------------------------------------------------------------------

_MODULES = {
    "isaaclab.actuators": (ImplicitActuatorCfg, IdealPDActuatorCfg, DCMotorCfg, DelayedPDActuatorCfg),
    "mjlab.actuator": (BuiltinPositionActuatorCfg, IdealPdActuatorCfg, DcMotorActuatorCfg),
    "mjlab.entity": (EntityArticulationInfoCfg,),
    "pydrake.multibody.tree": (PdControllerGains,),
}


@contextmanager
def _stubs() -> Iterator[None]:
    before = dict(sys.modules)
    for name, classes in _MODULES.items():
        for depth in range(name.count(".") + 1):
            part = name.rsplit(".", depth)[0]
            sys.modules.setdefault(part, ModuleType(part))
        for one in classes:
            setattr(sys.modules[name], one.__name__, one)
    try:
        yield
    finally:
        for name in set(sys.modules) - set(before):
            if name.split(".")[0] in {m.split(".")[0] for m in _MODULES}:
                del sys.modules[name]


def executed(text: str) -> dict[str, Any]:
    """Names that a Python file for a simulator defines."""
    names: dict[str, Any] = {}
    with _stubs():
        exec(compile(text, "actuators.py", "exec"), names)
    return names
