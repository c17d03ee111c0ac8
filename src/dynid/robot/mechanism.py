"""The plain data of a robot: an immutable kinematic tree with links, joints, drives, gravity and the type of base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, ModelError, named
from dynid.patterns import matching_names
from dynid.robot.constraints import Constraint
from dynid.robot.drives import FRICTION_SYMBOLS, ROTATING_UNITS, DriveTerm, Transmission, carried_value, joint_symbols
from dynid.robot.inertia import INERTIAL_SYMBOLS, move_inertia
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, Parameter, check_names, checked, frozen, read_limits

__all__ = ["BASE_KINDS", "WRENCH_CHANNELS", "BaseKind", "Mechanism"]

Array = NDArray[np.float64]
BaseKind = Literal["fixed", "floating", "instrumented"]
BASE_KINDS = ("fixed", "floating", "instrumented")
WRENCH_CHANNELS = ("base.fx", "base.fy", "base.fz", "base.mx", "base.my", "base.mz")
_INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m2",) * 6)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The plain data of a robot with its sizes, names and parameters, and the variants that need nothing else.

    `Robot` describes the attributes, and adds what is built on other modules. Functions that `Robot` itself calls take
    a `Mechanism` and give one of the class that they got.
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
    loops: tuple[Constraint, ...] = ()
    passive: tuple[str, ...] = ()
    assembled: Array | None = None
    postures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", checked(self.gravity, (3,), "gravity"))
        if self.base not in BASE_KINDS:
            raise ModelError(
                f"{named('base')} '{self.base}' is unknown: use {', '.join(BASE_KINDS)}", code="unknown_name"
            )
        check_names("robot", [self.name])
        check_names("frame", [frame.name for frame in self.frames])
        check_names("drive term", [term.name for term in self.drives])
        if len(self.links) != len(self.joints) + 1:
            raise ModelError(f"robot '{self.name}' must have one link more than it has joints")
        for what, names in (
            ("joint", [j.name for j in self.joints]),
            ("link", [link.name for link in self.links]),
        ):
            check_names(what, names)
            repeated = {n for n, count in Counter(names).items() if count > 1}
            if repeated:
                raise ModelError(f"robot '{self.name}' has two {what}s named '{min(repeated)}'", code="duplicate")
        for i, joint in enumerate(self.joints):
            if not 0 <= joint.parent <= i:
                raise ModelError(
                    f"joint '{joint.name}' must have an earlier link as its parent (parents before children)"
                )
            if joint.mimic is not None and joint.mimic.leader not in self.tree_coordinates:
                raise ModelError(
                    f"joint '{joint.name}' mimics '{joint.mimic.leader}', which is not an independent joint"
                )
        moving = len(self.tree_coordinates)
        if set(self.passive) - set(self.tree_coordinates) or bool(self.passive) != bool(self.loops):
            raise ModelError(f"robot '{self.name}': make robots with closed loops by with_loops", code="not_applicable")
        if self.loops:
            object.__setattr__(self, "assembled", checked(self.assembled, (moving,), "assembled posture"))  # type: ignore[arg-type]
        for term in self.drives:
            if term.direction.shape != (moving,) or not 0 <= term.owner < moving:
                raise ModelError(
                    f"drive term '{term.name}' needs an owner among {moving} joints and a direction over all of them",
                    code="invalid_value",
                )
        if self.transmission is not None and self.transmission.coupling.shape[0] != self.n:
            raise ModelError(
                f"transmission has {self.transmission.coupling.shape[0]} rows for {self.n} joints",
                "transmission",
                code="mismatch",
            )
        slides = np.array([j.kind == "prismatic" for j in self.joints if j.mimic is None], dtype=bool)
        drives = sorted((_on_shaft(t, slides) for t in self.drives), key=DriveTerm.sort_key)
        object.__setattr__(self, "drives", tuple(drives))
        parameters = self.parameter_names
        if len(set(parameters)) != len(parameters):
            repeated = {n for n, count in Counter(parameters).items() if count > 1}
            raise ModelError(f"two parameters are named '{min(repeated)}'", code="duplicate")

    # -- sizes and names -------------------------------------------------------------------------

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the independent joints, in the order of q (after the floating base)."""
        return tuple(name for name in self.tree_coordinates if name not in self.passive)

    @cached_property
    def tree_coordinates(self) -> tuple[str, ...]:
        """Names of the independent and the passive joints, in the order of the directions of drive terms."""
        return tuple(j.name for j in self.joints if j.mimic is None)

    @cached_property
    def tree(self) -> Self:
        """The robot without its loops: passive joints are independent joints. The robot itself if it has no loops."""
        if not self.loops:
            return self
        transmission = self.transmission
        if transmission is not None:
            coupling = np.zeros((len(self.tree_coordinates), len(transmission.motors)))
            coupling[[name not in self.passive for name in self.tree_coordinates]] = transmission.coupling
            transmission = replace(transmission, coupling=coupling)
        return replace(self, loops=(), passive=(), assembled=None, transmission=transmission)

    @property
    def n(self) -> int:
        """Number of independent joints."""
        return len(self.coordinates)

    @property
    def nq(self) -> int:
        """Size of the configuration q: the independent joints, and seven more for a floating base."""
        return self.n + (7 if self.base == "floating" else 0)

    @property
    def nv(self) -> int:
        """Size of the velocity v: the independent joints, and six more for a floating base."""
        return self.n + (6 if self.base == "floating" else 0)

    @cached_property
    def home(self) -> Array:
        """Positions (n,) of the independent joints in the assembled posture (rad or m); zero without closed loops."""
        if self.assembled is None:
            return frozen(np.zeros(self.n))
        return frozen(self.assembled[[name not in self.passive for name in self.tree_coordinates]])

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Names of the torque rows: the base wrench (unless the base is fixed), then the independent joints."""
        return (WRENCH_CHANNELS if self.base != "fixed" else ()) + self.coordinates

    @cached_property
    def channel_units(self) -> dict[str, str]:
        """Unit of every channel: N m, or N for prismatic joints and forces of the base."""
        linear = {*WRENCH_CHANNELS[:3], *(j.name for j in self.joints if j.kind == "prismatic")}
        return {channel: "N" if channel in linear else "N m" for channel in self.channels}

    @cached_property
    def limits(self) -> dict[str, Limits]:
        """Limits of the independent joints, by joint name."""
        return {j.name: j.limits for j in self.joints if j.name in self.coordinates}

    def link_index(self, name: str) -> int:
        """Index of a link in `links`.

        Parameters
        ----------
        name : str
            Name of the link.

        Raises
        ------
        ModelError
            If there is no such link.
        """
        for i, link in enumerate(self.links):
            if link.name == name:
                return i
        raise ModelError(
            f"no link named '{name}', the links are {', '.join(x.name for x in self.links)}",
            "name",
            code="unknown_name",
        )

    # -- parameters ------------------------------------------------------------------------------

    @cached_property
    def parameter_links(self) -> tuple[int, ...]:
        """Indices of the links whose inertia is part of the standard parameters."""
        first = 0 if self.base != "fixed" else 1
        return tuple(i for i in range(first, len(self.links)) if not self.links[i].virtual)

    @cached_property
    def layout(self) -> tuple[Parameter, ...]:
        """Entries of the standard parameter vector: per joint the link block, then the drive block, base to tip."""
        out: list[Parameter] = []
        number = {name: i + 1 for i, name in enumerate(self.tree_coordinates)}
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
                own = term.shaft == self.tree_coordinates[owner]
                tail = f"m_{motor.get(term.shaft, owner + 1)}" if term.motor else f"_{owner + 1 if own else term.shaft}"
                group = ROTATING_UNITS[term.unit] if term.linear and term.function is None else term.unit
                out.append(Parameter(term.name, term.symbol + tail, term.symbol, term.unit, term.shaft, False, group))
        return tuple(out)

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the standard parameters, such as m_link1 and fv_joint1, in the order of `layout`."""
        return tuple(p.name for p in self.layout)

    @cached_property
    def parameter_labels(self) -> tuple[str, ...]:
        """Short names of the standard parameters, for expressions: Izz_1, Ia_1, fvm_6."""
        return tuple(p.label for p in self.layout)

    @cached_property
    def parameters(self) -> Array:
        """A-priori values of the standard parameters, shape (p,), SI units."""
        value = {t.name: t.value for t in self.drives}
        inertia = {self.links[i].name: self.links[i].inertia for i in self.parameter_links}
        out = [inertia[p.owner][INERTIAL_SYMBOLS.index(p.symbol)] if p.inertial else value[p.name] for p in self.layout]
        return frozen(out)

    def with_parameters(self, parameters: ArrayLike) -> Self:
        """A copy with other values of the standard parameters.

        Parameters
        ----------
        parameters : array_like, shape (p,)
            Standard parameters in the order of `layout`, SI units.

        Returns
        -------
        Robot

        Raises
        ------
        DataError
            If the vector has the wrong size or a value that is not finite.
        """
        pi = checked(parameters, (len(self.layout),), f"parameters of robot '{self.name}'", DataError)
        value = dict(zip(self.parameter_names, pi, strict=True))
        links = list(self.links)
        for i in self.parameter_links:
            inertia = [value[f"{s}_{links[i].name}"] for s in INERTIAL_SYMBOLS]
            links[i] = replace(links[i], inertia=np.array(inertia))
        drives = tuple(replace(t, value=float(value[t.name])) for t in self.drives)
        return replace(self, links=tuple(links), drives=drives)

    # -- variants --------------------------------------------------------------------------------

    def with_base(self, base: BaseKind) -> Self:
        """A copy with another type of base.

        Parameters
        ----------
        base : {"fixed", "floating", "instrumented"}
            See the attribute `base`.

        Returns
        -------
        Robot
        """
        return replace(self, base=base)

    def with_gravity(self, gravity: ArrayLike) -> Self:
        """A copy with another gravity vector, for a tilted or ceiling-mounted base.

        Parameters
        ----------
        gravity : array_like, shape (3,)
            Gravity in the base frame (m/s2).

        Returns
        -------
        Robot
        """
        return replace(self, gravity=checked(gravity, (3,), "gravity"))

    def with_limits(self, limits: Mapping[str, Mapping[str, Any]]) -> Self:
        """A copy with other joint limits.

        Parameters
        ----------
        limits : mapping
            Joint name to a mapping with any of "position" (lower, upper; rad or m), "velocity" (rad/s or m/s) and
            "effort" (N m or N), such as {"joint1": {"position": (-1, 1), "velocity": 2, "effort": 50}}. Limits that
            are left out keep their values.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For unknown joints or keys, and for limits that are not numbers or are inconsistent.
        """
        if not isinstance(limits, Mapping):
            raise ModelError(
                f"{named('limits')} must be a mapping from joint names to tables, got {limits!r:.60}",
                code="invalid_type",
            )
        joints = list(self.joints)
        names = [j.name for j in joints]
        for name, new in limits.items():
            if name not in names:
                raise ModelError(
                    f"limits: no joint named '{name}', the joints are {', '.join(names)}", "limits", code="unknown_name"
                )
            joint = joints[names.index(name)]
            joints[names.index(name)] = replace(joint, limits=read_limits(name, new, joint.limits))
        return replace(self, joints=tuple(joints))

    def with_drives(
        self,
        friction: str | Mapping[str, str] | None = None,
        *,
        rotor_inertia: bool | Sequence[str] | None = None,
    ) -> Self:
        """A copy with another joint-side friction model or other rotor inertias.

        Springs, custom and motor-side terms and those of tendons are kept. Parameter values and the slope of Coulomb
        friction are kept where the old model has them.

        Parameters
        ----------
        friction : str or mapping, optional
            Friction model of all independent joints, or a mapping from joint name to model: "none", or any of
            "viscous", "viscous-asymmetric", "coulomb", "coulomb-asymmetric" and "offset", joined by "+". None keeps it.
            Passive joints of closed loops have friction where the mapping names them.
        rotor_inertia : bool or sequence of str, optional
            Whether independent joints have a rotor inertia, or the names of those that do. None keeps it.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            For unknown joints or friction terms.
        """
        replaced = (set(FRICTION_SYMBOLS) if friction is not None else set()) | (
            {"Ia"} if rotor_inertia is not None else set()
        )
        if isinstance(friction, str):
            friction = dict.fromkeys(self.coordinates, friction)
        if isinstance(rotor_inertia, bool | np.bool_):
            rotor_inertia = self.coordinates if rotor_inertia else ()
        wanted = joint_symbols(
            self.tree_coordinates,
            friction if friction is not None else "none",
            rotor_inertia if rotor_inertia is not None else False,
        )
        known: list[dict[str, float]] = [{} for _ in wanted]
        slopes = [0.0] * len(wanted)
        kept = []
        for term in self.drives:
            own = not term.motor and term.function is None and term.shaft == self.tree_coordinates[term.owner]
            if own and term.symbol in replaced:
                known[term.owner][term.symbol] = term.value
                slopes[term.owner] = max(slopes[term.owner], term.slope)
            else:
                kept.append(term)
        for i, symbols in enumerate(wanted):
            terms = [self.joint_term(i, s, carried_value(known[i], s)) for s in symbols]
            kept += [replace(t, slope=slopes[i]) if t.is_coulomb else t for t in terms]
        return replace(self, drives=tuple(kept))

    def joint_term(
        self, joint: int | str, symbol: str, value: float = 0.0, *, rest: float = 0.0, velocity: float = 0.0
    ) -> DriveTerm:
        """A joint-side drive term, for `with_terms`.

        Parameters
        ----------
        joint : int or str
            Index among `tree_coordinates`, or name of the joint.
        symbol : str
            One of "Ia", "fv", "fvp", "fvn", "fc", "fcp", "fcn", "fs", "off", "k"; see `DriveTerm`.
        value : float
            A-priori value, in N m, rad and s (or N, m and s for a prismatic joint).
        rest : float
            Rest position of a spring, symbol "k" (rad or m).
        velocity : float
            Stribeck velocity of symbol "fs" (rad/s or m/s).

        Returns
        -------
        DriveTerm
        """
        i = self._coordinate(joint)
        names = self.tree_coordinates
        return DriveTerm(symbol, names[i], np.eye(len(names))[i], i, value, rest=rest, velocity=velocity)

    def motor_term(
        self, motor: str, symbol: str, value: float = 0.0, *, cross_only: bool = False, velocity: float = 0.0
    ) -> DriveTerm:
        """A motor-side drive term, for `with_terms`. The robot must have a transmission.

        Parameters
        ----------
        motor : str
            Name of the motor.
        symbol : str
            As for `joint_term`.
        value : float
            A-priori value, expressed behind the gear ratio.
        cross_only : bool
            Keep only the coupling between different joints, see `DriveTerm`.
        velocity : float
            As for `joint_term`, of the shaft behind the gear ratio.

        Returns
        -------
        DriveTerm
        """
        if self.transmission is None:
            raise ModelError(
                f"robot '{self.name}' has no transmission, so no motor '{motor}'", "motor", code="not_applicable"
            )
        if motor not in self.transmission.motors:
            raise ModelError(
                f"no motor '{motor}', the motors are {', '.join(self.transmission.motors)}",
                "motor",
                code="unknown_name",
            )
        k = self.transmission.motors.index(motor)
        tree = self.tree
        assert tree.transmission is not None
        direction = tree.transmission.coupling[:, k]
        owner = self.tree_coordinates.index(self.coordinates[min(k, self.n - 1)])
        return DriveTerm(symbol, motor, direction, owner, value, motor=True, cross_only=cross_only, velocity=velocity)

    def custom_term(
        self, name: str, joint: int | str, function: Callable[..., Any], value: float = 0.0, *, unit: str = ""
    ) -> DriveTerm:
        """A user-defined regressor column, for `with_terms`.

        Parameters
        ----------
        name : str
            Symbol of the parameter; the parameter is called name_joint.
        joint : int or str
            Index among `tree_coordinates`, or name of the joint in whose block the parameter is listed.
        function : callable
            function(q, v, a) -> torques per unit of the parameter, all of shape (N, n) over `tree_coordinates`. It must
            be affine in a, with a factor of a that depends on q alone.
        value : float
            A-priori value.
        unit : str
            Unit of the parameter.

        Returns
        -------
        DriveTerm

        Raises
        ------
        ModelError
            If the function does not return an array of that shape or is not affine in a.
        """
        i = self._coordinate(joint)
        if not callable(function):
            raise ModelError(
                f"term '{name}' needs a function of q, v and a, got {function!r:.60}", "function", code="invalid_type"
            )
        n = len(self.tree_coordinates)
        q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 4, n))

        def column(velocity: float, acceleration: float) -> Array:
            given = function(q, velocity * v, acceleration * a)
            return checked(given, (4, n), f"term '{name}' for N = 4")

        bend = np.diff([column(1.0, s) for s in (-1.0, 0.0, 1.0, 2.0)], n=2, axis=0)
        drift = column(1.0, 1.0) - column(1.0, 0.0) - column(0.0, 1.0) + column(0.0, 0.0)
        if max(np.abs(bend).max(), np.abs(drift).max()) > 1e-9 * (1 + np.abs(column(1.0, 2.0)).max()):
            raise ModelError(
                f"term '{name}' must be affine in the acceleration, with a factor that depends on q alone",
                "function",
                code="invalid_value",
            )
        return DriveTerm(name, self.tree_coordinates[i], np.zeros(n), i, value, function=function, unit=unit)

    def with_terms(self, *terms: DriveTerm) -> Self:
        """A copy with additional drive terms.

        Parameters
        ----------
        *terms : DriveTerm
            Terms made by `joint_term`, `motor_term` or `custom_term`.

        Returns
        -------
        Robot

        Examples
        --------
        >>> import dynid
        >>> robot = dynid.load_robot("twolink")
        >>> robot.with_terms(robot.joint_term("joint2", "k", 5.0, rest=0.1)).parameter_names[-1]
        'k_joint2'
        """
        return replace(self, drives=self.drives + terms)

    def with_smooth_coulomb(self, slope: float) -> Self:
        """A copy with Coulomb friction smoothed to tanh(slope * velocity), also that of custom terms that jump.

        Parameters
        ----------
        slope : float
            Slope in s/rad or s/m; 0 restores the sign function.

        Returns
        -------
        Robot
        """
        drives = tuple(replace(t, slope=slope) if t.jumps else t for t in self.drives)
        return replace(self, drives=drives)

    def with_transmission(self, transmission: Transmission) -> Self:
        """A copy with a coupling between motors and joints; motor-side terms are then added with `motor_term`.

        Parameters
        ----------
        transmission : Transmission
            Coupling of the motors with the `n` independent joints.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If the robot already has motor-side terms, or the coupling has the wrong number of rows.
        """
        if any(t.motor for t in self.drives):
            raise ModelError(f"robot '{self.name}' already has motor-side terms", code="duplicate")
        return replace(self, transmission=transmission)

    def without(self, *patterns: str) -> Self:
        """A copy without some drive parameters: robot.without("off_*", "Iam_6").

        Parameters
        ----------
        *patterns : str
            Names or labels of drive parameters; wildcards are allowed.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If a pattern matches no drive parameter.
        """
        label = {p.name: p.label for p in self.layout if not p.inertial}
        gone: set[str] = set()
        for pattern in patterns:
            named, labelled = matching_names(pattern, label), matching_names(pattern, label.values())
            found = {name for name, x in label.items() if name in named or x in labelled}
            if not found:
                raise ModelError(f"no drive parameter matches '{pattern}'", "pattern", code="unknown_name")
            gone |= found
        return replace(self, drives=tuple(t for t in self.drives if t.name not in gone))

    def with_payload(self, link: str, inertia: ArrayLike, placement: ArrayLike | None = None) -> Self:
        """A copy with a rigid body attached to a link.

        Parameters
        ----------
        link : str
            Name of the link.
        inertia : array_like, shape (10,)
            Inertial parameters of the body in its own frame (see `dynid.inertia`).
        placement : array_like, shape (4, 4), optional
            Placement of the body frame in the link frame; the identity if not given.

        Returns
        -------
        Robot
        """
        i = self.link_index(link)
        added = move_inertia(inertia, np.eye(4) if placement is None else placement)
        links = list(self.links)
        links[i] = replace(links[i], inertia=links[i].inertia + added, virtual=False, extent=None)
        return replace(self, links=tuple(links))

    def _coordinate(self, joint: int | str) -> int:
        names = self.tree_coordinates
        if isinstance(joint, str):
            if joint not in names:
                raise ModelError(
                    f"no joint named '{joint}', the joints are {', '.join(names)}", "joint", code="unknown_name"
                )
            return names.index(joint)
        if joint not in range(len(names)):
            raise ModelError(
                f"joint {joint} is out of range, robot '{self.name}' has {len(names)}", "joint", code="invalid_value"
            )
        return int(joint)

    def __repr__(self) -> str:
        closed = f", {len(self.loops)} closed loops" if self.loops else ""
        return f"Robot('{self.name}', {self.n} joints, {len(self.layout)} parameters, {self.base} base{closed})"


def _on_shaft(term: DriveTerm, slides: NDArray[np.bool_]) -> DriveTerm:
    """The term with its shaft marked as linear where it moves with prismatic joints only."""
    moving = term.direction != 0
    linear = bool(np.all(slides[moving])) if np.any(moving) else bool(slides[term.owner])
    return term if term.linear == linear else replace(term, linear=linear)
