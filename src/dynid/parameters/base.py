"""Base parameters: the combinations of standard parameters that are identifiable from the torques.

The structure is computed from the regressor of exact random motion, never from noisy data, or without sampling by the
recursion of `observability`. Columns are scaled first, so that the result does not depend on units (see `rank`).

With a permutation pi = (pi_b, pi_d) of the standard parameters such that the columns of pi_d depend on those of pi_b,

    Y_d = Y_b X for every motion,    Y pi = Y_b beta,    beta = pi_b + X pi_d = K pi.

Sources: Gautier and Khalil, Direct Calculation of Minimum Set of Inertial Parameters of Serial Robots (1990); Gautier,
Numerical Calculation of the Base Inertial Parameters of Robots (1991), for columns from QR; Mayeda, Yoshida and Osuka,
Base Parameters of Manipulator Dynamic Models (1990); Sousa (2014), equations 2.47 and 2.53, for the map K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import reachable_postures
from dynid.dynamics.functions import regressor
from dynid.errors import DynidError, InvalidShape, NotApplicable, UnknownName, keyword, named
from dynid.markup import HtmlFrame
from dynid.parameters.rank import column_scales, independent_columns, pivoted_columns, spectrum_gap, spectrum_ranks
from dynid.patterns import matching_names
from dynid.results import Codec, Finite, Number, Reading, Stored
from dynid.robot.drives import TermKind
from dynid.robot.inertia import INERTIAL_SYMBOLS, TEXTBOOK_SYMBOLS
from dynid.robot.mechanism import WRENCH_CHANNELS
from dynid.robot.model import Robot
from dynid.robot.serialize import ROBOT
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

    from dynid.parameters.observability import Sensed

__all__ = ["BASE", "BaseParameters", "ParameterClass", "base_parameters", "weighted_sum"]

Array = NDArray[np.float64]
Method = Literal["left-to-right", "pivoted", "recursive"]
METHODS = ("left-to-right", "pivoted", "recursive")


class ParameterClass(StrEnum):
    """Whether a standard parameter is identifiable, in the words of `BaseParameters.classes`."""

    IDENTIFIABLE = "identifiable"
    COMBINED = "combined"
    UNIDENTIFIABLE = "unidentifiable"


@dataclass(frozen=True, eq=False)
class BaseParameters(HtmlFrame):
    """The identifiable combinations beta = K pi of the standard parameters pi.

    Attributes
    ----------
    robot : Robot
        The robot.
    channels : tuple of str
        Measured torques and wrenches that the combinations are identifiable from.
    method : str
        How the structure was computed.
    matrix : ndarray, shape (b, p)
        K.
    kept : tuple of int
        Standard parameters that represent the combinations; their columns of K are unit vectors.
    dependent : tuple of int
        The other standard parameters.
    singular_values : ndarray
        Those of the regressor with scaled columns.
    gap : float
        Ratio of the smallest singular value of the rank and the next one; infinite if there is none.
    without_effect : tuple of int
        Standard parameters that no channel depends on.
    """

    robot: Robot
    channels: tuple[str, ...]
    method: str
    matrix: Array
    kept: tuple[int, ...]
    dependent: tuple[int, ...]
    singular_values: Array
    gap: float
    without_effect: tuple[int, ...] = field(default=())

    @property
    def count(self) -> int:
        """Number of base parameters b."""
        return len(self.kept)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Unit of each base parameter: that of the standard parameter that represents it."""
        return tuple(self.robot.layout[j].unit for j in self.kept)

    @cached_property
    def channel_units(self) -> tuple[str, ...]:
        """Unit of each channel: N m, or N for prismatic joints and forces of the base."""
        return tuple(self.robot.channel_units[channel] for channel in self.channels)

    @property
    def effective_count(self) -> int:
        """Number of standard parameters that the channels depend on."""
        return self.matrix.shape[1] - len(self.without_effect)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of the representative of each combination, with an R if other parameters are regrouped into it."""
        names = self.robot.parameter_names
        return tuple(
            names[j] + ("R" if np.count_nonzero(row) > 1 else "") for j, row in zip(self.kept, self.matrix, strict=True)
        )

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Each combination in short labels, such as "Izz_1 + Ia_1 + 0.05185 m_3"."""
        labels = self.robot.parameter_labels
        out = []
        for j, row in zip(self.kept, self.matrix, strict=True):
            others = [i for i in self.dependent if row[i]]
            out.append(weighted_sum([(row[i], labels[i]) for i in (j, *others)]))
        return tuple(out)

    @cached_property
    def classes(self) -> dict[str, str]:
        """Class of every standard parameter: "identifiable" alone, only "combined", or "unidentifiable"."""
        names = self.robot.parameter_names
        out = dict.fromkeys(names, "combined")
        for j, row in zip(self.kept, self.matrix, strict=True):
            if np.count_nonzero(row) == 1:
                out[names[j]] = "identifiable"
        for j in self.without_effect:
            out[names[j]] = "unidentifiable"
        return out

    @cached_property
    def link_columns(self) -> dict[str, tuple[int, ...]]:
        """Base parameters of each link, by its name, with those of the drive that turns it; links without any left out.

        They are the columns of the link in the base regressor (Krishnamoorthi 2018, equation 3-13).
        """
        robot = self.robot
        carried = {joint.name: robot.links[i].name for i, joint in enumerate(robot.joints, start=1)}
        driven = {term.name: carried[robot.tree_coordinates[term.owner]] for term in robot.drives}
        out: dict[str, list[int]] = {}
        for i, j in enumerate(self.kept):
            parameter = robot.layout[j]
            out.setdefault(parameter.owner if parameter.inertial else driven[parameter.name], []).append(i)
        return {link: tuple(columns) for link, columns in out.items()}

    def to_frame(self) -> pl.DataFrame:
        """The base parameters as a table.

        Returns
        -------
        polars.DataFrame
            One row per base parameter: parameter, combination, unit and prior (the a-priori value).
        """
        import polars as pl

        return pl.DataFrame(
            {"parameter": self.names, "combination": self.expressions, "unit": self.units, "prior": self.values()}
        )

    def values(self, parameters: ArrayLike | None = None) -> Array:
        """Base parameters of standard parameters.

        Parameters
        ----------
        parameters : array_like, shape (..., p), optional
            Standard parameters, by default those of the robot.

        Returns
        -------
        ndarray, shape (..., b)
        """
        pi = self.robot.parameters if parameters is None else np.asarray(parameters, dtype=float)
        if pi.shape[-1:] != (self.matrix.shape[1],):
            raise InvalidShape(f"expected {self.matrix.shape[1]} standard parameters, got shape {pi.shape}", "pi")
        return pi @ self.matrix.T

    def split(self, parameters: ArrayLike | None = None) -> tuple[Array, Array]:
        """Split standard parameters (..., p) into base parameters (..., b) and dependent ones (..., p - b)."""
        pi = self.robot.parameters if parameters is None else np.asarray(parameters, dtype=float)
        return self.values(pi), pi[..., list(self.dependent)]

    def join(self, beta: ArrayLike, dependent: ArrayLike | None = None) -> Array:
        """Standard parameters (..., p) from base parameters (..., b) and dependent ones, zero by default."""
        beta = np.asarray(beta, dtype=float)
        if beta.shape[-1:] != (self.count,):
            raise InvalidShape(f"expected {self.count} base parameters, got shape {beta.shape}", "beta")
        rest = np.zeros((*beta.shape[:-1], len(self.dependent))) if dependent is None else np.asarray(dependent, float)
        if rest.shape != (*beta.shape[:-1], len(self.dependent)):
            raise InvalidShape(f"expected {len(self.dependent)} dependent parameters, got shape {rest.shape}", "rest")
        pi = np.empty((*beta.shape[:-1], self.matrix.shape[1]))
        pi[..., list(self.dependent)] = rest
        pi[..., list(self.kept)] = beta - rest @ self.matrix[:, list(self.dependent)].T
        return pi

    def standard(self, beta: ArrayLike, prior: ArrayLike | None = None) -> Array:
        """The standard parameters with these base parameters that are closest to a prior.

        Parameters
        ----------
        beta : array_like, shape (b,)
            Base parameters.
        prior : array_like, shape (p,), optional
            Standard parameters, by default those of the robot.

        Returns
        -------
        ndarray, shape (p,)
            Distances are measured in units of the typical size of each kind of parameter. The result need not be
            physically consistent.
        """
        start = self.robot.parameters if prior is None else np.asarray(prior, dtype=float)
        groups = np.array([p.group for p in self.robot.layout])
        size = np.ones(len(start))
        for group in set(groups):
            typical = float(np.sqrt(np.mean(start[groups == group] ** 2)))
            size[groups == group] = typical if typical > 0 else 1.0
        step = np.linalg.lstsq(self.matrix * size, np.asarray(beta) - self.matrix @ start, rcond=None)[0]
        return np.asarray(start + size * step)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Base regressor of a motion: torque = Y_b beta.

        Parameters
        ----------
        q, v, a : array_like, shapes (N, nq), (N, nv), (N, nv)
            Positions, velocities and accelerations.

        Returns
        -------
        ndarray, shape (N, channel, b)
        """
        rows = [self.robot.channels.index(c) for c in self.channels]
        return regressor(self.robot, q, v, a)[..., rows, :][..., list(self.kept)]

    def __repr__(self) -> str:
        return f"BaseParameters('{self.robot.name}', {self.matrix.shape[1]} -> {self.count}, {self.method})"


def base_parameters(
    robot: Robot,
    *,
    channels: str | Sequence[str] | None = None,
    order: str | Sequence[str] = "textbook",
    method: Method = "left-to-right",
    seed: int = 0,
    still: bool = False,
) -> BaseParameters:
    """Base parameters of a robot and the map between them and the standard parameters.

    Parameters
    ----------
    robot : Robot
        The robot, with its drive terms.
    channels : str or sequence of str, optional
        Which torques are measured: None or "all", "torque", "wrench" (of the base), or names with wildcards.
    order : {"textbook", "layout"} or sequence of str, default "textbook"
        Order in which columns are scanned: "textbook" (per link inertia, first moments, mass, then drives, which gives
        the usual groupings), "layout" (that of the standard parameters), or names of parameters that come first.
    method : {"left-to-right", "pivoted", "recursive"}, default "left-to-right"
        "left-to-right" keeps a column that is independent of those before it, "pivoted" uses a pivoted QR
        decomposition, "recursive" is left-to-right on an exact description without samples (trees of joints with one
        degree of freedom; all channels, torques, or the wrench of a floating base). With mimic joints it gives the
        groupings of the independent joints, and samples decide those that the coupling adds.
    seed : int, default 0
        Seed of the random motion.
    still : bool, default False
        Only what is identifiable from postures at rest: combinations of masses and first moments.

    Returns
    -------
    BaseParameters

    Raises
    ------
    DataError
        If an argument is unknown or the recursive method does not cover the robot.
    DynidError
        If no parameter has an effect on the channels, or if the rank is not clear.

    Examples
    --------
    >>> import dynid
    >>> dynid.base_parameters(dynid.load_robot("tx40")).count
    61
    """
    if method not in METHODS:
        raise UnknownName(f"{named('method')} '{method}' is unknown: use {', '.join(METHODS)}")
    rows = choose_channels(robot, channels)
    if not rows:
        raise DynidError(
            f"robot '{robot.name}' has no joints and no base wrench, so nothing is identifiable",
            code="not_identifiable",
        )
    scan = _scan_order(robot, order)
    if method == "recursive":
        if robot.loops:
            raise NotApplicable(
                "the recursive method is not available for robots with closed loops: use left-to-right", "method"
            )
        if still:
            raise NotApplicable("the recursive method does not cover robots at rest; leave still out", "method")
        matrix = _recursive(robot, rows, seed)
    else:
        with one_blas_thread():  # several threads slow each other down on small blocks
            matrix = _sampled_factor(robot, rows, seed, still)
    names = tuple(robot.channels[i] for i in rows)
    return structure_of(robot, matrix, names, scan=scan, method=method)


def structure_of(
    robot: Robot,
    matrix: Array,
    channels: tuple[str, ...],
    *,
    scan: Sequence[int] | None = None,
    method: str = "left-to-right",
) -> BaseParameters:
    """Base parameters from rows (k, p) over the standard parameters that span all equations of the channels."""
    scan = _scan_order(robot, "textbook") if scan is None else scan
    scales = column_scales(robot.layout, matrix)
    zero = scales == 0.0
    if zero.all():
        raise DynidError(
            f"no parameter of '{robot.name}' has any effect on {', '.join(channels)}",
            "channels",
            code="not_identifiable",
        )
    scaled = np.where(zero, 0.0, matrix / np.where(zero, 1.0, scales))
    singular = np.linalg.svd(scaled, compute_uv=False)
    active = [j for j in scan if not zero[j]]
    choose = pivoted_columns if method == "pivoted" else independent_columns
    kept = choose(scaled, active, singular)
    if not kept:
        falls = ", ".join(f"{spectrum_gap(singular, rank):.2g} at {rank}" for rank in spectrum_ranks(singular)[:3])
        raise DynidError(
            f"the structural rank of '{robot.name}' is not clear: no choice of columns agrees with the falls of its "
            f"singular values ({falls or 'there is none'})",
            code="not_identifiable",
        )
    dependent = [j for j in scan if j not in set(kept)]
    weights = np.linalg.lstsq(scaled[:, kept], scaled[:, dependent], rcond=None)[0]
    weights[np.abs(weights) < 1e-9] = 0.0
    weights *= scales[dependent] / scales[kept][:, None]
    combination = np.zeros((len(kept), scaled.shape[1]))
    combination[np.arange(len(kept)), kept] = 1.0
    combination[:, dependent] = weights
    combination.flags.writeable = False
    return BaseParameters(
        robot,
        channels,
        method,
        combination,
        tuple(kept),
        tuple(dependent),
        singular,
        spectrum_gap(singular, len(kept)),
        tuple(int(j) for j in np.flatnonzero(zero)),
    )


def _recursive(robot: Robot, rows: list[int], seed: int) -> Array:
    """Rows over the standard parameters that span those of the regressor of all motions, by the recursion."""
    from dynid.parameters.observability import freed_mimics, observability_matrix

    sensed = _sensed(robot, rows)
    if all(joint.mimic is None for joint in robot.joints):
        return observability_matrix(robot, sensed)
    exact = observability_matrix(freed_mimics(robot), sensed)
    scales = column_scales(robot.layout, exact)
    used = np.where(scales == 0.0, 1.0, scales)
    _, singular, v = np.linalg.svd(exact / used, full_matrices=False)
    span = v[: spectrum_ranks(singular)[0]]
    with one_blas_thread():
        samples = _sampled_factor(robot, rows, seed, still=False)
    # A row of the coupled robot is a combination of rows of the freed one; what lies outside their span is rounding.
    return np.asarray((samples / used @ span.T) @ span * used)


def choose_channels(robot: Robot, channels: str | Sequence[str] | None) -> list[int]:
    """Indices of the chosen channels among those of the robot."""
    if channels is None or (channels == "all" and "all" not in robot.channels):
        return list(range(len(robot.channels)))
    if isinstance(channels, str):
        groups = {"torque": robot.coordinates, "wrench": WRENCH_CHANNELS if robot.base != "fixed" else ()}
        if channels == "wrench" and robot.base == "fixed":
            raise NotApplicable(
                f"a fixed base has no wrench channels: load the robot with {keyword('base', 'instrumented')}"
            )
        channels = groups.get(channels, (channels,))
    rows = []
    for pattern in channels:
        found = [robot.channels.index(name) for name in matching_names(pattern, robot.channels)]
        if not found:
            raise UnknownName(
                f"no channel matches '{pattern}', the channels are {', '.join(robot.channels)}", "channels"
            )
        rows += [i for i in found if i not in rows]
    return sorted(rows)


def _sensed(robot: Robot, rows: Sequence[int]) -> Sensed:
    """The chosen channels as an argument of the recursive method."""
    first = len(robot.channels) - robot.n
    choices: dict[Sensed, range] = {
        "all": range(len(robot.channels)),
        "torque": range(first, len(robot.channels)),
        "wrench": range(first),
    }
    for name, choice in choices.items():
        if list(rows) == list(choice):
            return name
    raise NotApplicable('the recursive method covers the channels "all", "torque" and "wrench" only', "method")


def _scan_order(robot: Robot, order: str | Sequence[str]) -> list[int]:
    """Indices of the standard parameters in the order in which their columns are scanned."""
    names = robot.parameter_names
    if order == "layout":
        return list(range(len(names)))
    textbook: list[int] = []
    for j, parameter in enumerate(robot.layout):
        if not parameter.inertial:
            textbook.append(j)
        elif parameter.symbol == INERTIAL_SYMBOLS[0]:
            textbook += [j + INERTIAL_SYMBOLS.index(s) for s in TEXTBOOK_SYMBOLS]
    if order == "textbook":
        return textbook
    if isinstance(order, str):
        raise UnknownName(f"order '{order}' is unknown: use textbook, layout, or a list of parameter names", "order")
    first = []
    for name in order:
        known = {n: i for i, n in enumerate(names)} | {n: i for i, n in enumerate(robot.parameter_labels)}
        if name not in known:
            raise UnknownName(f"order names no parameter '{name}'", "order")
        first.append(known[name])
    return first + [j for j in textbook if j not in set(first)]


def random_states(robot: Robot, samples: int, seed: int) -> tuple[Array, Array, Array]:
    """Random q, v and a: all angles, velocities and accelerations of both signs.

    A joint whose friction has a velocity of its own moves that slowly in some of the samples. With closed loops, the
    angles are around the assembled posture and as far as the loops allow.
    """
    rng = np.random.default_rng(seed)
    revolute = np.array([j.kind == "revolute" for j in robot.joints if j.name in robot.coordinates], dtype=bool)
    q = rng.uniform(-1.0, 1.0, (samples, robot.n)) * np.where(revolute, np.pi, 1.0)
    v, a = rng.uniform(-3.0, 3.0, (2, samples, robot.nv))
    laws = [term for term in robot.drives if term.kind == TermKind.STRIBECK]
    for joint in {law.owner for law in laws}:
        slow = [law.velocity for law in laws if law.owner == joint]
        name = robot.tree_coordinates[joint]
        # A passive joint is slow where all joints are.
        moving = [robot.coordinates.index(name)] if name in robot.coordinates else list(range(robot.n))
        for k, velocity in enumerate(slow):
            for i in moving:
                v[k :: len(slow) + 1, robot.nv - robot.n + i] *= 0.5 * velocity
    if robot.loops:
        q = reachable_postures(robot, q)
    if robot.base == "floating":
        pose = rng.normal(size=(samples, 7))
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        q = np.hstack([pose, q])
    return q, v, a


def _sampled_factor(robot: Robot, rows: list[int], seed: int, still: bool) -> Array:
    """Triangular factor of the regressor of random motion (<= p, p)."""
    p = len(robot.layout)
    needed = max(4 * p // max(len(rows), 1), 40)
    chunk = max(1, 4_000_000 // (len(robot.channels) * p))
    factor = np.zeros((0, p))
    for part, start in enumerate(range(0, needed, chunk)):
        q, v, a = random_states(robot, min(chunk, needed - start), seed + part)
        block = regressor(robot, q, *((0 * v, 0 * a) if still else (v, a)))[:, rows].reshape(-1, p)
        factor = scipy.linalg.qr(np.vstack([factor, block]), mode="r")[0][:p]
    return factor


def weighted_sum(terms: Sequence[tuple[float, str]]) -> str:
    """A sum of weighted labels as text."""
    out = ""
    for weight, label in terms:
        size = f"{abs(weight):.6g}"
        term = label if size == "1" else f"{size} {label}"
        sign = "-" if weight < 0 else "+"
        out += f" {sign} {term}" if out else (f"-{term}" if weight < 0 else term)
    return out


# -- in files ------------------------------------------------------------------------------------------


def _stored(base: BaseParameters) -> dict[str, Any]:
    """Base parameters as plain data, by the names of the standard parameters."""
    names = base.robot.parameter_names
    return {
        "robot": ROBOT.write(base.robot),
        "channels": list(base.channels),
        "method": base.method,
        "kept": [names[j] for j in base.kept],
        "combinations": [{names[i]: float(row[i]) for i in np.flatnonzero(row)} for row in base.matrix],
        "dependent": [names[j] for j in base.dependent],
        "without_effect": [names[j] for j in base.without_effect],
        "singular_values": base.singular_values.tolist(),
        "gap": base.gap,
    }


class _StoredBase(Stored):
    """Base parameters in a file."""

    robot: dict[str, Any]
    channels: list[str]
    method: str
    kept: list[str]
    combinations: list[dict[str, Finite]]
    dependent: list[str]
    without_effect: list[str]
    singular_values: list[Number]
    gap: Number


def _base(stored: _StoredBase, reading: Reading) -> BaseParameters:
    """The stored base parameters; a ValueError where they are not a whole set."""
    robot: Robot = ROBOT.read(stored.robot, reading)
    place = {name: j for j, name in enumerate(robot.parameter_names)}
    inside = {name for weights in stored.combinations for name in weights}
    named = {*stored.kept, *stored.dependent, *stored.without_effect, *inside}
    if unknown := sorted(named - set(place)):
        raise ValueError(f"the robot has no parameter '{unknown[0]}'")
    kept = tuple(place[name] for name in stored.kept)
    dependent = tuple(place[name] for name in stored.dependent)
    matrix = np.zeros((len(kept), len(place)))
    for row, weights in zip(matrix, stored.combinations, strict=True):
        for name, weight in weights.items():
            row[place[name]] = weight
    if sorted((*kept, *dependent)) != list(range(len(place))):
        raise ValueError("representatives and dependent parameters are not the parameters of the robot, each once")
    if not np.array_equal(matrix[:, list(kept)], np.eye(len(kept))):
        raise ValueError("a base parameter contains the representative of another one, or not its own")
    if unknown := sorted(set(stored.channels) - set(robot.channels)):
        raise ValueError(f"the robot has no channel '{unknown[0]}'")
    return BaseParameters(
        robot=robot,
        channels=tuple(stored.channels),
        method=stored.method,
        matrix=matrix,
        kept=kept,
        dependent=dependent,
        singular_values=np.array(stored.singular_values, dtype=float),
        gap=stored.gap,
        without_effect=tuple(place[name] for name in stored.without_effect),
    )


# How the base parameters of a result are stored, with their robot.
BASE = Codec(_StoredBase, _stored, _base, complete=True)
