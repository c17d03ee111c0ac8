"""Audit of a model: mass matrix over poses, physical consistency, plausibility of bodies, and a free fall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.model.free_fall import FreeFall, Method, free_fall
from dynid.assessment.model.plausible import BodyFinding, implausible_bodies
from dynid.dynamics.assembly import reachable_postures
from dynid.dynamics.batch import as_parameters
from dynid.dynamics.functions import mass_matrix
from dynid.errors import InvalidValue
from dynid.markup import HtmlSummary
from dynid.robot.consistency import drive_violations, link_violations
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

__all__ = ["Audit", "MassMatrices", "audit", "mass_matrices", "positive_definite", "random_poses"]

Array = NDArray[np.float64]

_ROUNDING = 1e-14  # of the largest eigenvalue; smaller eigenvalues count as zero


@dataclass(frozen=True, eq=False)
class MassMatrices:
    """Mass matrices at random poses.

    Attributes
    ----------
    poses : int
        Number of poses.
    positive : int
        Number of poses at which the mass matrix is positive definite.
    smallest : float
        Smallest eigenvalue at all poses.
    pose : ndarray, shape (nq,)
        Pose of the smallest eigenvalue.
    rotor_inertia : bool
        Whether rotor inertias are included.
    """

    poses: int
    positive: int
    smallest: float
    pose: Array
    rotor_inertia: bool

    @property
    def ratio(self) -> float:
        """Share of the poses at which the mass matrix is positive definite."""
        return self.positive / self.poses


@dataclass(frozen=True, eq=False)
class Audit(HtmlSummary):
    """Result of the audit of a model.

    Attributes
    ----------
    robot : str
        Name of the robot.
    mass : MassMatrices
        Mass matrices at random poses.
    links : dict of str to list of str, or None
        Links that are not physically consistent, and why; None where not checked.
    drives : dict of str to str, or None
        Friction and rotor inertias of the wrong sign; None where not checked.
    bodies : tuple of BodyFinding, or None
        Bodies that are implausible for the size of their links; None where not checked.
    fall : FreeFall
        Free fall.
    """

    robot: str
    mass: MassMatrices
    links: dict[str, list[str]] | None
    drives: dict[str, str] | None
    bodies: tuple[BodyFinding, ...] | None
    fall: FreeFall

    @property
    def ok(self) -> bool:
        """Whether all checks passed. Other poses than those tried may still have an indefinite mass matrix."""
        return self.moves and not self.links and not self.drives and not self.bodies

    @property
    def moves(self) -> bool:
        """Whether the model can be simulated: positive definite mass matrix and physical free fall."""
        return self.mass.positive == self.mass.poses and self.fall.ok

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.ok:
            return "no problem was found in this model"
        if self.moves and (self.links or self.drives):
            return "the model can be simulated, but its bodies or drives are not physically consistent"
        if self.moves:
            return "the model can be simulated, but some of its bodies are not plausible"
        return "the model is not usable: it cannot be simulated"

    def summary(self) -> str:
        """Return the result as text."""
        mass, fall = self.mass, self.fall
        without = "" if mass.rotor_inertia else " without rotor inertias"
        at = ", ".join(f"{x:.3g}" for x in mass.pose)
        lines = [
            f"{self.robot}: {self.verdict}",
            f"mass matrix{without}: positive definite at {mass.positive} of {mass.poses} random poses; "
            f"smallest eigenvalue {mass.smallest:.4g} at q = ({at})",
        ]
        if self.links is None or self.drives is None:
            lines.append("bodies and drives: not checked")
        else:
            lines += [f"body {name}: {'; '.join(reasons)}" for name, reasons in self.links.items()]
            lines += [f"drive {name}: {reason}" for name, reason in self.drives.items()]
            if not self.links and not self.drives:
                lines.append("bodies and drives: all physically consistent")
        lines += [
            f"implausible: {f.what}; {f.what_to_do}" for f in self.bodies or () if f.link not in (self.links or {})
        ]
        line = f"free fall of {fall.seconds:g} s: {fall.verdict}"
        if fall.died is not None:
            line += f", {fall.cause}"
        else:
            line += f", from {fall.energy[0]:.6g} to {fall.energy[-1]:.6g} J, largest rise {fall.rise:.2g} J"
        return "\n".join([*lines, line])

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain data for JSON."""
        return {
            "robot": self.robot,
            "ok": self.ok,
            "verdict": self.verdict,
            "mass_matrix": {
                "poses": self.mass.poses,
                "positive_definite": self.mass.positive,
                "ratio": self.mass.ratio,
                "smallest_eigenvalue": self.mass.smallest,
                "pose": self.mass.pose.tolist(),
                "rotor_inertia": self.mass.rotor_inertia,
            },
            "links": self.links,
            "drives": self.drives,
            "bodies": None if self.bodies is None else [f.to_dict() for f in self.bodies],
            "free_fall": self.fall.to_dict(),
        }


def audit(
    robot: Robot,
    parameters: ArrayLike | None = None,
    *,
    poses: int = 10_000,
    seed: int = 0,
    limits: bool = True,
    rotor_inertia: bool = True,
    bodies: bool = True,
    start: ArrayLike | None = None,
    seconds: float = 2.0,
    offsets: bool = False,
    steepness: float = 100.0,
    method: Method = "LSODA",
) -> Audit:
    """Check whether a model can be simulated and used in a controller.

    Parameters
    ----------
    robot : Robot
        Robot to check.
    parameters : array_like, shape (p,), optional
        Standard parameters; by default those of the robot. For base parameters give `base.join(beta)` and
        `bodies=False`: mass matrices and fall depend on base parameters only, but the split into bodies is arbitrary.
    poses : int
        Number of random poses for the mass matrix.
    seed : int
        Seed of the random poses.
    limits : bool
        Whether the poses lie within the joint limits, see `mass_matrices`.
    rotor_inertia : bool
        Whether rotor inertias count in the mass matrix.
    bodies : bool
        Whether links and drives are checked one by one, for physical consistency and for plausibility.
    start : array_like, shape (nq,), optional
        Initial pose (rad, m) of the free fall; by default zero.
    seconds : float
        Duration (s) of the free fall.
    offsets : bool
        Whether constant offsets of the drives act in the free fall.
    steepness : float
        Slope (s/rad) of the Coulomb friction in the free fall, see `free_fall`.
    method : {"LSODA", "RK45"}
        Integrator of the free fall.

    Returns
    -------
    Audit

    Raises
    ------
    DataError
        If a setting is out of range.

    Examples
    --------
    >>> import dynid
    >>> dynid.assessment.audit(dynid.load_robot("tx40"), poses=500, seconds=0.5).ok
    True
    """
    pi = as_parameters(robot, parameters)
    return Audit(
        robot.name,
        mass_matrices(robot, pi, poses=poses, seed=seed, limits=limits, rotor_inertia=rotor_inertia),
        link_violations(robot, pi, massless=False) if bodies else None,
        drive_violations(robot, pi) if bodies else None,
        implausible_bodies(robot, pi) if bodies else None,
        free_fall(robot, pi, start=start, seconds=seconds, offsets=offsets, steepness=steepness, method=method),
    )


def mass_matrices(
    robot: Robot,
    parameters: ArrayLike | None = None,
    *,
    poses: int = 10_000,
    seed: int = 0,
    limits: bool = True,
    rotor_inertia: bool = True,
) -> MassMatrices:
    """Compute the eigenvalues of the mass matrix at random poses.

    Parameters
    ----------
    robot : Robot
        Robot to check.
    parameters : array_like, shape (p,), optional
        Standard parameters; by default those of the robot.
    poses : int
        Number of poses, uniformly distributed within the joint limits.
    seed : int
        Seed of the random poses.
    limits : bool
        Whether joint limits hold. Joints without limits range from -pi to pi rad, or from -1 to 1 m.
    rotor_inertia : bool
        Whether rotor inertias count. They can hide bodies that are not physically consistent.

    Returns
    -------
    MassMatrices

    Raises
    ------
    DataError
        If there is no pose.
    """
    if poses < 1:
        raise InvalidValue(f"an audit needs at least one pose, got {poses}", "poses")
    pi = as_parameters(robot, parameters).copy()
    if not rotor_inertia:
        pi[[robot.parameter_names.index(t.name) for t in robot.drives if t.kind == TermKind.INERTIA]] = 0.0
    q = random_poses(robot, poses, seed, limits)
    eigenvalues = np.asarray(np.linalg.eigvalsh(mass_matrix(robot, q, pi)), dtype=float)
    smallest = eigenvalues[:, 0]
    worst = int(np.argmin(smallest))
    positive = int(np.count_nonzero(positive_definite(eigenvalues)))
    return MassMatrices(poses, positive, float(smallest[worst]), q[worst], rotor_inertia)


def positive_definite(eigenvalues: Array) -> NDArray[np.bool_]:
    """Which matrices (N,) are positive definite, by their eigenvalues (N, n) in ascending order."""
    return np.asarray(eigenvalues[:, 0] > _ROUNDING * np.abs(eigenvalues).max(axis=1))


def random_poses(robot: Robot, poses: int, seed: int, limits: bool = True) -> Array:
    """Random poses (poses, nq)."""
    low, high = np.empty((2, robot.n))
    for i, joint in enumerate(j for j in robot.joints if j.name in robot.coordinates):
        half = np.pi if joint.kind == "revolute" else 1.0
        lower, upper = (joint.limits.lower, joint.limits.upper) if limits else (-np.inf, np.inf)
        if np.isinf(lower):
            lower = upper - 2 * half if np.isfinite(upper) else -half
        low[i], high[i] = lower, upper if np.isfinite(upper) else lower + 2 * half
    q = np.zeros((poses, robot.nq))
    if robot.base == "floating":
        q[:, 6] = 1.0  # the mass matrix in body axes does not depend on where the base is
    joints = np.random.default_rng(seed).uniform(low, high, (poses, robot.n))
    q[:, robot.nq - robot.n :] = reachable_postures(robot, joints - robot.home) if robot.loops else joints
    return q
