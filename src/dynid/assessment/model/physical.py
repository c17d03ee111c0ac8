"""Is a model physically usable? Mass matrix over poses, bodies and drives one by one, and a free fall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.model.free_fall import FreeFall, Method, free_fall
from dynid.dynamics.batch import as_parameters
from dynid.dynamics.functions import mass_matrix
from dynid.errors import DataError
from dynid.robot.drives import TermKind
from dynid.robot.inertia import inertia_violations
from dynid.robot.model import Robot

__all__ = ["Audit", "MassMatrices", "audit", "drive_violations", "link_violations", "mass_matrices"]

Array = NDArray[np.float64]

_FRICTION = tuple(TermKind)[TermKind.VISCOUS : TermKind.OFFSET]
_ROUNDING = 1e-14  # of the largest eigenvalue: what is not above is zero


@dataclass(frozen=True, eq=False)
class MassMatrices:
    """Mass matrices over random poses: how many are positive definite, and the worst of them.

    `smallest` is the smallest eigenvalue of all, found at `pose` (nq,).
    """

    poses: int
    positive: int
    smallest: float
    pose: Array
    rotor_inertia: bool

    @property
    def ratio(self) -> float:
        """Share of the poses where the mass matrix is positive definite."""
        return self.positive / self.poses


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found of a model.

    `links` and `drives` name what no body and no drive can have, and why; both are None where not judged.
    """

    robot: str
    mass: MassMatrices
    links: dict[str, list[str]] | None
    drives: dict[str, str] | None
    fall: FreeFall

    @property
    def ok(self) -> bool:
        """Whether nothing was found against the model. Poses that were not tried may still hold a surprise."""
        return self.moves and not self.links and not self.drives

    @property
    def moves(self) -> bool:
        """Whether the model moves as a machine does, possible bodies or not: good enough for a simulator."""
        return self.mass.positive == self.mass.poses and self.fall.ok

    @property
    def verdict(self) -> str:
        """The whole in one line."""
        if self.ok:
            return "nothing speaks against this model"
        if self.moves:
            return "it moves as a machine does, but no real bodies and drives have these parameters"
        return "this model is not usable: it does not move as a machine does"

    def summary(self) -> str:
        """The findings, a line each."""
        mass, fall = self.mass, self.fall
        without = "" if mass.rotor_inertia else " without rotor inertias"
        at = ", ".join(f"{x:.3g}" for x in mass.pose)
        lines = [
            f"{self.robot}: {self.verdict}",
            f"mass matrix{without}: positive definite at {mass.positive} of {mass.poses} random poses; "
            f"smallest eigenvalue {mass.smallest:.4g} at q = ({at})",
        ]
        if self.links is None or self.drives is None:
            lines.append("bodies and drives: not judged one by one")
        else:
            lines += [f"body {name}: {'; '.join(reasons)}" for name, reasons in self.links.items()]
            lines += [f"drive {name}: {reason}" for name, reason in self.drives.items()]
            if not self.links and not self.drives:
                lines.append("bodies and drives: all physically possible")
        line = f"free fall of {fall.seconds:g} s: {fall.verdict}"
        if fall.died is not None:
            line += f", {fall.cause}"
        else:
            line += f", from {fall.energy[0]:.6g} to {fall.energy[-1]:.6g} J, largest rise {fall.rise:.2g} J"
        return "\n".join([*lines, line])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
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
    """Whether a robot, with its own or other standard `parameters` (p,), can be simulated and controlled.

    Mass matrices at random `poses` (see `mass_matrices`), every link and drive by itself, and a fall of `seconds`
    from the pose `start` without torque (see `free_fall`). For base parameters give `base.join(beta)` and
    `bodies=False`: the mass matrices and the fall are theirs, but the split into bodies is arbitrary.

    >>> import dynid
    >>> dynid.assessment.audit(dynid.load_robot("tx40"), poses=500, seconds=0.5).ok
    True
    """
    pi = as_parameters(robot, parameters)
    return Audit(
        robot.name,
        mass_matrices(robot, pi, poses=poses, seed=seed, limits=limits, rotor_inertia=rotor_inertia),
        link_violations(robot, pi) if bodies else None,
        drive_violations(robot, pi) if bodies else None,
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
    """Eigenvalues of the mass matrix at random `poses`, evenly spread within the joint limits.

    A joint without limits, or every joint with `limits=False`, turns from -pi to pi or slides from -1 to 1 m.
    `rotor_inertia=False` leaves the bodies alone: rotors can hide that those are impossible.
    """
    if poses < 1:
        raise DataError(f"an audit needs at least one pose, got {poses}")
    pi = as_parameters(robot, parameters).copy()
    if not rotor_inertia:
        pi[[robot.parameter_names.index(t.name) for t in robot.drives if t.kind == TermKind.INERTIA]] = 0.0
    q = _random_poses(robot, poses, seed, limits)
    eigenvalues = np.linalg.eigvalsh(mass_matrix(robot, q, pi))
    smallest, largest = eigenvalues[:, 0], np.abs(eigenvalues).max(axis=1)
    worst = int(np.argmin(smallest))
    positive = int(np.count_nonzero(smallest > _ROUNDING * largest))
    return MassMatrices(poses, positive, float(smallest[worst]), q[worst], rotor_inertia)


def link_violations(robot: Robot, parameters: ArrayLike | None = None) -> dict[str, list[str]]:
    """Links whose inertia no body can have, and why."""
    inertial = [p.inertial for p in robot.layout]
    numbers = as_parameters(robot, parameters)[inertial].reshape(-1, 10)
    out = {}
    for i, ten in zip(robot.parameter_links, numbers, strict=True):
        broken = inertia_violations(ten) if np.any(ten) else ["no inertia given"]
        if broken:
            out[robot.links[i].name] = broken
    return out


def drive_violations(robot: Robot, parameters: ArrayLike | None = None) -> dict[str, str]:
    """Friction and rotor inertias of the wrong sign, by name."""
    value = dict(zip(robot.parameter_names, as_parameters(robot, parameters), strict=True))
    out = {}
    for term in robot.drives:
        number = value[term.name]
        if term.kind == TermKind.INERTIA and number < 0:
            out[term.name] = f"rotor inertia {number:.4g} {term.units} is negative"
        elif term.kind in _FRICTION and number < 0:
            out[term.name] = f"friction {number:.4g} {term.units} is negative: it drives instead of braking"
    return out


def _random_poses(robot: Robot, poses: int, seed: int, limits: bool) -> Array:
    low, high = np.empty((2, robot.n))
    for i, joint in enumerate(j for j in robot.joints if j.mimic is None):
        half = np.pi if joint.kind == "revolute" else 1.0
        lower, upper = (joint.limits.lower, joint.limits.upper) if limits else (-np.inf, np.inf)
        if np.isinf(lower):
            lower = upper - 2 * half if np.isfinite(upper) else -half
        low[i], high[i] = lower, upper if np.isfinite(upper) else lower + 2 * half
    q = np.zeros((poses, robot.nq))
    if robot.base == "floating":
        q[:, 6] = 1.0  # the mass matrix in body axes does not depend on where the base is
    q[:, robot.nq - robot.n :] = np.random.default_rng(seed).uniform(low, high, (poses, robot.n))
    return q
