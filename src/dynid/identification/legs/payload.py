"""A payload on the trunk of a robot on its legs, as the difference to the robot without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.wls import wls
from dynid.identification.jackknife import jackknife
from dynid.identification.legs.contacts import Contact, as_contacts
from dynid.identification.legs.estimation import LEG_SIGNALS, whitened
from dynid.identification.legs.result import LegsEstimate, trunk_of
from dynid.identification.legs.runs import prepare_legs
from dynid.identification.legs.structure import mode_name
from dynid.markup import HtmlSummary
from dynid.parameters.base import BaseParameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.threads import one_blas_thread

__all__ = ["TrunkPayload", "identify_trunk_payload"]

Array = NDArray[np.float64]

# The legs are the same with and without the payload, whatever they are.
_SAME_LEGS = 1e-3


@dataclass(frozen=True, eq=False)
class TrunkPayload(HtmlSummary):
    """Mass and centre of mass of what the trunk carries.

    Attributes
    ----------
    mass, mass_std : float
        Mass in kg and its standard deviation.
    center, center_std : ndarray (3,)
        Centre of mass in the frame of the trunk, m, and its standard deviation.
    parameters, std : ndarray (10,)
        All inertial parameters of the payload and their standard deviations, in the frame of the trunk.
    """

    mass: float
    mass_std: float
    center: Array
    center_std: Array
    parameters: Array
    std: Array

    def summary(self) -> str:
        """One line.

        Returns
        -------
        str
        """
        where = ", ".join(f"{1e3 * x:.1f}" for x in self.center)
        stds = ", ".join(f"{1e3 * x:.1f}" for x in self.center_std)
        return (
            f"payload on the trunk: {self.mass:.4g} kg (standard deviation {self.mass_std:.2g}), centre of mass at "
            f"{where} mm ({stds})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Values ready for JSON.

        Returns
        -------
        dict
        """
        return {
            "mass": self.mass,
            "mass_std": self.mass_std,
            "center": self.center.tolist(),
            "center_std": self.center_std.tolist(),
            "parameters": self.parameters.tolist(),
            "std": self.std.tolist(),
        }


def identify_trunk_payload(
    unloaded: LegsEstimate | Robot,
    recording: Recording,
    feet: Sequence[Contact | str] | None = None,
    *,
    imu: str | None = None,
    foot_std: float = 0.03,
) -> TrunkPayload:
    """Identify a payload that is fixed to the trunk from runs with it and the robot without it.

    Parameters
    ----------
    unloaded : LegsEstimate or Robot
        The robot without the payload, identified or known.
    recording : Recording
        Runs with the payload: torques, encoders and inertial unit.
    feet : sequence of Contact or str, optional
        The feet; those of the estimate if one is given.
    imu : str, optional
        Frame of the inertial unit; that of the estimate if one is given.
    foot_std : float
        Standard deviation (m/s) of the velocity of a foot at rest.

    Returns
    -------
    TrunkPayload

    Raises
    ------
    DataError
        If there are no feet, or the payload has no positive mass.
    """
    if isinstance(unloaded, LegsEstimate):
        robot, contacts, imu = unloaded.identified_robot, unloaded.contacts, imu or unloaded.imu
        settings = unloaded.estimate.signals
    else:
        if feet is None:
            raise DataError("feet are needed beside a robot; an estimate knows its own")
        robot, contacts, settings = unloaded, as_contacts(unloaded, feet), LEG_SIGNALS
    runs = prepare_legs(robot, recording, contacts, imu=imu, signals=settings, foot_std=foot_std, every=None)
    base = _trunk_alone(robot, contacts)
    with one_blas_thread():
        observation, _, _, _ = whitened(robot, base, runs, contacts, settings, robot.parameters)
        solution = wls(observation)
        blocks = jackknife(observation, solution.beta, solution.noise)
    white = np.sqrt(np.diag(solution.covariance))
    ratio = np.ones(10) if blocks is None else np.maximum(blocks.ratio, 1.0)
    covariance = solution.covariance * np.outer(ratio, ratio)
    if isinstance(unloaded, LegsEstimate):
        covariance = covariance + _of_unloaded(unloaded)
    mass = float(solution.beta[0])
    if mass <= 0:
        raise DataError(f"the difference to the robot without payload has the mass {mass:.3g} kg: there is no payload")
    center = solution.beta[1:4] / mass
    slopes = np.hstack([-center[:, None] / mass, np.eye(3) / mass])
    std = np.sqrt(np.maximum(np.diag(covariance), white**2))
    return TrunkPayload(
        mass,
        float(std[0]),
        center,
        np.sqrt(np.diag(slopes @ covariance[:4, :4] @ slopes.T)),
        solution.beta,
        std,
    )


def _trunk_alone(robot: Robot, contacts: Sequence[Contact]) -> BaseParameters:
    """The ten parameters of the trunk as base parameters: all others are known."""
    matrix = np.zeros((10, len(robot.layout)))
    matrix[:, :10] = np.eye(10)
    rest = tuple(range(10, len(robot.layout)))
    name = mode_name(tuple(contacts))
    return BaseParameters(robot, (name,), "known", matrix, tuple(range(10)), rest, np.ones(10), np.inf, rest)


def _of_unloaded(unloaded: LegsEstimate) -> Array:
    """Covariance (10, 10) of the mass and centre of the trunk without payload, for the same legs in both."""
    trunk = trunk_of(unloaded.estimate, _SAME_LEGS)
    out = np.zeros((10, 10))
    out[0, 0] = trunk.mass_std**2
    out[1:4, 1:4] = np.diag((trunk.mass * trunk.center_std) ** 2)
    return out
