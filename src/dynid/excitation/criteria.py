"""Criteria of optimal experiment design on the observation matrix of a motion, with their gradients.

Rows of each channel are divided by its noise and columns multiplied by a typical size of the parameter, so that the
result does not depend on units. Small values are good in every criterion.

With A the scaled rows W size / noise and its singular values s_1 >= ... >= s_b:

    d            -log det(A'A) / (2 b)                     hadamard     -mean of log |A_i|
    a            log(tr((A'A)^-1) / b) / 2                 frobenius    log(|A| |A^+|) in the Frobenius norm
    e            log(sum of s_i^-p) / p, p = 24            cond         e + log(sum of s_i^p) / p

Sources: Pukelsheim, Optimal Design of Experiments (1993), for the letters; Gautier and Khalil, Exciting Trajectories
for the Identification of Base Inertial Parameters of Robots (1992), for the condition number; Swevers, Ganseman, Tukel,
De Schutter and Van Brussel, Optimal Robot Excitation and Identification (1997), for d. The smooth extremes are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, MissingArgument, NotApplicable, UnknownName, named
from dynid.parameters.base import BaseParameters

__all__ = ["CRITERIA", "SUMS", "Criterion", "make_criterion"]

Array = NDArray[np.float64]
# Value, and its derivative with respect to every entry of the matrix.
Scalar = tuple[float, Array]

# Exponent of the smooth stand-in for the largest and the smallest singular value.
_SHARP = 24.0


def log_determinant(A: Array) -> Scalar:
    """D: minus the mean logarithm of the singular values, the volume of the confidence ellipsoid."""
    root = _root(A)
    if root is None:
        return np.inf, np.zeros_like(A)
    size = A.shape[1]
    value = -float(np.log(np.diag(root[0])).sum()) / size
    # The inverse is small, the matrix tall: a product costs less than as many solves.
    return value, A @ (scipy.linalg.cho_solve(root, np.eye(size)) / -size)


def trace_of_covariance(A: Array, weights: Array | None = None) -> Scalar:
    """A: half the logarithm of the mean variance, of the parameters or of their combinations `weights` (b, k) (G)."""
    root = _root(A)
    if root is None:
        return np.inf, np.zeros_like(A)
    C = np.eye(A.shape[1]) if weights is None else weights
    solved = scipy.linalg.cho_solve(root, C)
    total = float(np.sum(C * solved))
    return 0.5 * float(np.log(total / C.shape[1])), -(A @ solved) @ solved.T / total


def _root(A: Array) -> tuple[Array, bool] | None:
    """Cholesky factor of A'A; None if A is rank deficient.

    Designs have condition numbers far below 1e8, so squaring loses no digits that matter, in a third of the time.
    """
    try:
        root = scipy.linalg.cholesky(A.T @ A, lower=True)
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diag(root)
    return (root, True) if diagonal.min() > 1e-7 * diagonal.max() else None


def smallest_singular_value(A: Array) -> Scalar:
    """E: minus the logarithm of the smallest singular value, smoothed where several are close."""
    return _spectral(A, top=False)


def condition_number(A: Array) -> Scalar:
    """Logarithm of the condition number, smoothed where singular values are close."""
    return _spectral(A, top=True)


def _spectral(A: Array, top: bool) -> Scalar:
    u, s, vt = np.linalg.svd(A, full_matrices=False)
    if s[-1] <= 1e-14 * s[0]:
        return np.inf, np.zeros_like(A)
    low = (s / s[-1]) ** -_SHARP
    value = float(np.log(low.sum()) / _SHARP - np.log(s[-1]))
    slope = -low / low.sum() / s
    if top:
        high = (s / s[0]) ** _SHARP
        value += float(np.log(high.sum()) / _SHARP + np.log(s[0]))
        slope = slope + high / high.sum() / s
    return value, (u * slope) @ vt


def column_norms(A: Array) -> Scalar:
    """Minus the mean logarithm of the column norms; by Hadamard's inequality at most the value of `log_determinant`."""
    squares = np.sum(A**2, axis=0)
    if not np.all(squares > 0):
        return np.inf, np.zeros_like(A)
    return -0.5 * float(np.mean(np.log(squares))), -A / (squares * A.shape[1])


def frobenius_condition_number(A: Array) -> Scalar:
    """Logarithm of the condition number in the Frobenius norm, |A| |A+|: smooth, and at least the number of columns."""
    root = _root(A)
    if root is None:
        return np.inf, np.zeros_like(A)
    inverse = scipy.linalg.cho_solve(root, np.eye(A.shape[1]))
    squares, inverses = float(np.sum(A**2)), float(np.trace(inverse))
    slope = A / squares - A @ (inverse @ inverse) / inverses
    return 0.5 * float(np.log(squares) + np.log(inverses)), slope


CRITERIA: dict[str, Callable[[Array], Scalar]] = {
    "d": log_determinant,
    "a": trace_of_covariance,
    "e": smallest_singular_value,
    "cond": condition_number,
    "hadamard": column_norms,
    "frobenius": frobenius_condition_number,
}
# Sums of the condition numbers of the links: of all their columns and drives, or of some columns times the link's mass.
SUMS: dict[str, tuple[str, ...]] = {
    "sum-cond": (),
    "mass-static": ("m", "mx", "my", "mz"),
    "mass-dynamic": ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
}


@dataclass(frozen=True, eq=False)
class Criterion:
    """A scalar of the base regressor W (N, channel, b), and its gradient over W.

    Attributes
    ----------
    name : str
    base : BaseParameters
    function : callable
        Value and gradient for a matrix.
    noise : array, shape (channel,)
        The standard deviation of each channel.
    size : array, shape (b,)
        Typical size of each base parameter.
    parts : tuple
        Channels and columns of the submatrices whose values are summed.
    shares : tuple of float
        Factor of each of several submatrices in the sum.
    known : array, shape (k, b)
        Rows of information from previous recordings.
    weights : array, shape (b, k), or None
        Combinations of the scaled parameters whose mean variance "sigma" and "torque" minimise.
    """

    name: str
    base: BaseParameters
    function: Callable[[Array], Scalar]
    noise: Array
    size: Array
    parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    known: Array
    weights: Array | None = None
    shares: tuple[float, ...] = ()

    def __call__(self, W: Array) -> Scalar:
        """Value and gradient (N, channel, b)."""
        if not self.shares:
            value, slope = self._part(W, *self.parts[0])
            return value, slope if slope.shape == W.shape else self._whole(W, slope, *self.parts[0])
        gradient = np.zeros_like(W)
        total = 0.0
        for (channels, columns), share in zip(self.parts, self.shares, strict=True):
            value, slope = self._part(W, channels, columns)
            if not np.isfinite(value):
                return np.inf, gradient
            # The sum is over condition numbers, not over their logarithms.
            factor = share * np.exp(value)
            total += factor
            gradient += self._whole(W, factor * slope, channels, columns)
        return total, gradient

    def _part(self, W: Array, channels: tuple[int, ...], columns: tuple[int, ...]) -> Scalar:
        """Value of one part, and its gradient over the part's own rows and columns."""
        whole = len(channels) == W.shape[1] and len(columns) == W.shape[2]
        weight = self.size[list(columns)] / self.noise[list(channels), None]
        rows = (W if whole else W[:, channels][:, :, columns]) * weight
        stacked = rows.reshape(-1, len(columns))
        if len(self.known):
            stacked = np.vstack([stacked, self.known[:, columns] * self.size[list(columns)]])
        value, slope = self.function(stacked)
        return value, slope[: rows.shape[0] * rows.shape[1]].reshape(rows.shape) * weight

    @staticmethod
    def _whole(W: Array, slope: Array, channels: tuple[int, ...], columns: tuple[int, ...]) -> Array:
        """Gradient of a part at its place in the whole matrix."""
        out = np.zeros_like(W)
        out[np.ix_(range(len(W)), channels, columns)] = slope
        return out


def make_criterion(
    base: BaseParameters,
    name: str = "d",
    *,
    noise: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    friction: bool = True,
    known: ArrayLike | None = None,
    chosen: Sequence[str] | None = None,
    task: Array | None = None,
    weights: ArrayLike | None = None,
) -> Criterion:
    """A criterion by name.

    Parameters
    ----------
    base : BaseParameters
    name : str
        "d" (volume of the confidence ellipsoid), "a" (mean variance), "e" (smallest singular value), "cond" (condition
        number), "hadamard" (product of the column norms), "frobenius" (condition number in the Frobenius norm),
        "sum-cond" (sum of the condition numbers of the links), "mass-static" and "mass-dynamic" (the same of their
        masses and first moments, or of their inertias, times the link's mass), "sigma" (mean variance of the `chosen`
        parameters) or "torque" (mean variance of torques on `task`).
    noise : array, shape (channel,) or (), optional
        The standard deviation of each channel. Default: 1.
    sizes : array, shape (b,) or (), optional
        Typical size of each base parameter. Default: 1.
    friction : bool
        Whether friction parameters count.
    known : array, shape (k, b), optional
        Rows of information from previous recordings, divided by their noise.
    chosen : sequence of str, optional
        Names of base parameters for "sigma".
    task : array, shape (N, channel, b), optional
        Base regressor of the motion whose torques "torque" is about.
    weights : array, shape (b, k), optional
        Instead of `chosen` or `task`: the combinations themselves, as in `Criterion.weights`.

    Returns
    -------
    Criterion
    """
    b, channels = base.count, len(base.channels)
    std = _positive(noise, channels, "noise")
    size = _positive(sizes, b, "sizes")
    rows = np.zeros((0, b)) if known is None else np.asarray(known, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != b:
        raise InvalidShape(f"known information needs {b} columns, got shape {rows.shape}", "known")
    layout = base.robot.layout
    is_friction = [layout[j].symbol[:2] in ("fv", "fc") for j in base.kept]
    columns = tuple(i for i in range(b) if friction or not is_friction[i])
    everything = tuple(range(channels))
    if name in SUMS:
        parts, shares = _link_parts(base, everything, columns, name)
        return Criterion(name, base, condition_number, std, size, parts, rows, shares=shares)
    parts = ((everything, columns),)
    if name in CRITERIA:
        return Criterion(name, base, CRITERIA[name], std, size, parts, rows)
    if name in ("sigma", "torque") and weights is not None:
        combinations = np.asarray(weights, dtype=float)
        if combinations.ndim != 2 or len(combinations) != len(columns):
            raise InvalidShape(
                f"weights of criterion '{name}' need {len(columns)} rows, got shape {combinations.shape}", "weights"
            )
    elif name == "sigma":
        combinations = _chosen(base, chosen, columns) / size[list(columns), None]
    elif name == "torque":
        if task is None or task.ndim != 3 or task.shape[1:] != (channels, b):
            raise InvalidShape(f"criterion 'torque' needs a task regressor (N, {channels}, {b})", "task")
        rows_of_task = (task / std[:, None] * size).reshape(-1, b)[:, columns]
        combinations = scipy.linalg.qr(rows_of_task, mode="r")[0][: len(columns)].T
    else:
        known_names = ", ".join([*CRITERIA, *SUMS, "sigma", "torque"])
        raise UnknownName(f"{named('criterion')} '{name}' is unknown: use {known_names}")
    return Criterion(
        name, base, partial(trace_of_covariance, weights=combinations), std, size, parts, rows, weights=combinations
    )


def _positive(given: ArrayLike | None, count: int, what: str) -> Array:
    values = np.ones(count) if given is None else np.asarray(given, dtype=float)
    if values.ndim == 0:
        values = np.full(count, float(values))
    if values.shape != (count,) or not np.all(np.isfinite(values)) or not np.all(values > 0):
        raise InvalidValue(f"{what} must be positive numbers, one or {count}")
    return values


def _link_parts(
    base: BaseParameters, channels: tuple[int, ...], columns: tuple[int, ...], name: str
) -> tuple[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], tuple[float, ...]]:
    """The columns of each link, with the rows of all channels, and the factor of its condition number.

    Krishnamoorthi 2018, equation 3-13, takes all columns of a link and its drive; equations 3-11 and 3-12, from Venture
    and others, those of masses and first moments, or of inertias, and weigh links by mass.
    """
    robot, symbols = base.robot, SUMS[name]
    layout = [robot.layout[j] for j in base.kept]
    used = {i for i in columns if not symbols or (layout[i].inertial and layout[i].symbol in symbols)}
    own = {link: [i for i in of_link if i in used] for link, of_link in base.link_columns.items()}
    groups = {link: group for link, group in own.items() if group}
    parts = tuple((channels, tuple(group)) for group in groups.values())
    if not symbols:
        return parts, (1.0,) * len(parts)
    masses = {link.name: float(link.inertia[0]) for link in robot.links}
    # The condition number of one column is 1, whatever it weighs.
    light = [link for link, group in groups.items() if not masses[link] > 0 and len(group) > 1]
    if light or not groups:
        why = f"a mass of link '{light[0]}'" if light else f"base parameters of the kind {', '.join(symbols)}"
        raise NotApplicable(f"criterion '{name}' needs {why}", "criterion")
    return parts, tuple(max(masses[link], 0.0) for link in groups)


def _chosen(base: BaseParameters, names: Sequence[str] | None, columns: tuple[int, ...]) -> Array:
    if not names:
        raise MissingArgument("criterion 'sigma' needs the names of base parameters", "chosen")
    unknown = [n for n in names if n not in base.names]
    if unknown:
        raise UnknownName(f"no base parameter is named '{unknown[0]}'", "chosen")
    out = np.zeros((len(columns), len(names)))
    for k, name in enumerate(names):
        if base.names.index(name) not in columns:
            raise NotApplicable(f"'{name}' is a friction parameter, which this criterion leaves out", "chosen")
        out[columns.index(base.names.index(name)), k] = 1.0
    return out
