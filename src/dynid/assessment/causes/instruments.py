"""Tests of instrumental variables: validity of the simulated regressor Z, exogeneity of the measured regressor X.

Z (m, k), X (m, b) and y (m,) are rows of all channels, each divided by the torque noise of its joint. Each test has two
forms. The plain form needs only a factor T with T'T = [Z X y]'[Z X y] and the number of independent rows, and assumes
equal noise in all rows. That holds for the torque, but not for the columns of V = X - Z, whose noise differs by joint
and by motion. The robust form goes back to the rows: the products whose mean should be zero are summed over the joints
of a sample, and the sums are tested for a mean of zero by Hotelling's T2, which admits any covariance. It allows for
noise that is correlated between joints, and over `correlated_samples` in time.

With V = X - Z for as many instruments as columns, and n independent rows:

    validity, plain     F = (|P_Z v_i|^2 / k) / (|v_i - P_Z v_i|^2 / (n - k)) per column v_i of V
    exogeneity, plain   F test of d = 0 in y = X p + (X - P_Z X) d + e
    robust              T2 = n m' S^-1 m of the mean m and covariance S of Q'v_i or of V'e; T2 (n - k) / (k (n - 1)) ~ F
    sargan              n |P_Z e|^2 / |e|^2 ~ chi2(k - b),    hansen    m' S^-1 m at its minimum ~ chi2(k - b)

Sources: Durbin, Errors in Variables (1954), Wu, Alternative Tests of Independence between Stochastic Regressors and
Disturbances (1973), and Hausman, Specification Tests in Econometrics (1978), for exogeneity; Janot, Vandanjon and
Gautier, A Revised Durbin-Wu-Hausman Test for Industrial Robot Identification (2016), for tests column by column, and
Janot and Wensing (2021), equations 50 and 51, for their null hypothesis; Hotelling, The Generalization of Student's
Ratio (1931); Sargan, The Estimation of Economic Relationships Using Instrumental Variables (1958); Hansen, Large Sample
Properties of Generalized Method of Moments Estimators (1982). The correction of T2 for correlated samples is our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    InvalidShape,
    InvalidValue,
    MissingData,
    NotApplicable,
    NotFinite,
    NotIdentifiable,
    TooFew,
    named,
)
from dynid.hypothesis import Correction, Hypothesis, HypothesisTest, TestCode, chi2_tail, f_ratio, f_tail
from dynid.identification.experiment import Paired, PairedBlock
from dynid.identification.observation import fold
from dynid.signals.spacing import batch_sums, checked_index, usual_step

__all__ = [
    "Segment",
    "exogeneity_f",
    "exogeneity_robust",
    "exogeneity_test",
    "hansen",
    "instrument_test",
    "sargan",
    "segment",
    "validity_f",
    "validity_robust",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Tail = tuple[float, str, float]

_RANK = 1e-12
# Norm of the remainder of a unit column after projection; below, it is rounding error.
_LEFT = 1e-9

_VALID = Hypothesis(
    TestCode.INSTRUMENT_VALIDITY,
    "validity of the instruments (revised Durbin-Wu-Hausman)",
    "every measured column is the simulated column plus noise of mean zero",
    "the simulation matches the robot: no column differs by more than noise",
    "the simulation differs from the robot by more than noise in the columns",
    "estimates with these instruments are consistent, as far as the model is right",
    "the model or the controller of the simulation misses an effect: run missing_effects, then identify again",
)
_EXOGENOUS = Hypothesis(
    TestCode.EXOGENEITY,
    "exogeneity of the measured regressor (Durbin-Wu-Hausman)",
    "the measured columns are not correlated with the torque error",
    "no correlation is seen: least squares is as consistent as the instrumental variables, and more precise",
    "the measured columns are correlated with the torque error: least squares is biased",
    "keep least squares",
    "use instrumental variables (iv, didim), or filter the positions more",
)
_SARGAN = Hypothesis(
    TestCode.SARGAN,
    "overidentification (Sargan)",
    "all instruments are uncorrelated with the torque error",
    "the instruments agree with one another",
    "the instruments contradict one another: at least one is correlated with the torque error",
    "keep them all",
    "leave out the instruments that come from measured signals, or look for a missing effect",
)
_HANSEN = replace(_SARGAN, code=TestCode.HANSEN, name="overidentification (Hansen's J)")


@dataclass(frozen=True, eq=False)
class Segment:
    """Whitened rows of all channels of one segment of time.

    Attributes
    ----------
    Z : ndarray, shape (m, k)
        Instruments.
    X : ndarray, shape (m, b)
        Measured regressor.
    y : ndarray, shape (m,)
        Measured torques.
    index : ndarray of int, shape (m,)
        Sample numbers; rows of the same sample share a number.
    """

    Z: Array
    X: Array
    y: Array
    index: Index


def segment(Z: ArrayLike, X: ArrayLike, y: ArrayLike, index: ArrayLike | None = None) -> Segment:
    """Collect rows into a `Segment`.

    Parameters
    ----------
    Z : array_like, shape (m, k)
        Instruments.
    X : array_like, shape (m, b)
        Measured regressor.
    y : array_like, shape (m,)
        Measured torques.
    index : array_like of int, shape (m,), optional
        Sample numbers; by default every row is a separate sample.

    Returns
    -------
    Segment

    Raises
    ------
    DataError
        If the numbers of rows differ.
    """
    z, x, t = np.asarray(Z, dtype=float), np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if z.ndim != 2 or x.ndim != 2 or t.ndim != 1 or not len(z) == len(x) == len(t):
        raise InvalidShape(f"Z, X and y must have the same rows, got shapes {z.shape}, {x.shape} and {t.shape}")
    return Segment(z, x, t, checked_index(index, len(t)))


def instrument_test(
    paired: Paired,
    noise: ArrayLike,
    *,
    correlated_samples: int = 10,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Test, column by column, whether the measured regressor is the simulated one plus noise (robust form).

    Parameters
    ----------
    paired : Paired
        Measured regressor with the simulated one as instruments.
    noise : array_like, shape (channel,)
        Standard deviation of the torque noise per channel (N m or N), which weights the joints.
    correlated_samples : int
        Number of samples over which the noise is correlated: twice the last lag outside the limits of its
        correlogram, or 1 for independent samples. The default covers decimated rows.
    level : float
        Significance level.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        Correction of the p-values for the number of columns.

    Returns
    -------
    HypothesisTest
        With one detail per base parameter.

    Raises
    ------
    DataError
        If there are too few samples. The test needs several times more samples than columns; rows decimated to the
        bandwidth of the position filter are better suited than the fewer rows of the fit.
    """
    std = _checked_noise(paired, noise)
    factor, rows = paired.stacked(1.0 / std), _segments(paired, std)
    instruments = factor.shape[1] - 1 - paired.base.count
    return validity_robust(
        rows,
        factor,
        instruments,
        paired.base.names,
        correlated_samples=correlated_samples,
        level=level,
        correction=correction,
    )


def exogeneity_test(
    paired: Paired, noise: ArrayLike, *, correlated_samples: int = 10, level: float = 0.05
) -> HypothesisTest:
    """Test whether the measured regressor is uncorrelated with the torque error (robust form).

    The test assumes valid instruments; run `instrument_test` first.

    Parameters
    ----------
    paired : Paired
        Measured regressor with the simulated one as instruments.
    noise : array_like, shape (channel,)
        Standard deviation of the torque noise per channel (N m or N).
    correlated_samples : int
        Number of samples over which the noise is correlated, see `instrument_test`.
    level : float
        Significance level.

    Returns
    -------
    HypothesisTest

    Raises
    ------
    DataError
        If there are too few samples, or measured and simulated regressors are the same.
    """
    std = _checked_noise(paired, noise)
    factor, rows = paired.stacked(1.0 / std), _segments(paired, std)
    instruments = factor.shape[1] - 1 - paired.base.count
    return exogeneity_robust(rows, factor, instruments, correlated_samples=correlated_samples, level=level)


def validity_f(
    factor: ArrayLike,
    instruments: int,
    rows: float,
    names: Sequence[str] | None = None,
    *,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Plain form of `instrument_test`: regress every x_i on Z and test that the fit is z_i itself, F(k, rows - k).

    `factor` is any T with T'T = [Z X y]'[Z X y], such as the rows themselves; Z are its first `instruments` columns.
    `rows` is the number of independent rows; give fewer than there are if the noise of X is autocorrelated.
    """
    R, k, b = _triangle(factor, instruments)
    labels = _labels(names, k, b)
    D = _difference(R, k)
    tails = [f_ratio(float(d[:k] @ d[:k]), k, float(d[k:] @ d[k:]), rows - k) for d in D.T]
    return _VALID.judge_each(labels, tails, level, correction)


def validity_robust(
    segments: Iterable[Segment],
    factor: ArrayLike,
    instruments: int,
    names: Sequence[str] | None = None,
    *,
    correlated_samples: int = 1,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Robust form of `instrument_test`: Z'(x_i - z_i) has mean zero, for any covariance of the noise of x_i."""
    R, k, b = _triangle(factor, instruments)
    labels = _labels(names, k, b)
    noisy = np.atleast_1d(_difference(R, k).any(axis=0))

    def scores(part: Segment) -> Iterator[Array]:
        Q = _orthonormal(part.Z, R[:k, :k])
        for i in np.flatnonzero(noisy):
            yield Q * (part.X[:, i] - part.Z[:, i])[:, None]

    found = iter(_mean_zero(segments, scores, int(noisy.sum()), k, correlated_samples))
    tails = [next(found) if seen else f_ratio(0.0, k, 1.0, 1.0) for seen in noisy]
    return _VALID.judge_each(labels, tails, level, correction)


def exogeneity_f(factor: ArrayLike, instruments: int, rows: float, *, level: float = 0.05) -> HypothesisTest:
    """Plain form of `exogeneity_test`: y = X p + V d + e, V the residual of X on Z; F test of d = 0.

    Columns of V that are rounding errors, because measured and simulated columns are equal, are left out.
    """
    R, k, b = _triangle(factor, instruments)
    basis, _, kept = _unexplained(R, k, b)
    rest = _off(R[:, k:-1], R[:, -1:])[:, 0]
    part = basis.T @ rest
    tail = f_ratio(float(part @ part), len(kept), float(np.sum((rest - basis @ part) ** 2)), rows - b - len(kept))
    return _EXOGENOUS.judge(*tail, level)


def exogeneity_robust(
    segments: Iterable[Segment],
    factor: ArrayLike,
    instruments: int,
    *,
    correlated_samples: int = 1,
    level: float = 0.05,
) -> HypothesisTest:
    """Robust form of `exogeneity_test`: the residual of V on Z and X, times the least-squares error, has mean zero."""
    R, k, b = _triangle(factor, instruments)
    _, columns, kept = _unexplained(R, k, b)
    beta = np.linalg.lstsq(R[:, k:-1], R[:, -1], rcond=None)[0]

    def scores(part: Segment) -> Iterator[Array]:
        error = part.y - part.X @ beta
        yield (np.hstack([part.Z, part.X]) @ columns) * error[:, None]

    (tail,) = _mean_zero(segments, scores, 1, len(kept), correlated_samples)
    return _EXOGENOUS.judge(*tail, level)


def sargan(factor: ArrayLike, instruments: int, rows: float, *, level: float = 0.05) -> HypothesisTest:
    """Sargan test of overidentification, for noise of equal variance in all rows.

    Parameters
    ----------
    factor : array_like, shape (r, k + b + 1)
        Any T with T'T = [Z X y]'[Z X y], such as the rows themselves.
    instruments : int
        Number k of instruments, the first columns of `factor`; more than the b columns of X.
    rows : float
        Number of independent rows.
    level : float
        Significance level.

    Returns
    -------
    HypothesisTest

    Raises
    ------
    DataError
        If there are not more instruments than columns.
    """
    R, k, b = _overidentified(factor, instruments)
    beta = np.linalg.lstsq(R[:k, k:-1], R[:k, -1], rcond=None)[0]
    error = R[:, -1] - R[:, k:-1] @ beta
    power = float(error @ error)
    statistic = rows * float(error[:k] @ error[:k]) / power if power > 0 else 0.0
    return _SARGAN.judge(*chi2_tail(statistic, k - b), level)


def hansen(rows: Segment, *, correlated_samples: int = 1, level: float = 0.05) -> HypothesisTest:
    """Hansen's J test of overidentification, for noise of any covariance within batches of samples.

    Parameters
    ----------
    rows : Segment
        Rows with more instruments than columns.
    correlated_samples : int
        Number of samples over which the noise is correlated.
    level : float
        Significance level.

    Returns
    -------
    HypothesisTest

    Raises
    ------
    DataError
        If there are too few samples, or not more instruments than columns.
    """
    R, k, b = _overidentified(np.column_stack([rows.Z, rows.X, rows.y]), rows.Z.shape[1])
    A, c = R[:k, k:-1], R[:k, -1]
    beta = np.linalg.lstsq(A, c, rcond=None)[0]
    moments = _orthonormal(rows.Z, R[:k, :k]) * (rows.y - rows.X @ beta)[:, None]
    sums = batch_sums(moments, rows.index, _checked_count(correlated_samples), usual_step(np.unique(rows.index)))
    if len(sums) <= k:
        raise TooFew(f"{len(sums)} batches of samples are too few for {k} instruments; record longer")
    L = scipy.linalg.qr(sums, mode="economic")[1].T
    A, c = scipy.linalg.solve_triangular(L, A, lower=True), scipy.linalg.solve_triangular(L, c, lower=True)
    rest = c - A @ np.linalg.lstsq(A, c, rcond=None)[0]
    return _HANSEN.judge(*chi2_tail(float(rest @ rest), k - b), level)


def _mean_zero(
    segments: Iterable[Segment],
    scores: Callable[[Segment], Iterator[Array]],
    count: int,
    width: int,
    correlated_samples: int,
) -> list[Tail]:
    """Hotelling's T2 of the sample sums of `count` kinds of scores (m, width); only triangular factors are kept.

    Sums of autocorrelated scores over several samples vary more, or less, than sums of independent ones. T2 is divided
    by that ratio, averaged over all directions, and positively correlated samples count as fewer.
    """
    _checked_count(correlated_samples)
    samples, batches = ([np.zeros((0, width + 1)) for _ in range(count)] for _ in range(2))
    step, total, parts = 0, 0, 0
    for part in segments:
        step = step or usual_step(np.unique(part.index))
        number = np.unique(part.index)
        inside = batch_sums(np.ones((len(number), 1)), number, correlated_samples, step)
        for i, rows in enumerate(scores(part)):
            single = batch_sums(rows, part.index, 1, step)
            samples[i] = fold(np.vstack([samples[i], np.column_stack([np.ones(len(single)), single])]))
            several = batch_sums(rows, part.index, correlated_samples, step)
            batches[i] = fold(np.vstack([batches[i], np.column_stack([inside, several])]))
        total += len(number)
        parts += len(inside)
    return [_hotelling(a, b, total, parts) for a, b in zip(samples, batches, strict=True)]


def _hotelling(samples: Array, batches: Array, total: int, parts: int) -> Tail:
    """T2 from the factors of [1 scores] and [count sums]; the first row holds the mean, the others the variation."""
    about = samples[1:, 1:]
    kept = _independent(about, np.linalg.norm(about, axis=0))[1]
    k = len(kept)
    if min(total, parts) <= 1 or total <= k:
        raise TooFew(f"{total} samples are too few for {k} directions; record longer")
    R = scipy.linalg.qr(about[:, kept], mode="economic")[1]
    mean, vary = (scipy.linalg.solve_triangular(R, x[:, 1:][:, kept].T, trans="T") for x in (samples[:1], batches[1:]))
    inflation = float(np.sum(vary**2)) / k * parts / (parts - 1)
    worth = total / max(1.0, inflation)
    if worth <= k + 1:
        raise TooFew(
            f"{total} autocorrelated samples are worth {worth:.0f} independent ones, too few for {k} directions"
        )
    t2 = float(np.sum(mean**2)) * (total - 1) / inflation
    return f_tail(t2 * (worth - k) / (k * (worth - 1)), k, worth - k)


def _triangle(factor: ArrayLike, instruments: int) -> tuple[Array, int, int]:
    """Triangular factor of [Z X y], the number of instruments and that of columns."""
    T = np.asarray(factor, dtype=float)
    if T.ndim != 2 or not np.all(np.isfinite(T)):
        raise NotFinite("the factor of [Z X y] must be a finite matrix")
    b = T.shape[1] - 1 - instruments
    if b < 1 or instruments < b:
        raise TooFew(f"{instruments} instruments are too few for {b} columns", "instruments")
    R = np.asarray(scipy.linalg.qr(T, mode="r")[0][: T.shape[1]])
    if len(R) <= instruments:
        raise TooFew(f"{len(R)} rows are too few for {instruments} instruments")
    for first, last, what in ((0, instruments, "instruments"), (instruments, -1, "regressor")):
        part = R[:, first:last]
        norms = np.linalg.norm(part, axis=0)
        size = np.linalg.svd(part / np.where(norms > 0, norms, 1.0), compute_uv=False)
        if size[-1] <= _RANK * size[0]:
            raise NotIdentifiable(
                f"columns of the {what} are linearly dependent in these rows; use a richer motion, or drop some"
            )
    return R, instruments, b


def _overidentified(factor: ArrayLike, instruments: int) -> tuple[Array, int, int]:
    """Triangular factor as `_triangle` gives it, refusing as many instruments as columns."""
    R, k, b = _triangle(factor, instruments)
    if k == b:
        raise TooFew(f"{k} instruments for {b} columns cannot be tested: more instruments are needed", "instruments")
    return R, k, b


def _difference(R: Array, k: int) -> Array:
    """X - Z in the coordinates of the factor, with rounding errors set to zero."""
    D = R[:, k:-1] - R[:, :k]
    rounding = np.linalg.norm(D, axis=0) <= _RANK * np.linalg.norm(R[:, :k], axis=0)
    return np.asarray(np.where(rounding, 0.0, D))


def _unexplained(R: Array, k: int, b: int) -> tuple[Array, Array, Index]:
    """Residual of V = X - Z (Z'Z)^-1 Z'X on X: a basis, the combination of [Z X] that gives it, and the columns."""
    X = R[:, k:-1]
    V = X.copy()
    V[:k] = 0.0
    basis, kept = _independent(_off(X, V), np.linalg.norm(X, axis=0))
    if not kept.size:
        raise NotApplicable("the measured regressor equals the simulated one: without noise there is nothing to test")
    on_z = scipy.linalg.solve_triangular(R[:k, :k], X[:k])
    on_x = np.linalg.lstsq(X, V, rcond=None)[0]
    columns = np.vstack([-on_z, np.eye(b) - on_x])[:, kept]
    return basis, columns / np.linalg.norm(X, axis=0)[kept], kept


def _off(columns: Array, target: Array) -> Array:
    """Residual of `target` on `columns`, projected twice against rounding errors."""
    Q = scipy.linalg.qr(columns, mode="economic")[0]
    for _ in range(2):
        target = target - Q @ (Q.T @ target)
    return np.asarray(target)


def _independent(columns: Array, sizes: Array) -> tuple[Array, Index]:
    """Orthonormal basis of the columns divided by their `sizes`, without rounding errors, and the columns used."""
    unit = columns / np.where(sizes > 0, sizes, 1.0)
    Q, R, order = scipy.linalg.qr(unit, mode="economic", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > _LEFT))
    return np.asarray(Q[:, :rank]), np.asarray(order[:rank])


def _orthonormal(Z: Array, R: Array) -> Array:
    """Z R^-1: the instruments as orthonormal columns, independent of units and scaling."""
    return np.asarray(scipy.linalg.solve_triangular(R, Z.T, trans="T").T)


def _segments(paired: Paired, noise: Array) -> Iterator[Segment]:
    """Whitened rows of all channels, segment by segment: the blocks until the channels start over."""
    pending: list[PairedBlock] = []

    def joined() -> Segment:
        return Segment(
            np.vstack([p.Z / noise[p.channel] for p in pending]),
            np.vstack([p.X / noise[p.channel] for p in pending]),
            np.concatenate([p.y / noise[p.channel] for p in pending]),
            np.concatenate([p.index for p in pending]),
        )

    for block in paired.blocks():
        if pending and block.channel <= pending[-1].channel:
            yield joined()
            pending = []
        pending.append(block)
    if not pending:
        raise MissingData("the robust form needs the rows, which are not kept; use validity_f or exogeneity_f")
    yield joined()


def _labels(names: Sequence[str] | None, k: int, b: int) -> Sequence[str]:
    """Names of the columns, by default their numbers."""
    if k != b:
        raise InvalidShape(
            f"{k} instruments for {b} columns: the validity test needs one simulated column per measured column",
            "instruments",
        )
    labels = [f"column {i + 1}" for i in range(b)] if names is None else names
    if len(labels) != b:
        raise InvalidShape(f"{len(labels)} names are given for {b} columns", "names")
    return labels


def _checked_noise(paired: Paired, noise: ArrayLike) -> Array:
    """Return the noise per channel as an array, refusing wrong shapes and values."""
    std = np.asarray(noise, dtype=float)
    if std.shape != (len(paired.rows),) or not np.all(std > 0):
        raise InvalidValue(f"{named('noise')} must be {len(paired.rows)} positive numbers, one per channel")
    return std


def _checked_count(correlated_samples: int) -> int:
    """Return a number of samples, refusing what is not a positive integer."""
    if not isinstance(correlated_samples, int | np.integer) or correlated_samples < 1:
        raise InvalidValue(
            f"correlated_samples must be a positive integer, got {correlated_samples!r}", "correlated_samples"
        )
    return int(correlated_samples)
