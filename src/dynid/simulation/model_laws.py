"""Control laws that know the robot: computed torque, compensation, impedance, and gains of stiff and soft ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.model import Robot
from dynid.simulation.laws import CallableController, LinearController, bandwidth_gains, gains_of, pd, static
from dynid.simulation.torque_models import TorqueModel, predicted

__all__ = ["compensation", "computed_torque", "impedance", "model_position", "regimes"]

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
    """The model's inverse dynamics at the measured state for a_ref + kp e + kd de; kp in 1/s2, kd in 1/s.

    Compiled with a robot; with any other torque model, which is asked once a period, a function. Such a model has as
    many joints as the longer of the gains unless it says so itself with `n`.
    """
    if isinstance(model, Robot):
        law = pd(rate, *gains_of(kp=kp, kd=kd, n=model.n))
        return replace(law, knows="computed torque", model=model, name="computed")
    if not isinstance(model, TorqueModel):
        raise DataError(f"computed torque needs a robot or a torque model, got {model!r:.60}")
    stiffness, damping = gains_of(kp=kp, kd=kd, n=getattr(model, "n", None))

    def law_at(_: float, q_ref: Array, v_ref: Array, a_ref: Array, q: Array, v: Array) -> Array:
        wish = a_ref + stiffness * (q_ref - q) + damping * (v_ref - v)
        return predicted(model, q[None], v[None], wish[None])[0]

    return CallableController(rate, len(stiffness), law_at, "computed")


def model_position(
    rate: float, model: Robot, kp: ArrayLike, kd: ArrayLike | None = None, rotors: bool = False
) -> LinearController:
    """Coriolis, gravity and M (kp (q_ref - q) - kd v): the position loop that Sousa (2014) judges models by.

    It compensates no friction, and rotors only where asked. Critically damped, kd = 2 sqrt(kp), unless kd is given.
    """
    (kp,) = gains_of(kp=kp, n=model.n)
    if kd is None and np.any(kp < 0):
        raise DataError("a critically damped loop needs gains kp that are not negative")
    (kd,) = gains_of(kd=2 * np.sqrt(kp) if kd is None else kd, n=model.n)
    kept = (*_LINK_KINDS, TermKind.INERTIA) if rotors else _LINK_KINDS
    bare = replace(model, drives=tuple(t for t in model.drives if t.kind in kept))
    law = static(rate, np.column_stack([kp, 0 * kp, -kp, -kd]), "model position")
    return replace(law, knows="linearisation", model=bare)


def compensation(
    rate: float,
    model: Robot,
    share: ArrayLike = 1.0,
    slope: float = 20.0,
    stiffness: ArrayLike = 0.0,
    damping: ArrayLike = 0.0,
) -> LinearController:
    """Gravity at the measured pose and a share of the model's friction at the measured speed, smooth near rest.

    `share` is one number or one a joint, below 1 lest a model with too much friction drives the robot. Coulomb friction
    is tanh(slope v); a slope (s/rad) beyond rate x inertia / Coulomb torque makes a joint chatter. Stiffness and
    damping hold to the reference; without them a hand can lead the arm.
    """
    (shares,) = gains_of(share=share, n=model.n)
    if not (np.isfinite(slope) and slope > 0):
        raise DataError(f"friction compensation needs a positive slope, got {slope:g}")
    drives = (_shared(t, shares[t.owner], slope) for t in model.drives if t.kind != TermKind.INERTIA)
    law = pd(rate, *gains_of(stiffness=stiffness, damping=damping, n=model.n))
    return replace(law, knows="compensation", model=replace(model, drives=tuple(drives)), name="compensation")


def impedance(rate: float, model: Robot, stiffness: ArrayLike, damping: ArrayLike) -> LinearController:
    """A spring and a damper to the reference, with the model's gravity at the measured pose taken off."""
    law = pd(rate, *gains_of(kp=stiffness, kd=damping, n=model.n))
    return replace(law, knows="gravity", model=model, name="impedance")


def regimes(
    robot: Robot, bandwidths: Mapping[str, ArrayLike] | None = None, damping: float = 1.0
) -> dict[str, tuple[Array, Array]]:
    """Stiffness and damping (n,) by name, for `impedance` and `pd`.

    "low", "middle" and "high" give closed loops of 1, 4 and 12 Hz, or `bandwidths` (Hz) by names of yours, with this
    damping ratio. "identification" (75, 0.32) and "test" (10, 0.2) are the gains of Krishnamoorthi (2018), in N m/rad
    and N m s/rad whatever the robot.
    """
    out: dict[str, tuple[Array, Array]] = {}
    for name, bandwidth in (_BANDWIDTHS if bandwidths is None else bandwidths).items():
        kp, kv = bandwidth_gains(robot, bandwidth, damping)
        out[name] = kp * kv, kv
    return out | {name: (np.full(robot.n, k), np.full(robot.n, d)) for name, (k, d) in _ABSOLUTE.items()}


def _shared(term: DriveTerm, share: float, slope: float) -> DriveTerm:
    """The drive term as compensated: friction in part and smooth, springs and the user's terms whole."""
    if term.kind in _LINK_KINDS:
        return term
    return replace(term, value=share * term.value, slope=slope if term.is_coulomb else 0.0)
