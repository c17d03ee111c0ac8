"""Identification of an unknown linear controller from a log of reference, position and torque.

In a log at the rate of the controller, each torque is a linear function of present and past errors, past velocities and
past torques.
Laws of several structures are fitted to the first part of each run. They are compared by the torques they command in
the rest of the run.

    arx: u_k = -sum over i >= 1 of a_i u_k-i + sum over i >= 0 of b_i e_k-i + c_i v_k-i,    e = reference - q
    others: u_k = kp e_k + ki sum of e / rate + kd (v_ref - v)_k, and parts of it

Source: Ljung, System Identification: Theory for the User (1999), for ARX models and held-out data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import MissingArgument, MissingData, NotApplicable, TooFew, UnknownName, keyword
from dynid.markup import HtmlFrame
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.laws import Feedforward, LinearController, static
from dynid.simulation.sensors import Sensors
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ControllerIdentification", "IdentifiedLaw", "identify_controller"]

Array = NDArray[np.float64]

_HELD_OUT = 0.3
_SHARES = np.geomspace(0.05, 0.95, 7)
_EXACT = 1e-18  # relative to the torque variance: smaller residuals count as equally exact
_ARX_PENALTY = 1.05  # an ARX law must have a mean square error smaller by this factor
_LEAD = 150  # samples until the initial state of the slowest low-pass has decayed
_MIN_SAMPLES = 4 * _LEAD
_Matrices = tuple[Array, Array, Array, Array]
STRUCTURES = ("p", "pd", "cascade", "pid", "arx")


@dataclass(frozen=True, eq=False)
class IdentifiedLaw:
    """The identified control law of one joint.

    Attributes
    ----------
    joint : str
        Name of the joint.
    structure : str
        "p", "pd", "cascade", "pid" or "arx of order m".
    gains : dict of str to float
        Gains by name (kp, kv, kd, ki; cutoff in Hz; ARX coefficients a, b, c).
    std : dict of str to float
        Their standard deviations.
    fit : float
        Share of the torque variance explained on held-out samples (%).
    """

    joint: str
    structure: str
    gains: dict[str, float]
    std: dict[str, float]
    fit: float


@dataclass(frozen=True, eq=False)
class ControllerIdentification(HtmlFrame):
    """Result of `identify_controller`.

    Attributes
    ----------
    controller : LinearController
        The identified controller of all joints.
    laws : tuple of IdentifiedLaw
        Structure and gains per joint.
    delay : int
        Delay between measurement and torque, in control periods.
    """

    controller: LinearController
    laws: tuple[IdentifiedLaw, ...]
    delay: int

    @property
    def loop(self) -> ClosedLoop:
        """Closed loop with the identified controller and delay, and velocities by position differences."""
        return ClosedLoop(controller=self.controller, sensors=Sensors(delay=self.delay))

    def to_frame(self) -> pl.DataFrame:
        """The gains as a table.

        Returns
        -------
        polars.DataFrame
            One row per joint and gain: joint, structure, fit in percent, gain, value and std.
        """
        import polars as pl

        rows = [
            (law.joint, law.structure, law.fit, name, value, law.std[name])
            for law in self.laws
            for name, value in law.gains.items()
        ]
        words = {"joint": str, "structure": str, "fit": float, "gain": str, "value": float, "std": float}
        return pl.DataFrame(rows, schema=words, orient="row")

    def summary(self) -> str:
        """One line per joint: structure, fit on held-out samples, gains with their standard deviations."""
        lines = [f"controller at {self.controller.rate:g} Hz, delay of {self.delay} samples"]
        for law in self.laws:
            gains = ", ".join(f"{name} {value:.4g} ± {law.std[name]:.2g}" for name, value in law.gains.items())
            lines.append(f"{law.joint}: {law.structure}, explains {law.fit:.2f} % of the held-out torque; {gains}")
        return "\n".join(lines)


def identify_controller(
    recording: Recording | Run,
    *,
    model: Robot | None = None,
    feedforward: Feedforward = "none",
    structures: Sequence[str] = STRUCTURES,
    max_delay: int = 4,
    max_order: int = 3,
) -> ControllerIdentification:
    """Identify the linear controller that made a recording.

    Candidate laws per joint are p, pd, cascade (P-P) and pid, each with or without a low-pass on the velocity, and arx:
    any law over past errors, velocities and torques up to `max_order`, chosen only if it is clearly better. The
    Bayesian information criterion on the last 30 % of every run decides.

    Parameters
    ----------
    recording : Recording or Run
        Runs with reference, position and torque at the rate of the controller.
    model : Robot, optional
        The robot model of the controller, required for feed-forward.
    feedforward : {"none", "gravity", "full"}
        Model torques that the controller feeds forward along the reference; they are subtracted first.
    structures : sequence of str
        Candidate structures.
    max_delay : int
        Largest delay in control periods.
    max_order : int
        Largest order of an ARX law.

    Returns
    -------
    ControllerIdentification

    Raises
    ------
    DataError
        If a structure is unknown, a signal is missing, or the sampling is uneven or too short.
    """
    unknown = [s for s in structures if s not in STRUCTURES]
    if unknown or not structures:
        raise UnknownName(
            f"controller structure '{(unknown or [''])[0]}' is unknown: use {', '.join(STRUCTURES)}", "structure"
        )
    runs = recording.runs if isinstance(recording, Recording) else (recording,)
    rate = _common_rate(runs)
    logs = [_log(run, rate, model, feedforward) for run in runs]
    n = logs[0].u.shape[1]
    names = recording.joints if isinstance(recording, Recording) else tuple(f"joint{i + 1}" for i in range(n))
    shapes = [(s, 0) for s in structures if s != "arx"]
    shapes += [("arx", m) for m in range(1, max_order + 1)] if "arx" in structures else []
    tried = []
    with one_blas_thread():  # more threads slow small systems down
        for delay in range(max_delay + 1):
            every = [[_fitted(logs, i, delay, rate, *shape) for shape in shapes] for i in range(n)]
            tried.append([min(fits, key=lambda fit: fit.score) for fits in every])
    delay = int(np.argmin([sum(fit.score for fit in best) for best in tried]))
    parts = [
        _concluded(name, fit, logs, i, rate) for i, (name, fit) in enumerate(zip(names, tried[delay], strict=True))
    ]
    law = _joined([matrices for _, matrices in parts], rate)
    if feedforward != "none":
        assert model is not None
        law = law.with_feedforward(feedforward, model)
    return ControllerIdentification(law, tuple(x for x, _ in parts), delay)


@dataclass(frozen=True, eq=False)
class _Log:
    """Position errors, velocities by differences, reference velocities, torques without feed-forward, each (N, n)."""

    e: Array
    v: Array
    v_ref: Array
    u: Array


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A structure, its delay in samples, and the gain of its velocity low-pass per sample (1: no filter)."""

    structure: str
    order: int
    delay: int
    share: float = 1.0

    def columns(self, log: _Log, i: int, rate: float, run: int, runs: int) -> tuple[Array, Array]:
        """Regressor columns (N, k) and torques (N,) of joint i, after the initial transient of the low-pass."""
        late = len(log.u) - self.delay
        e, v_ref, u = log.e[:late, i], log.v_ref[:late, i], log.u[self.delay :, i]
        v = _low_pass(log.v[:late, i], self.share)
        if self.structure == "arx":
            past = [x[_LEAD - k : late - k] for x in (e, v) for k in range(self.order + 1)]
            past += [-u[_LEAD - k : late - k] for k in range(1, self.order + 1)]
            return np.column_stack(past), u[_LEAD:]
        columns = [e]
        if self.structure != "p":
            columns.append(-v if self.structure == "cascade" else v_ref - v)
        if self.structure == "pid":  # the integral of each run has an unknown initial value
            columns += [np.cumsum(e) / rate, *np.outer(np.eye(runs)[run], np.ones(late))]
        return np.column_stack(columns)[_LEAD:], u[_LEAD:]

    def predicted_torque(self, theta: Array, X: Array) -> Array:
        """Torques of the law; an ARX law is simulated with its own past torques, not the recorded ones."""
        if self.structure != "arx":
            return np.asarray(X @ theta)
        k = len(theta) - self.order
        a = np.concatenate([[1.0], theta[k:]])
        start = scipy.signal.lfiltic([1.0], a, -X[0, k:])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(scipy.signal.lfilter([1.0], a, X[:, :k] @ theta[:k], zi=start)[0])


@dataclass(frozen=True, eq=False)
class _Fit:
    """A candidate with its criterion and explained torque variance (%)."""

    candidate: _Candidate
    score: float
    fit: float


def _common_rate(runs: Sequence[Run]) -> float:
    """Sampling rate (Hz) of the runs, checked."""
    rate = 1.0 / runs[0].step
    for run in runs:
        for signal in ("reference", "torque"):
            if getattr(run, signal) is None:
                raise MissingData(f"run '{run.name}' has no {signal} signals, which controller identification needs")
        if np.abs(np.diff(run.t) * rate - 1.0).max() > 0.01:
            raise NotApplicable(
                f"run '{run.name}' is not sampled evenly at {rate:g} Hz, as controller identification needs", "rate"
            )
        if len(run) < _MIN_SAMPLES:
            raise TooFew(
                f"run '{run.name}' has {len(run)} samples; controller identification needs at least {_MIN_SAMPLES}"
            )
    return rate


def _log(run: Run, rate: float, model: Robot | None, feedforward: Feedforward) -> _Log:
    """The signals of a run that a control law depends on."""
    assert run.reference is not None and run.torque is not None
    v_ref, u = derivative(run.reference, rate), run.torque
    if feedforward != "none":
        if model is None:
            raise MissingArgument(
                f"{keyword('feedforward', feedforward)} needs the robot model of the controller: "
                f"give {keyword('model')}"
            )
        law = static(rate, np.zeros((model.n, 4))).with_feedforward(feedforward, model)
        u = u - law.torques_ahead(run.reference, v_ref, derivative(v_ref, rate))
    v = np.diff(run.q, axis=0, prepend=run.q[:1]) * rate
    v[0] = v[1]
    return _Log(run.reference - run.q, v, v_ref, u)


def _low_pass(v: Array, share: float) -> Array:
    """First-order low-pass with this gain per sample, at steady state initially."""
    if share == 1.0:
        return v
    return np.asarray(scipy.signal.lfilter([share], [1.0, share - 1.0], v, zi=[(1.0 - share) * v[0]])[0])


def _stacked(candidate: _Candidate, logs: Sequence[_Log], i: int, rate: float, part: float) -> tuple[Array, Array]:
    """Columns and torques of the first `part` of every run."""
    pieces = [candidate.columns(log, i, rate, r, len(logs)) for r, log in enumerate(logs)]
    X, y = ([piece[k][: round(part * len(piece[k]))] for piece in pieces] for k in (0, 1))
    return np.vstack(X), np.concatenate(y)


def _least_squares(X: Array, y: Array) -> Array:
    """Least-squares coefficients, also for rank-deficient columns."""
    return np.asarray(scipy.linalg.lstsq(X, y, lapack_driver="gelsy", check_finite=False)[0])


def _solved(candidate: _Candidate, logs: Sequence[_Log], i: int, rate: float, part: float) -> tuple[Array, float]:
    """Coefficients over the first `part` of every run, and their mean square error there."""
    X, y = _stacked(candidate, logs, i, rate, part)
    theta = _least_squares(X, y)
    return theta, float(np.mean((y - X @ theta) ** 2))


def _fitted(logs: Sequence[_Log], i: int, delay: int, rate: float, structure: str, order: int) -> _Fit:
    """Fit joint i to the first part of every run, with and without a velocity low-pass; score it on the rest."""
    plain = _Candidate(structure, order, delay)
    found = _scored(plain, logs, i, rate)
    if structure in ("p", "arx") or found.fit > 100 * (1 - _EXACT):
        return found
    k = int(np.argmin([_solved(replace(plain, share=x), logs, i, rate, 1 - _HELD_OUT)[1] for x in _SHARES]))
    best = scipy.optimize.minimize_scalar(
        lambda x: _solved(replace(plain, share=x), logs, i, rate, 1 - _HELD_OUT)[1],
        bounds=(_SHARES[max(k - 1, 0)], _SHARES[k + 1] if k + 1 < len(_SHARES) else 1.0),
        method="bounded",
        options={"xatol": 1e-5},
    )
    return min(found, _scored(replace(plain, share=float(best.x)), logs, i, rate), key=lambda fit: fit.score)


def _scored(candidate: _Candidate, logs: Sequence[_Log], i: int, rate: float) -> _Fit:
    """The candidate with its Bayesian information criterion on held-out samples."""
    theta, _ = _solved(candidate, logs, i, rate, 1 - _HELD_OUT)
    errors, torques = [], []
    for r, log in enumerate(logs):
        X, y = candidate.columns(log, i, rate, r, len(logs))
        unseen = round((1 - _HELD_OUT) * len(y))
        errors.append((y - candidate.predicted_torque(theta, X))[unseen:])
        torques.append(y[unseen:])
    error, variance = np.concatenate(errors), float(np.var(np.concatenate(torques))) or 1.0
    miss = float(np.mean(error**2)) if np.all(np.abs(error) < 1e100) else 1e200
    unknowns = len(theta) + (candidate.share < 1.0)
    handicap = _ARX_PENALTY if candidate.structure == "arx" else 1.0
    score = len(error) * np.log(handicap * max(miss, _EXACT * variance)) + unknowns * np.log(len(error))
    return _Fit(candidate, float(score), 100.0 * (1.0 - miss / variance))


def _concluded(name: str, fit: _Fit, logs: Sequence[_Log], i: int, rate: float) -> tuple[IdentifiedLaw, _Matrices]:
    """The law refitted to all samples: gains, standard deviations, and its state-space form."""
    law = fit.candidate
    X, y = _stacked(law, logs, i, rate, 1.0)
    theta, J = _least_squares(X, y), X
    if law.share < 1.0:  # the low-pass gain is an unknown too
        step = 1e-4 * law.share
        J = np.column_stack(
            [X, (_stacked(replace(law, share=law.share + step), logs, i, rate, 1.0)[0] - X) @ theta / step]
        )
    variance = np.sum((y - X @ theta) ** 2) / max(1, len(y) - J.shape[1])
    covariance = variance * np.linalg.pinv(J.T @ J)
    gains, T = _gains(law, theta)
    if law.share < 1.0:
        T = np.block([[T, np.zeros((len(T), 1))], [np.zeros((1, T.shape[1])), np.ones((1, 1))]])
        gains["cutoff"] = float(-np.log(1 - law.share) * rate / (2 * np.pi))
        T[-1, -1] = rate / (2 * np.pi * (1 - law.share))
    sigma = np.sqrt(np.einsum("ij,jk,ik->i", T, covariance, T))
    structure = f"arx of order {law.order}" if law.structure == "arx" else law.structure
    found = IdentifiedLaw(name, structure, gains, dict(zip(gains, sigma.tolist(), strict=True)), fit.fit)
    return found, _matrices(law, theta, rate)


def _gains(law: _Candidate, theta: Array) -> tuple[dict[str, float], Array]:
    """Gains by name, and their derivative with respect to the coefficients."""
    T = np.eye(len(theta))
    if law.structure == "cascade":
        c, kv = theta
        return {"kp": float(c / kv), "kv": float(kv)}, np.array([[1 / kv, -c / kv**2], [0, 1]])
    if law.structure == "arx":
        m = law.order
        names = [f"b{k}" for k in range(m + 1)] + [f"c{k}" for k in range(m + 1)] + [f"a{k}" for k in range(1, m + 1)]
    else:
        names = {"p": ["kp"], "pd": ["kp", "kd"], "pid": ["kp", "kd", "ki"]}[law.structure]
    return dict(zip(names, theta.tolist(), strict=False)), T[: len(names)]


def _matrices(law: _Candidate, theta: Array, rate: float) -> _Matrices:
    """A, B, C, D over (q_ref, v_ref, q, v)."""
    if law.structure == "arx":  # observer form
        m = law.order
        b, c, a = theta[: m + 1], theta[m + 1 : 2 * m + 2], theta[2 * m + 2 :]
        A = np.eye(m, k=1)
        A[:, 0] -= a
        error, velocity = b[1:] - a * b[0], c[1:] - a * c[0]
        return A, np.column_stack([error, 0 * error, -error, velocity]), np.eye(m)[0], np.array([b[0], 0, -b[0], c[0]])
    kp, kd = theta[0], theta[1] if len(theta) > 1 else 0.0
    ki = theta[2] if law.structure == "pid" else 0.0
    kept = 1.0 - law.share
    # States: the filtered velocity of the previous sample, and the integral of the error.
    A, C = np.diag([kept, 1.0]), np.array([-kd * kept, ki])
    B = np.array([[0, 0, 0, law.share], [1 / rate, 0, -1 / rate, 0]])
    D = np.array([kp + ki / rate, 0.0 if law.structure == "cascade" else kd, -kp - ki / rate, -kd * law.share])
    used = [law.share < 1.0, law.structure == "pid"]
    return A[np.ix_(used, used)], B[used], C[used], D


def _joined(parts: Sequence[_Matrices], rate: float) -> LinearController:
    """One controller for all joints; unused states stay at zero."""
    n, m = len(parts), max(len(A) for A, *_ in parts)
    A, B, C, D = np.zeros((n, m, m)), np.zeros((n, m, 4)), np.zeros((n, m)), np.zeros((n, 4))
    for i, (a, b, c, d) in enumerate(parts):
        k = len(a)
        A[i, :k, :k], B[i, :k], C[i, :k], D[i] = a, b, c, d
    return LinearController(rate, A, B, C, D, name="identified")
