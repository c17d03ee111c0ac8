"""The posterior of a robot's parameters: a Gaussian prior in physical units whose scales are learned.

With the rows [W_j y_j] of channel j, base parameters beta = K pi and standard parameters pi,

    y_j = W_j K pi + e_j,    pi = pi_0 + sum_g s_g R_g u_g,    u ~ N(0, 1).

The columns of R_g are the directions of one kind of parameter in physical units: a pseudo-inertia relative to
its own (mass, centre and inertia change by about a third of what a body of this size has), all bodies together (a prior
that is too heavy throughout), and for each drive term the value with which it alone would explain the torque of its
joint. The scale s_g of each kind is shared by all joints and learned from the data (expectation maximisation of the
marginal likelihood with a weak hyperprior, so that no scale becomes zero). A term that the data do not show shrinks
towards its prior and keeps a standard deviation that says so; none is dropped.

The likelihood is tempered: residuals of real robots are correlated over time and structured by unmodeled effects. The
information of every channel is multiplied by its share of independent rows, and the covariance is widened where
parameters scatter more between blocks of time, see `independent_shares` and `scatter`.

With the rows R = W K [R_g s_g] in units of the noise, T'T = R'R + 1 and u = T^-1 T^-T R'(y - W K pi_0):

    s_g^2 <- (sum of s_g^2 E[u^2] over the directions of the kind + weight start^2) / (their number + weight),
    noise_j^2 <- |e_j|^2 / (n_j (1 - fitted_j / worth_j)),
    E[u^2] = u^2 + diag((T'T)^-1),    fitted_j = share_j tr(W_j C W_j') / noise_j^2

where terms that are not negative have the moment above zero in place of E[u^2].

Sources: MacKay, Bayesian Interpolation (1992), and Tipping, Sparse Bayesian Learning and the Relevance Vector Machine
(2001), for scales by marginal likelihood; Dempster, Laird and Rubin (1977), for expectation maximisation; Lee, Wensing
and Park (2020), for the metric of the bodies; Grunwald and van Ommen, Inconsistency of Bayesian Inference for
Misspecified Linear Models (2017), for likelihoods that are tempered because the model is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from dynid.dynamics.functions import mass_matrix
from dynid.feasibility.box import last_links
from dynid.feasibility.metrics import quadratic_rows
from dynid.feasibility.prior import Prior, wide_bodies
from dynid.identification.estimators.options import KnownMasses
from dynid.identification.jackknife import jackknife
from dynid.identification.observation import Observation, fold
from dynid.identification.row_stream import Block
from dynid.parameters.base import random_states
from dynid.robot.drives import DRIVE_LAWS, drive_symbols
from dynid.robot.model import Robot

__all__ = [
    "BODY_SCALE",
    "Learned",
    "LeftOver",
    "ParameterPrior",
    "independent_shares",
    "inside",
    "learn",
    "parameter_prior",
    "scatter",
]

Array = NDArray[np.float64]


# What rows are worth: independent rows in time and in state, and how parameters scatter between blocks of time.
#
# Residuals of real robots are correlated over time, and structured by unmodeled effects. Three measures, each of which
# sees what the others do not:
#
# - in time: n rows of noise with autocorrelations r_k are worth n / (1 + 2 sum r_k);
# - in state: what repeats wherever the robot is in the same state is an error of the model. Rows fall into cells by the
#   signs of random projections (locality-sensitive hashing); with sums S of the residuals in the cells, rows are worth
#   1 / (sum S^2 / sum e^2);
# - in each direction: friction that changes with temperature leaves residuals whose sign follows the velocity, so that
#   they look white. The delete-one-block jackknife sees it, with few degrees of freedom. Its variances are moderated
#   with the variances of the posterior as their mean, and the degrees of freedom of the prior learned.
#
# The residuals are those of the noise: what the fit took from them, W_t C W_s' with the covariance C of beta, is added
# (restricted maximum likelihood).
#
# The moderated variance of a parameter is (d_0 v_0 + d v) / (d_0 + d), with v by blocks and v_0 of the posterior.
#
# Sources: Geyer, Practical Markov Chain Monte Carlo (1992), for the end of the sum over time; Charikar, Similarity
# Estimation Techniques from Rounding Algorithms (2002), for cells by signs of projections; Smyth, Linear Models and
# Empirical Bayes Methods for Assessing Differential Expression in Microarray Experiments (2004), for moderated
# variances;
# Patterson and Thompson, Recovery of Inter-Block Information when Block Sizes Are Unequal (1971), for restricted
# likelihood. Cells in the state as a measure of errors of the model are our own.


# Directions in which the share of the fit is measured.
_PROBES = 12
# Longest lag in rows; sums of two autocorrelations below this many of their standard errors end the sum.
_LAGS, _SIGNIFICANT = 1024, 1.0
# Tables of cells and planes per table, which cut it into 64 cells; standard errors by which the effect of the state is
# larger than that of time where it counts.
_TABLES, _PLANES, _SURE = 16, 6, 2.0
# Data determine a base parameter if they have this share in its variance.
_DETERMINED = 0.5
# Degrees of freedom of the prior of variances, from hardly known to surely those of the posterior.
_FREEDOM = np.geomspace(2.0, 1000.0, 60)


@dataclass(frozen=True, eq=False)
class LeftOver:
    """What a fit with parameters beta leaves, summed over pairs of rows that are close in time or in state.

    `probes` (b, m) are random combinations of the root of the covariance of beta: the mean of their products is what
    the fit took. `planes` (channel, b, table * plane) cut the space of the rows into cells.
    """

    beta: Array
    probes: Array
    planes: Array

    def over(self, blocks: Iterable[Block]) -> tuple[Array, Array]:
        """Sums of some blocks: of lagged products (channel, lag), and of signals (channel, cell, 1 + m)."""
        lags = np.zeros((len(self.planes), _LAGS))
        cells = np.zeros((len(self.planes), _TABLES * 2**_PLANES, 1 + self.probes.shape[1]))
        for block in blocks:
            signals = np.column_stack([block.y - block.W @ self.beta, block.W @ self.probes])
            place = (block.index - block.index[0]) // _step(block.index)
            dense = np.zeros((int(place[-1]) + 1, signals.shape[1]))
            dense[place] = signals
            size = scipy.fft.next_fast_len(2 * len(dense), real=True)
            power = np.abs(scipy.fft.rfft(dense, size, axis=0)) ** 2
            lagged = scipy.fft.irfft(power.sum(axis=1), size)[: min(_LAGS, len(dense))]
            lags[block.channel, : len(lagged)] += lagged
            cells[block.channel] += self._cells(block) @ signals
        return lags, cells

    def _cells(self, block: Block) -> sparse.csc_array:
        """Which rows of a block are in which cell (cell, row)."""
        sides = (block.W @ self.planes[block.channel] > 0).reshape(-1, _TABLES, _PLANES)
        cell = sides @ 2 ** np.arange(_PLANES) + 2**_PLANES * np.arange(_TABLES)
        ends = _TABLES * np.arange(len(cell) + 1)
        return sparse.csc_array((np.ones(cell.size), cell.ravel(), ends), (_TABLES * 2**_PLANES, len(cell)))

    def join(self, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        """Sums of both."""
        return first[0] + second[0], first[1] + second[1]


def _step(index: NDArray[np.int64]) -> int:
    """Samples per row."""
    return max(int(np.gcd.reduce(np.diff(index))), 1) if len(index) > 1 else 1


def independent_shares(observation: Observation, beta: Array, root: Array) -> Array:
    """Independent rows per row (channel,) of the residuals that beta leaves; root (b, k) of its covariance."""
    rng = np.random.default_rng(0)
    count = min(_PROBES, root.shape[1])
    signs = rng.choice([-1.0, 1.0], (root.shape[1], count)) / np.sqrt(count)
    sizes = np.array([np.linalg.norm(f[:, :-1], axis=0) for f in observation.factors])
    planes = rng.standard_normal((len(root), _TABLES * _PLANES)) / np.where(sizes > 0, sizes, np.inf)[:, :, None]
    parts: Sequence[tuple[Array, Array]] = observation.reduced(LeftOver(beta, root @ signs, planes))
    lags, cells = (np.sum([part[k] for part in parts], axis=0) for k in (0, 1))
    return np.array([1.0 / _effect(*each) for each in zip(lags, cells, observation.rows, strict=True)])


def _effect(lags: Array, cells: Array, rows: int) -> float:
    """Rows per independent row: in time, or in state where these are surely more."""
    time = _in_time(lags, rows)
    state = float(np.sum(cells**2)) / _TABLES / max(lags[0], 1e-300)
    return state if state > time * (1.0 + _SURE * np.sqrt(2.0 / 2**_PLANES)) else time


def _in_time(lags: Array, rows: int) -> float:
    """Rows per independent row from sums of lagged products.

    The sum of the autocorrelations ends at the first pair of lags that is not surely positive.
    """
    last = min(_LAGS, rows // 4) // 2 * 2
    if last < 2 or lags[0] <= 0:
        return 1.0
    pairs = (lags[:last] / lags[0]).reshape(-1, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= _SIGNIFICANT * np.sqrt(2.0 / rows))
    total = float(pairs[: ended[0] if len(ended) else len(pairs)].sum())
    return max(2.0 * total - 1.0, 1.0)


def scatter(
    observation: Observation, beta: Array, noise: Array, factor: Array, root: Array, prior: Array
) -> tuple[Array, float]:
    """Standard deviations by moderated blocks of time over those of the posterior (b,), and degrees of freedom.

    `noise` (channel,) is that of independent rows, `factor` (k, b) the rows in units of it, `root` (b, k) that of the
    covariance, and `prior` (b, b) the rows of the prior.
    """
    ones = np.ones(len(beta))
    found = jackknife(observation, beta, noise, prior=prior)
    if found is None:
        return ones, np.inf
    expected = np.linalg.norm(root @ (factor @ root).T, axis=1) ** 2
    known = expected > _DETERMINED * np.sum(root**2, axis=1)
    ratio, own = found.std[known] ** 2 / expected[known], found.blocks - 1.0
    likelihood = scipy.stats.f.logpdf(ratio, own, _FREEDOM[:, None]).sum(axis=1)
    given = float(_FREEDOM[np.argmax(likelihood)])
    ones[known] = np.sqrt((given + own * ratio) / (given + own))
    return ones, given + own


Mask = NDArray[np.bool_]

# Scale of the pseudo-inertia of a body relative to its own: mass within about 30 %. Bodies that were assumed from the
# lengths of the links are known less. All bodies together may be wrong by a common factor, and by any where no link has
# a mass.
_BODY, _ASSUMED, _COMMON, _ANY = 0.3, 1.0, 0.3, 3.0
BODY_SCALE = float(np.hypot(_BODY, _COMMON))
# A tool that the file does not know, on the last links of a fixed robot: mass over that of all bodies, size in m.
_TOOL, _TOOL_SIZE = 0.05, 0.1
# Scale of a drive term relative to the value with which it would explain the torque of its joint alone: offsets and
# springs are small, and what differs between directions is smaller; friction may be half of the torque, and rotors of
# geared joints are as heavy as what they move.
_DRIVES = {law.symbol: law.prior for law in DRIVE_LAWS.values() if law.prior is not None} | {"asymmetry": 0.05}
_OTHER = 0.2
_VISCOUS = drive_symbols("viscous")
# Postures at which the inertia of the joints is averaged, the share of the largest that each has at least, and a usual
# velocity of joints without limits (rad/s or m/s).
_POSTURES, _SMALL, _USUAL = 50, 0.05, 1.0
# Weight of the hyperprior in numbers of parameters: scales of drives are learned from few joints.
_KNOWN_BODIES, _KNOWN_DRIVES = 10.0, 0.3
# Share of its freedom that a channel keeps whose rows are worth no more than the parameters.
_FREE = 0.1
# A known mass is known to this share.
_MASS_STD = 0.03
# Noise relative to the torque of a channel below which rounding decides.
_EXACT = 1e-7
# Noise relative to the torque from which the iteration starts: that of a fit in which the prior counts little.
_START = 0.01
# Iterations, passes over the rows that measure their worth, changes of the noise at which the next stage begins and at
# convergence.
_ITERATIONS, _PASSES, _NEAR, _CONVERGED = 60, 3, 0.05, 1e-3
# The worth of rows is measured with a prior that is so many times wider: what it alone keeps from being fitted is no
# error of the model.
_WIDER = 3.0


@dataclass(frozen=True, eq=False)
class ParameterPrior:
    """Gaussian prior of standard parameters in directions of unit scale.

    Attributes
    ----------
    robot : Robot
        The robot.
    bodies : Prior
        A-priori parameters, physically consistent.
    directions : ndarray, shape (p, k)
        R, one column per direction.
    groups : tuple of str
        Kind of each direction, which shares its scale with the others of that kind.
    scales : dict of str to float
        A-priori scale of each kind.
    weights : dict of str to float
        Weight of the a-priori scale in numbers of parameters; infinite where it is not learned.
    known : ndarray, shape (m, p + 1)
        Rows of known combinations and their values, divided by their standard deviation.
    """

    robot: Robot
    bodies: Prior
    directions: Array
    groups: tuple[str, ...]
    scales: dict[str, float]
    weights: dict[str, float]
    known: Array

    @property
    def mean(self) -> Array:
        """A-priori parameters (p,)."""
        return self.bodies.parameters

    @cached_property
    def positive(self) -> Mask:
        """Directions (k,) of drive terms that are not negative, with a mean of zero."""
        zero = dict(zip(self.robot.parameter_names, self.mean == 0, strict=True))
        names = {t.name for t in self.robot.drives if t.dissipates and zero[t.name]}
        return self.owners(names) & (np.array(self.groups) != "asymmetry")

    def sizes(self, scales: dict[str, float]) -> Array:
        """Scale (k,) of each direction."""
        return np.array([scales[group] for group in self.groups])

    def owners(self, names: Iterable[str]) -> Mask:
        """Directions (k,) that belong to these parameters alone."""
        inside = np.isin(self.robot.parameter_names, list(names))
        return ~np.any(self.directions[~inside] != 0, axis=0)

    def rows(self, root: Array) -> tuple[Array, Array]:
        """Rows and targets whose sum of squares is minus twice the logarithm of the density with root (p, k)."""
        size = np.linalg.norm(root, axis=1)
        size = np.where(size > 0, size, 1.0)
        unit = root / size[:, None]
        lower = np.linalg.cholesky(unit @ unit.T + 1e-13 * np.eye(len(unit)))
        rows = scipy.linalg.solve_triangular(lower, np.diag(1.0 / size), lower=True)
        return np.vstack([rows, self.known[:, :-1]]), np.concatenate([rows @ self.mean, self.known[:, -1]])


def parameter_prior(observation: Observation, bodies: Prior, known: KnownMasses) -> ParameterPrior:
    """The prior of the parameters of an observation around physically consistent bodies."""
    robot = observation.robot
    units = np.minimum(_explaining(observation), _largest(observation, bodies))
    # Drive values of files are often guesses: those that would explain more than the torque of the joint are not used.
    guess = np.array([not p.inertial for p in robot.layout]) & (np.abs(bodies.parameters) > units)
    bodies = replace(bodies, parameters=np.where(guess, 0.0, bodies.parameters))
    columns: list[Array] = []
    groups: list[str] = []
    for group, directions in (*_body_directions(robot, bodies), *_drive_directions(robot, units)):
        columns.append(directions)
        groups += [group] * directions.shape[1]
    scales = dict.fromkeys(groups, _OTHER) | _DRIVES
    scales |= {
        "tool": 1.0,
        "bodies": _BODY,
        "assumed bodies": _ASSUMED,
        "all bodies": _ANY if bodies.complete else _COMMON,
    }
    weights = dict.fromkeys(groups, _KNOWN_DRIVES)
    weights |= {"bodies": _KNOWN_BODIES, "assumed bodies": 1.0, "all bodies": np.inf}
    return ParameterPrior(robot, bodies, np.hstack(columns), tuple(groups), scales, weights, _known_rows(robot, known))


def _known_rows(robot: Robot, known: KnownMasses) -> Array:
    """Rows (m, p + 1) of known masses, divided by their standard deviation."""
    names = robot.parameter_names
    own = [(np.array([name == f"m_{link}" for name in names]), x) for link, x in known.links.items()]
    if known.total is not None:
        own.append((np.array([p.inertial and p.symbol == "m" for p in robot.layout]), known.total))
    return np.array([np.append(row, x) / (_MASS_STD * x) for row, x in own]).reshape(-1, len(names) + 1)


def _body_directions(robot: Robot, bodies: Prior) -> list[tuple[str, Array]]:
    """Directions of every pseudo-inertia relative to that of the prior, and of all bodies together."""
    prior = bodies.parameters
    rows = quadratic_rows(robot, wide_bodies(robot, prior, prior), "pullback", np.ones(len(prior)))[0]
    out = []
    common = np.zeros((len(prior), 1))
    carries, total = last_links(robot), bodies.mass(robot)
    for first in (i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"):
        own = slice(first, first + 10)
        part = rows[np.any(rows[:, own] != 0, axis=1), own]
        directions = np.zeros((len(prior), 10))
        directions[own] = np.linalg.inv(part)
        assumed = bodies.complete or robot.layout[first].owner in bodies.assumed
        out.append(("assumed bodies" if assumed else "bodies", directions))
        common[own, 0] = prior[own]
        if robot.layout[first].owner in carries:
            tool = np.zeros((len(prior), 10))
            tool[own] = np.diag(_TOOL * total * np.array([1.0, *[_TOOL_SIZE] * 3, *[_TOOL_SIZE**2] * 6]))
            out.append(("tool", tool))
    return [*out, ("all bodies", common)] if out else []


def _drive_directions(robot: Robot, units: Array) -> list[tuple[str, Array]]:
    """Directions of the drive terms, in units (p,) with which each would explain the torque of its joint alone."""
    place = {name: i for i, name in enumerate(robot.parameter_names)}
    out: list[tuple[str, Array]] = []
    done: set[int] = set()
    for i, parameter in enumerate(robot.layout):
        if parameter.inertial or i in done:
            continue
        direction = np.zeros((len(units), 1))
        direction[i] = units[i]
        other = place.get(f"fvn_{parameter.owner}") if parameter.symbol == "fvp" else None
        if other is None:
            out.append((parameter.symbol, direction))
            continue
        done.add(other)
        both = direction.copy()
        both[i] = both[other] = min(units[i], units[other])
        apart = both.copy()
        apart[other] *= -1.0
        out += [("fv", both), ("asymmetry", apart)]
    return out


def _explaining(observation: Observation) -> Array:
    """Values (p,) with which each parameter alone would explain the torque of the channel that it acts on most."""
    torque = observation.torque_norms()
    norms = np.array([np.linalg.norm(f[:, :-1] @ observation.base.matrix, axis=0) for f in observation.factors])
    share = norms / np.where(torque > 0, torque, np.inf)[:, None]
    size = share.max(axis=0)
    return np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 1.0)


def _largest(observation: Observation, bodies: Prior) -> Array:
    """Physical sizes (p,) of rotor inertia and viscous friction, which slow motion alone would leave open.

    A rotor inertia is compared with the inertia that the joint moves, viscous friction with the torque of its joint at
    a third of the velocity limit.
    """
    robot = observation.robot
    torque = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    of_joint = dict(zip(observation.base.channels, torque, strict=True))
    q = random_states(robot, _POSTURES, seed=0)[0]
    M = np.diagonal(mass_matrix(robot.with_parameters(bodies.parameters), q), axis1=1, axis2=2).mean(axis=0)
    inertia = dict(zip(robot.coordinates, M[robot.nv - robot.n :], strict=True))
    out = np.full(len(robot.layout), np.inf)
    for i, parameter in enumerate(robot.layout):
        if parameter.owner not in inertia:
            continue
        if parameter.symbol == "Ia":
            out[i] = inertia[parameter.owner] + _SMALL * max(inertia.values())
        elif parameter.symbol in _VISCOUS and of_joint.get(parameter.owner, 0.0) > 0:
            limit = robot.limits[parameter.owner].velocity
            out[i] = of_joint[parameter.owner] / (limit / 3.0 if np.isfinite(limit) and limit > 0 else _USUAL)
    return out


@dataclass(frozen=True, eq=False)
class Learned:
    """Posterior of the parameters of an observation, without inequalities.

    Attributes
    ----------
    observation : Observation
        The observation.
    prior : ParameterPrior
        Its prior.
    used : ndarray of bool, shape (k,)
        Directions of the prior that are in the model.
    scales : dict of str to float
        Learned scale of each kind of parameter.
    noise : ndarray, shape (channel,)
        Standard deviation of the noise.
    share : ndarray, shape (channel,)
        Independent rows per row.
    converged : bool
        Whether the noise no longer changes and the autocorrelation was measured with it.
    ratio : ndarray, shape (b,), or float
        Standard deviations of the base parameters by the data over those of independent rows.
    freedom : float
        Degrees of freedom of the standard deviations.
    """

    observation: Observation
    prior: ParameterPrior
    used: Mask
    scales: dict[str, float]
    noise: Array
    share: Array
    converged: bool = False
    ratio: Array | float = 1.0
    freedom: float = np.inf

    @cached_property
    def factor(self) -> Array:
        """Tempered factor (<= b + 1, b + 1) of [W y] in units of the noise."""
        weights = np.sqrt(self.share) / self.noise
        return fold(np.vstack([w * f for w, f in zip(weights, self.observation.factors, strict=True)]))

    @cached_property
    def _root(self) -> Array:
        """Directions (p, k) times their scales."""
        return self.prior.directions[:, self.used] * self.prior.sizes(self.scales)[self.used]

    def whitened_rows(self) -> Array:
        """Rows (m, k + 1) of data and known combinations over u of all directions, in units of their noise."""
        prior, data = self.prior, self.factor
        every = np.vstack([np.column_stack([data[:, :-1] @ self.observation.base.matrix, data[:, -1]]), prior.known])
        root = prior.directions * prior.sizes(self.scales)
        return np.column_stack([every[:, :-1] @ root, every[:, -1] - every[:, :-1] @ prior.mean])

    @cached_property
    def _solved(self) -> tuple[Array, Array]:
        """Triangle T (k, k) with T'T the information on u, and the mean u (k,)."""
        rows = self.whitened_rows()[:, np.append(self.used, True)]
        T = fold(np.vstack([rows, np.eye(rows.shape[1] - 1, rows.shape[1])]))
        return T[:-1, :-1], scipy.linalg.solve_triangular(T[:-1, :-1], T[:-1, -1])

    @cached_property
    def parameters(self) -> Array:
        """Mean (p,) of the standard parameters."""
        return self.prior.mean + self._root @ self._solved[1]

    @cached_property
    def standard_root(self) -> Array:
        """Root S (p, k) of the covariance S S' of the standard parameters."""
        data = self.factor[:, :-1] / self.ratio @ self.observation.base.matrix
        rows = np.vstack([data, self.prior.known[:, :-1]]) @ self._root
        T = fold(np.vstack([rows, np.eye(rows.shape[1])]))
        return np.asarray(scipy.linalg.solve_triangular(T, self._root.T, trans="T").T)

    @cached_property
    def base_root(self) -> Array:
        """Root (b, k) of the covariance of the base parameters."""
        return self.observation.base.matrix @ self.standard_root

    def prior_rows(self) -> tuple[Array, Array]:
        """Rows and targets whose sum of squares is minus twice the logarithm of the prior density."""
        return self.prior.rows(self._root)

    def independent_rows(self) -> tuple[float, ...]:
        """Effective number of independent rows per channel."""
        return tuple(float(s * n) for s, n in zip(self.share, self.observation.rows, strict=True))


def learn(observation: Observation, prior: ParameterPrior, used: Mask | None = None, tempered: bool = True) -> Learned:
    """Noise, independent rows and scales of the prior by expectation maximisation."""
    rows = np.maximum(np.array(observation.rows, dtype=float), 1.0)
    torque = observation.torque_norms() / np.sqrt(rows)
    typical = np.where(torque > 0, torque, 1.0)
    every = np.ones(len(prior.groups), dtype=bool) if used is None else used
    found = Learned(observation, prior, every, dict(prior.scales), _START * typical, np.ones(len(rows)))
    passes, learning = 0, False
    for _ in range(_ITERATIONS):
        left, fitted = observation.residual_norms(observation.base.matrix @ found.parameters) ** 2, _fitted(found)
        worth = found.share * rows
        free = np.maximum(1.0 - fitted / worth, _FREE)
        noise = np.maximum(np.sqrt(left / rows / free), _EXACT * typical)
        moved = float(np.max(np.abs(np.log(noise / found.noise))))
        # Scales would grow with what a noise that is still too small makes of it.
        found = replace(found, noise=noise, scales=_scales(found) if learning else found.scales)
        if not learning:
            learning = moved < _NEAR
        elif moved < (_CONVERGED if passes == _PASSES else _NEAR):
            if passes == _PASSES or not tempered:
                return replace(found, converged=True)
            passes += 1
            found = replace(
                found, share=_shares(replace(found, scales={k: _WIDER * x for k, x in found.scales.items()}))
            )
    return found


def inside(found: Learned, parameters: Array) -> Learned:
    """The posterior around its mode (p,) inside constraints: torque that no allowed robot explains is noise as well."""
    beta = found.observation.base.matrix @ parameters
    rows = np.maximum(np.array(found.observation.rows, dtype=float), 1.0)
    free = np.maximum(1.0 - _fitted(found) / (found.share * rows), _FREE)
    noise = np.maximum(found.observation.residual_norms(beta) / np.sqrt(rows * free), found.noise)
    if np.any(noise > (1.0 + _NEAR) * found.noise):
        found = replace(found, noise=noise, share=_shares(found, beta))
    before = found.observation.base.matrix @ found._root
    prior = np.linalg.inv(scipy.linalg.qr(before.T, mode="r")[0][: len(before)].T)
    weighted = found.noise / np.sqrt(found.share), found.factor[:, :-1], found.base_root
    ratio, freedom = scatter(found.observation, beta, *weighted, prior)
    return replace(found, ratio=ratio, freedom=freedom)


def _shares(found: Learned, beta: Array | None = None) -> Array:
    """Independent rows per row (channel,) of the residuals that beta leaves, by default that of the posterior."""
    if not found.observation.readable:
        return found.share
    beta = found.observation.base.matrix @ found.parameters if beta is None else beta
    return independent_shares(found.observation, beta, found.base_root)


def _fitted(found: Learned) -> Array:
    """Number of parameters (channel,) that each channel determines: its share in the trace of the influence."""
    weights = found.share / found.noise**2
    root = found.base_root
    return np.array(
        [w * float(np.sum((f[:, :-1] @ root) ** 2)) for w, f in zip(weights, found.observation.factors, strict=True)]
    )


def _scales(found: Learned) -> dict[str, float]:
    """Scales that maximise the expected likelihood of the directions, with their hyperprior."""
    prior = found.prior
    T, u = found._solved
    inverse = scipy.linalg.solve_triangular(T, np.eye(len(T)))
    std = np.linalg.norm(inverse, axis=1)
    # A friction coefficient below zero is no evidence of large ones: the moment is that above zero.
    hazard = np.exp(-0.5 * (u / std) ** 2 - scipy.special.log_ndtr(u / std)) / np.sqrt(2.0 * np.pi)
    second = u**2 + std**2 + np.where(prior.positive[found.used], u * std * hazard, 0.0)
    groups = np.array(prior.groups)[found.used]
    out = dict(found.scales)
    for group in set(groups):
        weight, start = prior.weights[group], prior.scales[group]
        if np.isfinite(weight):
            own = found.scales[group] ** 2 * second[groups == group]
            out[group] = float(np.sqrt((own.sum() + weight * start**2) / (len(own) + weight)))
    return out
