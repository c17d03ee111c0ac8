"""The law by which an actuator turns a position command into torque, as simulators have it.

The equations stand in `ActuatorLaw`: a PD law with a dead zone and a delay, and the torque-velocity line of a motor.

Source: Spong, Hutchinson and Vidyasagar, Robot Modeling and Control (2006), chapter on independent joint control, for
back electromotive force and PD control; Todorov, Convex and Analytically-Invertible Dynamics with Contacts and
Constraints (2014), for soft friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ConflictingArguments, InvalidShape, InvalidValue, MissingArgument, UnknownName

__all__ = ["ActuatorLaw"]

Array = NDArray[np.float64]

# Fields with one number per joint.
PER_JOINT = (
    *("kp", "kd", "gain", "delay", "torque_limit", "back_emf", "stall_torque", "no_load_velocity"),
    *("backlash", "load_friction", "bias", "friction_lead", "friction_width"),
)
_CHOICES = {"hold": ("zero", "linear"), "delayed": ("command", "torque"), "velocity_target": ("zero", "command")}
# Frequency (Hz) beyond which a law is rather a mistake than a drive; its simulation would not end.
_HIGHEST_RATE = 1e5
_LONGEST_DELAY = 10.0  # s
_LARGEST = 1e9  # of gains, torques and widths in SI units: beyond, a simulation overflows
# Soft friction of a simulator acts with the velocity at the start of a step: its lead counts from the end, and may be
# negative by this share of the step, while friction still increases with the velocity there.
EARLY = 0.25
_MAY_BE_INFINITE = ("torque_limit", "stall_torque", "no_load_velocity")


@dataclass(frozen=True, eq=False, init=False)
class ActuatorLaw:
    """Torque of every joint from its command, its measured position and its velocity.

    With the command c (position), its velocity w and a torque f that is fed forward, each zero where there is none, the
    measured position y = q + bias and the true velocity v:

        e   = c(t - delay) - y, less what lies within +-backlash/2
        u   = gain (kp e + kd (w(t - delay) - v) + f(t - delay)), within +-torque_limit
        tau = u - back_emf v, within -stall_torque (1 + v/no_load_velocity) and stall_torque (1 - v/no_load_velocity)

    The joint has the friction load_friction abs(tau) sign(v) in addition to the friction of the robot's drive terms,
    which also hold armature ("Ia"), viscous ("fv"), Coulomb ("fc") and Stribeck friction ("fs"). Simulators with soft
    constraints soften Coulomb and Stribeck friction: it is proportional to v + friction_lead a below its limit, which
    it reaches at friction_width.

    That is an ideal PD law by default, a delayed one with `delay`, a DC motor with `stall_torque` and
    `no_load_velocity`, and a position servo driven by a voltage with `torque_limit` (torque constant times supply
    voltage over resistance) and `back_emf` (torque constant squared over resistance).

    Attributes
    ----------
    joints : tuple of str
        Names of the joints, in the order of the robot.
    kp, kd : ndarray, shape (n,)
        Proportional (N m/rad or N/m) and derivative gain (N m s/rad or N s/m).
    gain : ndarray, shape (n,)
        Factor of all gains: 1 unless the torque constant is not what the law assumes.
    delay : ndarray, shape (n,)
        Seconds between a command and its effect.
    torque_limit : ndarray, shape (n,)
        Largest torque (N m or N) of the law.
    back_emf : ndarray, shape (n,)
        Torque that is lost with velocity (N m s/rad or N s/m), after the limit.
    stall_torque, no_load_velocity : ndarray, shape (n,)
        Ends of the line that limits the torque of a DC motor over its velocity.
    backlash : ndarray, shape (n,)
        Width (rad or m) of position errors that have no effect.
    load_friction : ndarray, shape (n,)
        Friction per torque of the motor, without unit.
    bias : ndarray, shape (n,)
        Measured minus true position (rad or m).
    friction_lead : ndarray, shape (n,)
        Seconds by which soft friction changes its sign before the velocity does. MuJoCo: 9.5 ms with the default
        solreffriction, dmax timeconst / 2, less the timestep.
    friction_width : ndarray, shape (n,)
        Velocity (rad/s or m/s) at which soft friction reaches its limit; a joint that is held creeps below it.
    rate : float or None
        Frequency (Hz) at which the law is computed; its torque is held in between. None for a law that acts
        continuously.
    timestep : float or None
        Seconds of the semi-implicit Euler steps, with implicit damping, in which a simulator moves the joints; a whole
        fraction of 1 / rate. None for a robot.
    hold : {"zero", "linear"}
        Whether a command is held until the next row of the log, or interpolated linearly.
    delayed : {"command", "torque"}
        What the delay applies to: the command alone, as simulators have it, or the torque of the law, which then
        depends on old measurements.
    velocity_target : {"zero", "command"}
        The velocity w of commands that have positions alone: zero, or the derivative of the positions.
    """

    joints: tuple[str, ...]
    kp: Array
    kd: Array
    gain: Array
    delay: Array
    torque_limit: Array
    back_emf: Array
    stall_torque: Array
    no_load_velocity: Array
    backlash: Array
    load_friction: Array
    bias: Array
    friction_lead: Array
    friction_width: Array
    rate: float | None
    timestep: float | None
    hold: Literal["zero", "linear"]
    delayed: Literal["command", "torque"]
    velocity_target: Literal["zero", "command"]

    def __init__(
        self,
        joints: Sequence[str],
        *,
        kp: ArrayLike = 0.0,
        kd: ArrayLike = 0.0,
        gain: ArrayLike = 1.0,
        delay: ArrayLike = 0.0,
        torque_limit: ArrayLike = np.inf,
        back_emf: ArrayLike = 0.0,
        stall_torque: ArrayLike = np.inf,
        no_load_velocity: ArrayLike = np.inf,
        backlash: ArrayLike = 0.0,
        load_friction: ArrayLike = 0.0,
        bias: ArrayLike = 0.0,
        friction_lead: ArrayLike = 0.0,
        friction_width: ArrayLike = 0.0,
        rate: float | None = None,
        timestep: float | None = None,
        hold: Literal["zero", "linear"] = "zero",
        delayed: Literal["command", "torque"] = "command",
        velocity_target: Literal["zero", "command"] = "zero",
    ) -> None:
        given = dict(locals())
        names = tuple(joints)
        if isinstance(joints, str) or not names or not all(isinstance(x, str) for x in names):
            raise MissingArgument("an actuator law needs the names of its joints", "joints")
        for field in PER_JOINT:
            object.__setattr__(self, field, _per_joint(field, given[field], names))
        for field, choices in _CHOICES.items():
            if given[field] not in choices:
                raise UnknownName(
                    f"{field} of an actuator law is '{choices[0]}' or '{choices[1]}', not {given[field]!r}", field
                )
            object.__setattr__(self, field, given[field])
        if rate is not None and not (isinstance(rate, int | float) and 0 < rate <= _HIGHEST_RATE):
            raise InvalidValue(
                f"an actuator law is computed at a positive number of Hz, at most {_HIGHEST_RATE:g}, or None, got "
                f"{rate!r:.40}",
                "rate",
            )
        object.__setattr__(self, "rate", None if rate is None else float(rate))
        object.__setattr__(self, "timestep", None if timestep is None else _step(timestep, self.rate))
        object.__setattr__(self, "joints", names)
        if self.friction_lead.min() < -EARLY * (self.timestep or 0.0) - 1e-12:
            raise InvalidValue(
                f"friction_lead of an actuator law cannot be {self.friction_lead.min():g} s", "friction_lead"
            )

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joints)

    def changed(self, **values: Any) -> ActuatorLaw:
        """The law with other values.

        Parameters
        ----------
        **values
            New values of any attributes.

        Returns
        -------
        ActuatorLaw
        """
        return ActuatorLaw(**({x.name: getattr(self, x.name) for x in fields(self)} | values))

    def of(self, joints: Sequence[str]) -> ActuatorLaw:
        """The law of some joints.

        Parameters
        ----------
        joints : sequence of str
            Names of the joints.

        Returns
        -------
        ActuatorLaw
        """
        unknown = [x for x in joints if x not in self.joints]
        if unknown:
            raise UnknownName(
                f"the actuator law has no joint '{unknown[0]}'; its joints are {', '.join(self.joints)}", "joints"
            )
        index = [self.joints.index(x) for x in joints]
        return self.changed(joints=tuple(joints), **{x: getattr(self, x)[index] for x in PER_JOINT})


def _step(timestep: Any, rate: float | None) -> float:
    """The steps of a simulator, of which a whole number makes one of the law."""
    if not (isinstance(timestep, int | float) and 1.0 / _HIGHEST_RATE / 10 <= timestep < np.inf):
        raise InvalidValue(
            f"the timestep of a simulator is a positive number of seconds, got {timestep!r:.40}", "timestep"
        )
    if rate is None:
        raise MissingArgument(
            "an actuator law with the timestep of a simulator needs its rate too, 1 / timestep or less", "rate"
        )
    steps = 1.0 / (rate * timestep)
    if round(steps) < 1 or abs(steps - round(steps)) > 1e-3:
        raise ConflictingArguments(
            f"the law is computed at {rate:g} Hz, which a timestep of {timestep:g} s does not divide", "timestep"
        )
    return float(timestep)


def _per_joint(field: str, value: Any, joints: tuple[str, ...]) -> Array:
    """One number per joint."""
    try:
        array = np.array(np.broadcast_to(np.asarray(value, dtype=float), (len(joints),)))
    except (TypeError, ValueError, OverflowError):
        raise InvalidShape(
            f"{field} of an actuator law needs one number, or one per joint ({len(joints)})", field
        ) from None
    good = (np.abs(array) <= _LARGEST) | ((array == np.inf) & (field in _MAY_BE_INFINITE))
    good &= (array > 0) | ((array == 0) & (field != "no_load_velocity")) | (field in ("bias", "friction_lead"))
    if not good.all():
        raise InvalidValue(
            f"{field} of joint '{joints[int(np.argmin(good))]}' cannot be {array[np.argmin(good)]:g}", field
        )
    if field == "delay" and array.max() > _LONGEST_DELAY:
        raise InvalidValue(f"a delay of {array.max():g} s is longer than {_LONGEST_DELAY:g} s", "delay")
    array.setflags(write=False)
    return array
