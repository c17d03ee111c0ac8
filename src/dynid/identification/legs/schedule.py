"""Which feet touch the floor: from the run, from foot switches, and from the torques of the legs.

The schedule is used twice, each time on the safe side. A foot that may touch has an unknown force, which is
eliminated: eliminating a force that was zero loses some information and biases nothing. A foot that certainly stands is
at rest, which tells the velocity of the base. So a wrong schedule is survived where the torques contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.frames import placement_in_base
from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError
from dynid.identification.legs.contacts import Contact, contact_jacobian
from dynid.identification.legs.imu_base import check_imu
from dynid.recording.base_motion import base_from_imu
from dynid.recording.recording import Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative, lowpass

__all__ = ["Schedule", "contact_schedule", "vertical_forces"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Vertical force of a foot in shares of the weight: at the middle a contact is as probable as none, and the width is
# that of the logistic curve. The a-priori model of a leg and its friction are wrong by about one percent of the weight.
_MIDDLE, _WIDTH = 0.04, 0.008
# Below the first probability a foot is in the air, above the second it stands.
_AIR, _STANDS = 0.05, 0.95
_CUTOFF = 25.0
# A contact that is shorter than this in s, or an interruption of one, is not believed.
_SHORTEST = 0.03


@dataclass(frozen=True, eq=False)
class Schedule:
    """Contacts of a run.

    Attributes
    ----------
    probability : mapping of str to ndarray (N,)
        Probability that each foot touches the floor, from the torques.
    touching : mapping of str to ndarray of bool (N,)
        Samples at which the force of a foot may differ from zero.
    standing : mapping of str to ndarray of bool (N,)
        Samples at which a foot certainly stands.
    contradicted : mapping of str to ndarray of bool (N,)
        Samples at which the schedule of the run contradicts the torques; all false where the run has none.
    """

    probability: Mapping[str, Array]
    touching: Mapping[str, Mask]
    standing: Mapping[str, Mask]
    contradicted: Mapping[str, Mask]

    def widened(self, samples: int) -> dict[str, Mask]:
        """`touching`, longer by some samples on either side, as a filter does to forces."""
        wide = np.ones(2 * samples + 1, dtype=bool)
        return {foot: scipy.ndimage.binary_dilation(mask, wide) for foot, mask in self.touching.items()}


def vertical_forces(robot: Robot, run: Run, feet: Sequence[Contact], *, imu: str | None = None) -> Array:
    """Vertical force (N, foot) in N of the floor on each foot, from the torques of the legs and the model.

    Parameters
    ----------
    robot : Robot
        The robot with its a-priori parameters.
    run : Run
        Encoders, torques and inertial unit.
    feet : sequence of Contact
        The feet.
    imu : str, optional
        Frame of the inertial unit, by default the base link.

    Returns
    -------
    ndarray, shape (N, foot)
    """
    signal = check_imu(run)
    if run.torque is None:
        raise DataError(f"run '{run.name}' has no torques")
    rate = 1.0 / run.step
    cutoff = min(_CUTOFF, 0.4 * rate)
    q = lowpass(run.q, cutoff, rate)
    v = derivative(q, rate)
    mount = placement_in_base(robot, np.zeros((1, robot.nq)), imu or robot.links[0].name)[0]
    still = lowpass(signal, cutoff, rate)
    down = np.array(robot.gravity, dtype=float)
    # Gravity is left to the accelerometer: at zero specific force the base would fall freely.
    base = base_from_imu(run.t, still[:, 3:], still[:, :3], gravity=down, placement=mount)
    assert base.twist is not None and base.acceleration is not None
    state = (
        np.hstack([base.pose, q]),
        np.hstack([base.twist, v]),
        np.hstack([base.acceleration, derivative(v, rate)]),
    )
    missing = inverse_dynamics(robot, *state)[:, 6:] - lowpass(run.torque, cutoff, rate)
    jacobian = contact_jacobian(robot, state[0], feet)[:, :, 6:]
    force = np.einsum("nij,nj->ni", np.linalg.pinv(np.swapaxes(jacobian, 1, 2), rcond=1e-3), missing)
    up = lowpass(signal[:, :3] @ mount[:3, :3].T, min(2.0, cutoff), rate)
    up = up / np.linalg.norm(up, axis=1, keepdims=True)
    out, first = np.empty((len(q), len(feet))), 0
    for k, foot in enumerate(feet):
        axes = placement_in_base(robot, state[0], foot.frame)[:, :3, :3]
        out[:, k] = np.einsum("ni,nji,nj->n", force[:, first : first + 3], axes, up)
        first += foot.rows
    return out


def contact_schedule(robot: Robot, run: Run, feet: Sequence[Contact], *, imu: str | None = None) -> Schedule:
    """Contacts of a run from its schedule, if it has one, and from the torques of the legs.

    Parameters
    ----------
    robot : Robot
        The robot with its a-priori parameters.
    run : Run
        Encoders, torques, inertial unit, and `contacts`: whether each foot touches, from a gait or from foot switches.
    feet : sequence of Contact
        The feet.
    imu : str, optional
        Frame of the inertial unit, by default the base link.

    Returns
    -------
    Schedule

    Raises
    ------
    DataError
        If the run has contacts that are none of the feet, or no foot touches at any sample.
    """
    names = [foot.frame for foot in feet]
    unknown = next((name for name in run.contacts if name not in names), None)
    if unknown is not None:
        raise DataError(f"run '{run.name}' has a contact of '{unknown}', which is none of the feet {', '.join(names)}")
    force = vertical_forces(robot, run, feet, imu=imu)
    weight = float(np.mean(np.maximum(force, 0.0).sum(axis=1)))
    share = force / max(weight, 1e-9)
    probability = _logistic(share)
    # A foot that seems to pull tells that the model is wrong there: its force is unknown, too.
    loaded = _logistic(np.abs(share))
    shortest = max(1, round(_SHORTEST / run.step))
    touching, standing, contradicted = {}, {}, {}
    for k, foot in enumerate(names):
        air, stands = loaded[:, k] < _AIR, probability[:, k] > _STANDS
        stands = scipy.ndimage.binary_opening(stands, np.ones(shortest, dtype=bool))
        given = run.contacts.get(foot)
        touching[foot], standing[foot] = ~air, stands
        contradicted[foot] = np.zeros(len(run.t), dtype=bool)
        if given is not None:
            told = given > 0.5
            contradicted[foot] = (told & air) | (~told & stands)
            touching[foot] = touching[foot] | told
            standing[foot] = stands & told
    if weight <= 0.0 or not any(mask.any() for mask in standing.values()):
        raise DataError(f"run '{run.name}': no foot stands at any sample: {', '.join(names)}")
    named = {foot: probability[:, k] for k, foot in enumerate(names)}
    return Schedule(named, touching, standing, contradicted)


def _logistic(share: Array) -> Array:
    """Probability of a contact with a force in shares of the weight."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip((share - _MIDDLE) / _WIDTH, -50.0, 50.0))))
