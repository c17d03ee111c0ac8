"""Robot: what the machine is, frozen. Bodies, joints, drives, gravity and the kind of base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, ModelError
from dynid.robot.drives import DriveTerm, Transmission, carried_value, joint_symbols
from dynid.robot.inertia import INERTIAL_SYMBOLS, move_inertia
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, Parameter, checked, frozen, read_limits

if TYPE_CHECKING:
    import pinocchio as pin

__all__ = ["Robot"]

Array = NDArray[np.float64]
BaseKind = Literal["fixed", "floating", "instrumented"]
BASE_KINDS = ("fixed", "floating", "instrumented")
WRENCH_CHANNELS = ("base.fx", "base.fy", "base.fz", "base.mx", "base.my", "base.mz")
_INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m2",) * 6)


@dataclass(frozen=True, eq=False)
class Robot:
    """A kinematic tree with its drives, its gravity and its base.

    `links[0]` is the base link, `links[i + 1]` hangs on `joints[i]`, parents before children.
    `base` is "fixed" (joint torques only), "floating" (a free-flyer root: q starts with position and
    quaternion x y z w, v with the body-frame twist) or "instrumented" (a fixed base whose reaction
    wrench is measured: six more torque rows and the parameters of the base link).
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    drives: tuple[DriveTerm, ...] = ()
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    base: BaseKind = "fixed"
    transmission: Transmission | None = None
    frames: tuple[Frame, ...] = ()
    merged: tuple[Merge, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", checked(self.gravity, (3,), "gravity"))
        if self.base not in BASE_KINDS:
            raise ModelError(f"base '{self.base}' is unknown: use {', '.join(BASE_KINDS)}")
        if len(self.links) != len(self.joints) + 1:
            raise ModelError(f"robot '{self.name}' needs one link more than joints")
        for what, names in (
            ("joint", [j.name for j in self.joints]),
            ("link", [link.name for link in self.links]),
        ):
            repeated = {n for n in names if names.count(n) > 1}
            if repeated:
                raise ModelError(f"robot '{self.name}' has two {what}s named '{min(repeated)}'")
        for i, joint in enumerate(self.joints):
            if not 0 <= joint.parent <= i:
                raise ModelError(f"joint '{joint.name}' must hang on an earlier link (parents before children)")
            if joint.mimic is not None and joint.mimic.leader not in self.coordinates:
                raise ModelError(f"joint '{joint.name}' mimics '{joint.mimic.leader}', which is no independent joint")
        for term in self.drives:
            if term.direction.shape != (self.n,) or not 0 <= term.owner < self.n:
                raise ModelError(
                    f"drive term '{term.name}' needs an owner among {self.n} joints and a direction over them"
                )
        if self.transmission is not None and self.transmission.coupling.shape[0] != self.n:
            raise ModelError(f"transmission has {self.transmission.coupling.shape[0]} rows for {self.n} joints")
        object.__setattr__(self, "drives", tuple(sorted(self.drives, key=DriveTerm.sort_key)))
        parameters = self.parameter_names
        if len(set(parameters)) != len(parameters):
            repeated = {n for n in parameters if parameters.count(n) > 1}
            raise ModelError(f"two parameters are named '{min(repeated)}'")

    # -- sizes and names -------------------------------------------------------------------------

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the independent joints, in the order of q (after the floating base)."""
        return tuple(j.name for j in self.joints if j.mimic is None)

    @property
    def n(self) -> int:
        """Number of independent joints."""
        return len(self.coordinates)

    @property
    def nq(self) -> int:
        return self.n + (7 if self.base == "floating" else 0)

    @property
    def nv(self) -> int:
        return self.n + (6 if self.base == "floating" else 0)

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Names of the torque rows: the base wrench where there is one, then the joints."""
        return (WRENCH_CHANNELS if self.base != "fixed" else ()) + self.coordinates

    @cached_property
    def limits(self) -> dict[str, Limits]:
        """Limits of the independent joints by name."""
        return {j.name: j.limits for j in self.joints if j.mimic is None}

    def link_index(self, name: str) -> int:
        for i, link in enumerate(self.links):
            if link.name == name:
                return i
        raise ModelError(f"no link named '{name}', the links are {', '.join(x.name for x in self.links)}")

    # -- parameters ------------------------------------------------------------------------------

    @cached_property
    def parameter_links(self) -> tuple[int, ...]:
        """Indices of the links whose inertia belongs to the standard parameters."""
        first = 0 if self.base != "fixed" else 1
        return tuple(i for i in range(first, len(self.links)) if not self.links[i].virtual)

    @cached_property
    def layout(self) -> tuple[Parameter, ...]:
        """The standard vector entry by entry: link block then drive block, base to tip."""
        out: list[Parameter] = []
        number = {name: i + 1 for i, name in enumerate(self.coordinates)}
        motor = {name: i + 1 for i, name in enumerate(self.transmission.motors)} if self.transmission else {}
        for i, link in enumerate(self.links):
            if i in self.parameter_links:
                out += [
                    Parameter(f"{s}_{link.name}", f"{s}_{i}", s, unit, link.name, True)
                    for s, unit in zip(INERTIAL_SYMBOLS, _INERTIAL_UNITS, strict=True)
                ]
            if i == 0 or self.joints[i - 1].mimic is not None:
                continue
            owner = number[self.joints[i - 1].name] - 1
            for term in (t for t in self.drives if t.owner == owner):
                tail = f"m_{motor.get(term.shaft, owner + 1)}" if term.motor else f"_{owner + 1}"
                out.append(Parameter(term.name, term.symbol + tail, term.symbol, term.units, term.shaft, False))
        return tuple(out)

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.layout)

    @cached_property
    def parameter_labels(self) -> tuple[str, ...]:
        """Short names for expressions: Izz_1, Ia_1, fvm_6."""
        return tuple(p.label for p in self.layout)

    @cached_property
    def parameters(self) -> Array:
        """A-priori values of the standard parameters (p,)."""
        value = {t.name: t.value for t in self.drives}
        inertia = {self.links[i].name: self.links[i].inertia for i in self.parameter_links}
        out = [inertia[p.owner][INERTIAL_SYMBOLS.index(p.symbol)] if p.inertial else value[p.name] for p in self.layout]
        return frozen(out)

    def with_parameters(self, parameters: ArrayLike) -> Robot:
        """The same robot with other values of the standard parameters (p,)."""
        pi = checked(parameters, (len(self.layout),), f"parameters of robot '{self.name}'", DataError)
        value = dict(zip(self.parameter_names, pi, strict=True))
        links = list(self.links)
        for i in self.parameter_links:
            inertia = [value[f"{s}_{links[i].name}"] for s in INERTIAL_SYMBOLS]
            links[i] = replace(links[i], inertia=np.array(inertia))
        drives = tuple(replace(t, value=float(value[t.name])) for t in self.drives)
        return replace(self, links=tuple(links), drives=drives)

    # -- variants --------------------------------------------------------------------------------

    def with_base(self, base: BaseKind) -> Robot:
        """The same robot bolted down, flying, or on a measuring base."""
        return replace(self, base=base)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot under another gravity vector (m/s2, base frame): hanging, leaning, in space."""
        return replace(self, gravity=checked(gravity, (3,), "gravity"))

    def with_limits(self, limits: Mapping[str, Mapping[str, Any]]) -> Robot:
        """Override limits joint by joint: {"joint1": {"position": (-1, 1), "velocity": 2, "effort": 50}}."""
        if not isinstance(limits, Mapping):
            raise ModelError(f"limits must map joints to tables, got {limits!r:.60}")
        joints = list(self.joints)
        names = [j.name for j in joints]
        for name, new in limits.items():
            if name not in names:
                raise ModelError(f"limits name no joint '{name}', the joints are {', '.join(names)}")
            joint = joints[names.index(name)]
            joints[names.index(name)] = replace(joint, limits=read_limits(name, new, joint.limits))
        return replace(self, joints=tuple(joints))

    def with_drives(
        self,
        friction: str | Mapping[str, str] | None = None,
        rotor_inertia: bool | Sequence[str] | None = None,
    ) -> Robot:
        """Choose the joint-side friction law and rotor inertias, for all joints or by joint name.

        What is left as None stays as it is; values are carried over where the old law has them.
        Springs, custom and motor-side terms are not touched.
        """
        friction_symbols = {"fv", "fvp", "fvn", "fc", "fcp", "fcn", "off"}
        replaced = (friction_symbols if friction is not None else set()) | (
            {"Ia"} if rotor_inertia is not None else set()
        )
        wanted = joint_symbols(
            self.coordinates,
            friction if friction is not None else "none",
            rotor_inertia if rotor_inertia is not None else False,
        )
        known: list[dict[str, float]] = [{} for _ in self.coordinates]
        kept = []
        for term in self.drives:
            if not term.motor and term.function is None and term.symbol in replaced:
                known[term.owner][term.symbol] = term.value
            else:
                kept.append(term)
        for i, symbols in enumerate(wanted):
            kept += [self.joint_term(i, s, carried_value(known[i], s)) for s in symbols]
        return replace(self, drives=tuple(kept))

    def joint_term(self, joint: int | str, symbol: str, value: float = 0.0, rest: float = 0.0) -> DriveTerm:
        """A drive term on the joint side, for `with_terms`: e.g. a spring, symbol "k" with its rest."""
        i = self._coordinate(joint)
        return DriveTerm(symbol, self.coordinates[i], np.eye(self.n)[i], i, value, rest=rest)

    def motor_term(self, motor: str, symbol: str, value: float = 0.0, cross_only: bool = False) -> DriveTerm:
        """A drive term on the motor side of the transmission, for `with_terms`."""
        if self.transmission is None:
            raise ModelError(f"robot '{self.name}' has no transmission, so no motor '{motor}'")
        if motor not in self.transmission.motors:
            raise ModelError(f"no motor '{motor}', the motors are {', '.join(self.transmission.motors)}")
        k = self.transmission.motors.index(motor)
        direction = self.transmission.coupling[:, k]
        return DriveTerm(symbol, motor, direction, min(k, self.n - 1), value, motor=True, cross_only=cross_only)

    def custom_term(
        self, name: str, joint: int | str, function: Callable[..., Any], value: float = 0.0, unit: str = ""
    ) -> DriveTerm:
        """A user-defined column for `with_terms`: function(q, v, a) -> (N, n), linear in a with a factor of q alone."""
        i = self._coordinate(joint)
        if not callable(function):
            raise ModelError(f"term '{name}' needs a function of q, v, a, got {function!r:.60}")
        q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 4, self.n))

        def column(speed: float, acceleration: float) -> Array:
            given = function(q, speed * v, acceleration * a)
            return checked(given, (4, self.n), f"term '{name}' for N = 4")

        bend = np.diff([column(1.0, s) for s in (-1.0, 0.0, 1.0, 2.0)], n=2, axis=0)
        drift = column(1.0, 1.0) - column(1.0, 0.0) - column(0.0, 1.0) + column(0.0, 0.0)
        if max(np.abs(bend).max(), np.abs(drift).max()) > 1e-9 * (1 + np.abs(column(1.0, 2.0)).max()):
            raise ModelError(f"term '{name}' must be affine in the acceleration, with a factor that depends on q alone")
        direction = np.zeros(self.n)
        return DriveTerm(name, self.coordinates[i], direction, i, value, function=function, unit=unit)

    def with_terms(self, *terms: DriveTerm) -> Robot:
        """Add drive terms made by `joint_term`, `motor_term` or `custom_term`."""
        return replace(self, drives=self.drives + terms)

    def with_smooth_coulomb(self, slope: float) -> Robot:
        """Coulomb friction as tanh(slope * speed), slope in s/rad or s/m; 0 gives the sharp step back."""
        drives = tuple(replace(t, slope=slope) if t.is_coulomb else t for t in self.drives)
        return replace(self, drives=drives)

    def with_transmission(self, transmission: Transmission) -> Robot:
        """Couple motors and joints; motor-side terms are then added with `motor_term`."""
        if any(t.motor for t in self.drives):
            raise ModelError(f"robot '{self.name}' already has motor-side terms")
        return replace(self, transmission=transmission)

    def without(self, *patterns: str) -> Robot:
        """Drop drive parameters by name or label, wildcards allowed: robot.without("off_*", "Iam_6")."""
        label = {p.name: p.label for p in self.layout if not p.inertial}
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) or fnmatchcase(x, pattern) for name, x in label.items()):
                raise ModelError(f"no drive parameter matches '{pattern}'")
        keep = [
            t for t in self.drives if not any(fnmatchcase(t.name, p) or fnmatchcase(label[t.name], p) for p in patterns)
        ]
        return replace(self, drives=tuple(keep))

    def with_payload(self, link: str, inertia: ArrayLike, placement: ArrayLike | None = None) -> Robot:
        """Fix a body (ten numbers in its own frame) to a link, at `placement` (4x4) in the link frame."""
        i = self.link_index(link)
        added = move_inertia(inertia, np.eye(4) if placement is None else placement)
        links = list(self.links)
        links[i] = replace(links[i], inertia=links[i].inertia + added, virtual=False)
        return replace(self, links=tuple(links))

    def locked(self, values: Mapping[str, float]) -> Robot:
        """The robot with these joints held at values (rad or m), their links merged into what carries them."""
        from dynid.robot.lock import lock_joints

        return lock_joints(self, values)

    # -- other representations -------------------------------------------------------------------

    @staticmethod
    def from_pinocchio(model: pin.Model, name: str | None = None) -> Robot:
        """Robot of a Pinocchio model; a free-flyer root makes it floating. No drive terms."""
        from dynid.robot.pinocchio import robot_from_model

        return robot_from_model(model, name)

    def to_pinocchio(self, independent: bool = False) -> pin.Model:
        """Pinocchio model with one revolute or prismatic joint a joint of ours, branch by branch as Pinocchio needs it.

        Mimic joints are refused unless `independent` asks for them as joints of their own.
        Rotor inertia on a joint becomes `armature`; coupled drives have no place in that model.
        """
        from dynid.robot.pinocchio import model_of_robot

        return model_of_robot(self, independent)

    @staticmethod
    def from_dh(
        rows: Sequence[Mapping[str, Any] | Sequence[float]],
        convention: Literal["standard", "modified"] = "standard",
        name: str = "robot",
        **options: Any,
    ) -> Robot:
        """Serial robot from Denavit-Hartenberg rows, (alpha, a, d, theta) or dictionaries.

        The keys are those of the TOML robot file; see `docs/robot-files.md`.
        """
        from dynid.robot.dh import robot_from_rows

        return robot_from_rows(rows, convention, name, **options)

    def _coordinate(self, joint: int | str) -> int:
        if isinstance(joint, str):
            if joint not in self.coordinates:
                raise ModelError(f"no joint named '{joint}', the joints are {', '.join(self.coordinates)}")
            return self.coordinates.index(joint)
        if joint not in range(self.n):
            raise ModelError(f"joint {joint} is out of range, robot '{self.name}' has {self.n}")
        return int(joint)

    def __repr__(self) -> str:
        return f"Robot('{self.name}', {self.n} joints, {len(self.layout)} parameters, {self.base} base)"
