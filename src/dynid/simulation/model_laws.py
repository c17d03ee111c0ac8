"""Model-based control laws: computed torque, compensation, impedance, and gain sets from soft to stiff.

    computed torque:    torque = ID(q, v, a_ref + kp (q_ref - q) + kd (v_ref - v))
    augmented PD:       torque = ID(q, v, a_ref) + kp (q_ref - q) + kd (v_ref - v)
    impedance:          torque = g(q) + stiffness (q_ref - q) + damping (v_ref - v)

Sources: Siciliano, Sciavicco, Villani and Oriolo, Robotics: Modelling, Planning and Control (2009), chapters 8 and 9;
Sousa (2014), equation 4.16, for the augmented law; Spong, Modeling and Control of Elastic Joint Robots (1987), for
singular perturbation; Tomei (1991) and De Luca (1998) as named with `elastic_pd`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.errors import InvalidType, InvalidValue, MissingData, NotApplicable, UnknownName
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.model import Robot
from dynid.simulation.gains import bandwidth_gains, gains_of
from dynid.simulation.laws import CallableController, LinearController, pd, static
from dynid.simulation.torque_models import Correction, ElasticModel, HeldModel, TorqueModel, predicted
from dynid.simulation.unmodeled import UnmodeledEffects, rotor_inertia

__all__ = [
    "augmented_pd",
    "compensation",
    "computed_torque",
    "elastic_pd",
    "impedance",
    "model_position",
    "regimes",
    "singular_perturbation",
]

Array = NDArray[np.float64]

# Closed-loop bandwidths (Hz) of soft, moderate and stiff joints; gains of Krishnamoorthi (2018), tables 5-6 and 5-7.
_BANDWIDTHS = {"low": 1.0, "middle": 4.0, "high": 12.0}
_ABSOLUTE = {"identification": (75.0, 0.32), "test": (10.0, 0.2)}
_LINK_KINDS = (TermKind.SPRING, TermKind.CUSTOM)


@overload
def computed_torque(rate: float, model: Robot, kp: ArrayLike, kd: ArrayLike) -> LinearController: ...
@overload
def computed_torque(rate: float, model: TorqueModel, kp: ArrayLike, kd: ArrayLike) -> CallableController: ...
def computed_torque(
    rate: float, model: Robot | TorqueModel, kp: ArrayLike, kd: ArrayLike
) -> LinearController | CallableController:
    """Computed torque: inverse dynamics at the measured state for a_ref + kp (q_ref - q) + kd (v_ref - v).

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot or TorqueModel
        Model for the inverse dynamics. A robot is compiled; another torque model is evaluated in Python once per
        control period, and its number of joints is its attribute `n`, or the length of the gains.
    kp : float or array of shape (n,)
        Position gains (1/s2).
    kd : float or array of shape (n,)
        Velocity gains (1/s).

    Returns
    -------
    LinearController or CallableController

    Raises
    ------
    DataError
        If `model` is neither a robot nor a torque model, if it is held, or gains do not fit it.
    """
    if isinstance(model, Robot):
        law = pd(rate, *gains_of(kp=kp, kd=kd, n=model.n))
        return replace(law, model_use="computed torque", model=model, name="computed")
    if isinstance(model, HeldModel):
        raise NotApplicable(
            "computed torque evaluates its model in every control period and takes none that is held", "model"
        )
    if not isinstance(model, TorqueModel):
        raise InvalidType(f"computed torque needs a robot or a torque model, got {model!r:.60}", "model")
    stiffness, damping = gains_of(kp=kp, kd=kd, n=getattr(model, "n", None))

    def law_at(_: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        command = a_ref + stiffness * (q_ref - q) + damping * (v_ref - v)
        return predicted(model, q[None], v[None], command[None])[0]

    return CallableController(rate, len(stiffness), law_at, "computed")


def model_position(
    rate: float, model: Robot, kp: ArrayLike, *, kd: ArrayLike | None = None, rotors: bool = False
) -> LinearController:
    """Position control with a linearising model, without friction compensation (Sousa 2014).

    The torque is M(q) (kp (q_ref - q) - kd v) plus Coriolis and gravity torques.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model.
    kp : float or array of shape (n,)
        Position gains (1/s2).
    kd : float or array of shape (n,), optional
        Velocity gains (1/s); by default 2 sqrt(kp), critical damping.
    rotors : bool
        Whether the model includes rotor inertia.

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If kp is negative and kd is not given.
    """
    (kp,) = gains_of(kp=kp, n=model.n)
    if kd is None and np.any(kp < 0):
        raise InvalidValue("a critically damped loop needs gains kp that are not negative", "kp")
    (kd,) = gains_of(kd=2 * np.sqrt(kp) if kd is None else kd, n=model.n)
    law = static(rate, np.column_stack([kp, 0 * kp, -kp, -kd]), "model position")
    return replace(law, model_use="linearisation", model=_without_friction(model, rotors))


def augmented_pd(rate: float, model: Robot, kp: ArrayLike, kd: ArrayLike, *, rotors: bool = False) -> LinearController:
    """PD control beside a model at the measured state, without friction compensation (Sousa 2014, equation 4.16).

    The torque is M(q) a_ref plus Coriolis and gravity torques plus kp (q_ref - q) + kd (v_ref - v). Unlike in computed
    torque, the PD torque does not pass through the mass matrix: joints are not coupled by it, and the gains of each one
    are tuned alone.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model.
    kp : float or array of shape (n,)
        Position gains (N m/rad or N/m).
    kd : float or array of shape (n,)
        Velocity gains (N m s/rad or N s/m).
    rotors : bool
        Whether the model includes rotor inertia.

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If gains do not fit the robot.

    Examples
    --------
    >>> import dynid
    >>> dynid.controllers.augmented_pd(1000.0, dynid.load_robot("twolink"), [200.0, 40.0], [5.0, 1.0]).n
    2
    """
    law = pd(rate, *gains_of(kp=kp, kd=kd, n=model.n))
    return replace(law, model_use="augmented", model=_without_friction(model, rotors), name="augmented pd")


def compensation(
    rate: float,
    model: Robot,
    *,
    share: ArrayLike = 1.0,
    slope: float = 20.0,
    stiffness: ArrayLike = 0.0,
    damping: ArrayLike = 0.0,
) -> LinearController:
    """Gravity and friction compensation at the measured state, for hand guiding.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model with friction.
    share : float or array of shape (n,)
        Compensated share of friction. Choose it below 1 if the friction of the model may be too large, since
        overcompensation is unstable.
    slope : float
        Slope k (s/rad or s/m) of tanh(k v) in Coulomb friction. A slope beyond rate * inertia / Coulomb torque makes
        the joint chatter.
    stiffness : float or array of shape (n,)
        Stiffness (N m/rad or N/m) towards the reference; 0 for hand guiding.
    damping : float or array of shape (n,)
        Damping (N m s/rad or N s/m) towards the reference velocity.

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If the slope is not positive.
    """
    (shares,) = gains_of(share=share, n=model.n)
    if not (np.isfinite(slope) and slope > 0):
        raise InvalidValue(f"friction compensation needs a positive slope, got {slope:g}", "slope")
    of = dict(zip(model.coordinates, shares, strict=True))
    owners = model.tree_coordinates
    drives = (_shared(t, of.get(owners[t.owner], 1.0), slope) for t in model.drives if t.kind != TermKind.INERTIA)
    law = pd(rate, *gains_of(stiffness=stiffness, damping=damping, n=model.n))
    return replace(law, model_use="compensation", model=replace(model, drives=tuple(drives)), name="compensation")


def elastic_pd(
    rate: float,
    model: Robot,
    kp: ArrayLike,
    kd: ArrayLike,
    stiffness: ArrayLike,
    *,
    damping: ArrayLike = 0.0,
    feedforward: Literal["full", "gravity"] = "full",
) -> LinearController:
    """PD control of motors behind flexible joints, whose links follow the reference.

    The torque is kp (theta_ref - theta) + kd (theta_ref' - theta') plus that of the model, with theta_ref ahead of the
    reference of the links by the deflection of the springs.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model with rotor inertia and friction, which are those of the motors.
    kp : float or array of shape (n,)
        Position gains (N m/rad or N/m).
    kd : float or array of shape (n,)
        Velocity gains (N m s/rad or N s/m).
    stiffness : float or array of shape (n,)
        Stiffness (N m/rad or N/m) between motors and links; infinite for a rigid joint.
    damping : float or array of shape (n,)
        Damping (N m s/rad or N s/m) of the springs.
    feedforward : {"full", "gravity"}
        "full" computes the motion of the motors and their torques from that of the links, which determines them (the
        links are a flat output, De Luca 1998): the reference needs four derivatives, so it must be smooth. "gravity"
        holds the links at rest against gravity (Tomei 1991), for a reference that is not smooth.

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If stiffness is not positive, damping is negative, or numbers do not fit the robot.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.controllers.elastic_pd(1000.0, robot, 800.0, 60.0, [9e3, 4e3]).n
    2
    """
    kp, kd = gains_of(kp=kp, kd=kd, n=model.n)
    joints = UnmodeledEffects(stiffness=stiffness, damping=damping)
    ahead = _ahead(rate, model, joints, kp, kd, feedforward)
    return replace(pd(rate, kp, kd), feedforward=ahead, name="elastic pd")


def singular_perturbation(
    rate: float,
    model: Robot,
    kp: ArrayLike,
    kd: ArrayLike,
    stiffness: ArrayLike,
    *,
    damping: ArrayLike = 0.0,
    damping_ratio: float = 0.7,
    feedforward: Literal["full", "gravity"] = "full",
) -> CallableController:
    """Control of links behind flexible joints with encoders on both sides: the links are fed back, springs are damped.

    Stiff springs make a slow and a fast part of the motion (singular perturbation, Spong 1987). The slow part is the
    rigid robot, whose links get M(q) (kp (q_ref - q) + kd (v_ref - v)). The fast part is the vibration of motors
    against links, which feedback of the links alone makes unstable; it is damped by a torque proportional to the
    velocity of the deflections. The torques along the reference are those of `elastic_pd`.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz), well above the frequency of the vibration.
    model : Robot
        Robot model with rotor inertia and friction, which are those of the motors.
    kp : float or array of shape (n,)
        Position gains of the links (1/s2).
    kd : float or array of shape (n,)
        Velocity gains of the links (1/s).
    stiffness : float or array of shape (n,)
        Stiffness (N m/rad or N/m) between motors and links; infinite for a rigid joint.
    damping : float or array of shape (n,)
        Damping (N m s/rad or N s/m) of the springs.
    damping_ratio : float
        Damping ratio of a motor against its spring with the link held; 0 for no damping.
    feedforward : {"full", "gravity"}
        As for `elastic_pd`.

    Returns
    -------
    CallableController
        For `dynid.simulate`, with `link_encoders`.

    Raises
    ------
    DataError
        If stiffness is not positive, damping or its ratio is negative, the motor of a flexible joint has no rotor
        inertia, or numbers do not fit the robot.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink", rotor_inertia=True)
    >>> robot = robot.with_parameters([0.5 if p.symbol == "Ia" else 1.0 for p in robot.layout])
    >>> dynid.controllers.singular_perturbation(2000.0, robot, 400.0, 40.0, [9e3, 4e3]).link_encoders
    True
    """
    n = model.n
    kp, kd = gains_of(kp=kp, kd=kd, n=n)
    joints = UnmodeledEffects(stiffness=stiffness, damping=damping)
    if not (np.isfinite(damping_ratio) and damping_ratio >= 0):
        raise InvalidValue(
            f"the damping ratio is a number that is not negative, got {damping_ratio!r:.60}", "damping_ratio"
        )
    flexible, rotor = joints.flexible(n), np.diag(rotor_inertia(model, joints))
    if np.any(flexible & (rotor <= 0)):
        name = model.coordinates[int(np.argmax(flexible & (rotor <= 0)))]
        raise MissingData(
            f"'{name}' is flexible, but its motor has no inertia: give the model a rotor inertia", "model"
        )
    k = np.where(flexible, joints.of_joints("stiffness", n), 0.0)
    fast = np.maximum(2 * damping_ratio * np.sqrt(k * rotor) - joints.of_joints("damping", n), 0.0)

    def law_at(
        _: float, q_ref: Array, v_ref: Array, _a_ref: Array, _motor_q: Array, motor_v: Array, q: Array, v: Array
    ) -> Array:
        slow = mass_matrix(model, q) @ (kp * (q_ref - q) + kd * (v_ref - v))
        return slow - fast * (motor_v - v)

    ahead = Correction(_ahead(rate, model, joints, np.zeros(n), fast, feedforward))
    return CallableController(rate, n, law_at, "singular perturbation", (ahead,), link_encoders=True)


def impedance(rate: float, model: Robot, stiffness: ArrayLike, damping: ArrayLike) -> LinearController:
    """Joint impedance: stiffness and damping about the reference, with gravity compensation.

    Parameters
    ----------
    rate : float
        Sampling rate (Hz).
    model : Robot
        Robot model for gravity.
    stiffness : float or array of shape (n,)
        Joint stiffness (N m/rad or N/m).
    damping : float or array of shape (n,)
        Joint damping (N m s/rad or N s/m).

    Returns
    -------
    LinearController
    """
    law = pd(rate, *gains_of(kp=stiffness, kd=damping, n=model.n))
    return replace(law, model_use="gravity", model=model, name="impedance")


def regimes(
    robot: Robot, *, bandwidths: Mapping[str, ArrayLike] | None = None, damping: float = 1.0
) -> dict[str, tuple[Array, Array]]:
    """Sets of stiffness and damping for `impedance` and `pd`, from soft to stiff.

    Parameters
    ----------
    robot : Robot
        Model with inertial parameters.
    bandwidths : mapping of str to float or array of shape (n,), optional
        Closed-loop bandwidths (Hz) by name. By default "low", "middle" and "high" of 1, 4 and 12 Hz.
    damping : float
        Damping ratio.

    Returns
    -------
    dict of str to tuple of two arrays of shape (n,)
        Stiffness (N m/rad or N/m) and damping (N m s/rad or N s/m) by name. "identification" (75, 0.32) and
        "test" (10, 0.2) are the gains of Krishnamoorthi (2018), independent of the robot.
    """
    out: dict[str, tuple[Array, Array]] = {}
    for name, bandwidth in (_BANDWIDTHS if bandwidths is None else bandwidths).items():
        kp, kv = bandwidth_gains(robot, bandwidth, damping=damping)
        out[name] = kp * kv, kv
    return out | {name: (np.full(robot.n, k), np.full(robot.n, d)) for name, (k, d) in _ABSOLUTE.items()}


def _ahead(
    rate: float, model: Robot, joints: UnmodeledEffects, kp: Array, kd: Array, parts: Literal["full", "gravity"]
) -> ElasticModel:
    """Torques along the reference of the links, with those of gains that act on the deflections."""
    if parts not in ("full", "gravity"):
        raise UnknownName(f"feedforward is 'full' or 'gravity', not {parts!r:.60}", "feedforward")
    k, d = (joints.of_joints(name, model.n) for name in ("stiffness", "damping"))
    return ElasticModel(model, rate, k, d, kp, kd, parts)


def _without_friction(model: Robot, rotors: bool) -> Robot:
    """The model without friction and offsets of its drives, with their rotor inertia or without."""
    kept = (*_LINK_KINDS, TermKind.INERTIA) if rotors else _LINK_KINDS
    return replace(model, drives=tuple(t for t in model.drives if t.kind in kept))


def _shared(term: DriveTerm, share: float, slope: float) -> DriveTerm:
    """The drive term as compensated: friction scaled and smooth; springs and custom terms unchanged."""
    if term.kind in _LINK_KINDS:
        return term
    return replace(term, value=share * term.value, slope=slope if term.is_coulomb else 0.0)
