"""How the mass matrix becomes positive definite along a line between two sets of base parameters.

Sousa (2014), section 6.1: the share of random poses with a positive definite mass matrix is one from some point of the
line on, although the parameters there are not yet physically consistent. Sampling poses does not show that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.model.physical import positive_definite, random_poses
from dynid.attached import attached
from dynid.dynamics.functions import mass_matrix
from dynid.errors import DataError, InvalidValue
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.queries import is_feasible
from dynid.parameters.base import BaseParameters
from dynid.results import Result, Table, about, framed
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["LineScan", "scan_line"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LineScan(Result):
    """Mass matrices and physical consistency of the points of a line."""

    tables = (
        Table(
            "line scan",
            "k",
            framed(place="place", ratio="ratio", smallest="smallest", margin="margin", status="status"),
        ),
    )

    place: Array = field(metadata=about("Place on the line: 0 is its start, 1 its end.", size=("k",)))
    ratio: Array = field(metadata=about("Share of the poses whose mass matrix is positive definite.", size=("k",)))
    smallest: Array = field(metadata=about("Smallest eigenvalue of all mass matrices.", size=("k",)))
    margin: Array = field(
        metadata=about(
            "Margin of the feasibility test, negative where the parameters are not physically consistent.", size=("k",)
        )
    )
    status: tuple[str, ...] = field(metadata=about('"feasible", "infeasible" or "undecided" for each point.'))
    poses: int = field(metadata=about("Number of poses."))

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Points (k,) that are infeasible although all sampled mass matrices are positive definite."""
        return (self.ratio == 1.0) & (np.array(self.status) == "infeasible")

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> NDArray[Any]:
        """Draw the share of positive definite mass matrices, and the margin of the feasibility test below it.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            Where to draw: two axes, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (2,)

        Raises
        ------
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, ax)
        return axes


def scan_line(
    base: BaseParameters,
    start: ArrayLike,
    end: ArrayLike,
    *,
    points: int = 51,
    poses: int = 10_000,
    constraints: Constraints = "semi",
    seed: int = 0,
) -> LineScan:
    """Share of positive definite mass matrices along a line of base parameters, beside the feasibility test.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    start, end : array_like, shape (b,)
        Their values at both ends of the line, such as an infeasible estimate and the feasible one.
    points : int
        Number of points, both ends included.
    poses : int
        Number of random poses, uniformly distributed within the joint limits.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`. Whatever is "semi"-consistent has a positive
        definite mass matrix at every pose.
    seed : int
        Seed of the poses, the same ones at every point.

    Returns
    -------
    LineScan

    Raises
    ------
    DataError
        For wrong shapes, and fewer than two points or no pose.
    DynidError
        If the solver of the feasibility test fails.

    Examples
    --------
    >>> import dynid
    >>> base = dynid.base_parameters(dynid.load_robot("box2"))
    >>> found = dynid.assessment.scan_line(base, -base.values(), base.values(), points=5, poses=100)
    >>> found.ratio[0], found.ratio[-1], found.status[-1]
    (np.float64(0.0), np.float64(1.0), 'feasible')
    """
    if points < 2 or poses < 1:
        raise InvalidValue(f"a line needs two points and one pose at least, got {points} and {poses}", "points")
    words = f"base parameters of robot '{base.robot.name}'"
    first, last = (checked(x, (base.count,), words, DataError) for x in (start, end))
    q = random_poses(base.robot, poses, seed)
    # The mass matrix is linear in the parameters: two evaluations are enough.
    ends = [mass_matrix(base.robot, q, base.join(x)) for x in (first, last)]
    place = np.linspace(0.0, 1.0, points)
    ratio, smallest, margin, status = np.empty(points), np.empty(points), np.empty(points), list[str]()
    for k, share in enumerate(place):
        eigenvalues = np.asarray(np.linalg.eigvalsh((1.0 - share) * ends[0] + share * ends[1]), dtype=float)
        ratio[k] = np.mean(positive_definite(eigenvalues))
        smallest[k] = eigenvalues[:, 0].min()
        test = is_feasible(base, (1.0 - share) * first + share * last, constraints)
        margin[k] = test.margin
        status.append(test.status)
    return LineScan(place, ratio, smallest, margin, tuple(status), poses)
