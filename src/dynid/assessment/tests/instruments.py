"""Tests of instruments: are the simulated regressors Z those of the robot, and can the measured ones X be trusted.

Z (m, k), X (m, b) and y (m,) are rows of all channels, each over its joint's torque noise. A test comes in two forms.
The plain form needs only a factor T with T'T = [Z X y]'[Z X y] and the number of independent rows; it takes the
noise of every row as the same. That holds for the torque, but not for the columns of V = X - Z, whose noise differs by
joint and by motion. The robust form therefore goes back to the rows: what should be uncorrelated is multiplied out,
summed over the joints of a sample, and the sums are tested for a mean of zero by Hotelling's T2, which lets them have
any covariance. Noise that joints share does no harm; noise that lasts for several samples is allowed for by `memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.hypothesis import Correction, Hypothesis, HypothesisTest, chi2_tail, f_ratio, f_tail
from dynid.identification.observation import fold
from dynid.identification.paired import Paired, PairedBlock
from dynid.signals.spacing import batch_sums, checked_index, usual_step

__all__ = [
    "Stretch",
    "exogeneity_f",
    "exogeneity_robust",
    "exogeneity_test",
    "hansen",
    "instrument_test",
    "sargan",
    "stretch",
    "validity_f",
    "validity_robust",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Tail = tuple[float, str, float]

_RANK = 1e-12
# What is left of a unit column after projection counts from here on; below, it is rounding.
_LEFT = 1e-9

_VALID = Hypothesis(
    "validity of the instruments (revised Durbin-Wu-Hausman)",
    "every measured column is its simulated one plus noise of mean zero",
    "the simulation follows the robot: no column differs by more than noise",
    "the simulation differs from the robot by more than noise in the columns",
    "instrument estimates can be trusted as far as the model goes",
    "the model or the controller of the simulation lacks an effect: look at missing_effects, then identify again",
)
_EXOGENOUS = Hypothesis(
    "exogeneity of the measured regressor (Durbin-Wu-Hausman)",
    "the measured columns are not correlated with the torque error",
    "no correlation is seen: least squares is as consistent as the instruments, and more precise",
    "the measured columns are correlated with the torque error: least squares is biased",
    "keep least squares",
    "use instruments (iv, didim), or filter positions more",
)
_OVER = Hypothesis(
    "overidentification ({form})",
    "all instruments are uncorrelated with the torque error",
    "the instruments agree with one another",
    "the instruments contradict one another: at least one is correlated with the torque error",
    "keep them all",
    "leave out the instruments that come from measured signals, or look for a missing effect",
)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Whitened rows of all channels from one stretch of time; rows of one sample have one number in `index`."""

    Z: Array
    X: Array
    y: Array
    index: Index


def stretch(Z: ArrayLike, X: ArrayLike, y: ArrayLike, index: ArrayLike | None = None) -> Stretch:
    """Rows at hand as a stretch; without `index` every row is a sample of its own."""
    z, x, t = np.asarray(Z, dtype=float), np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if z.ndim != 2 or x.ndim != 2 or t.ndim != 1 or not len(z) == len(x) == len(t):
        raise DataError(f"Z, X and y must have the same rows, got shapes {z.shape}, {x.shape} and {t.shape}")
    return Stretch(z, x, t, checked_index(index, len(t)))


def instrument_test(
    paired: Paired,
    noise: ArrayLike,
    *,
    memory: int = 10,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Whether the simulated regressor is the measured one without its noise, column by column, in the robust form.

    `noise` (channel,) weighs the joints. `memory` is the number of samples after which noise is forgotten: twice the
    last lag outside the limits of its correlogram, or 1 for independent samples. The default covers decimated rows.
    The test takes several times more samples than there are columns: rows decimated to the band of the positions'
    filter serve it better than those of the fit, which keep less.
    """
    deviation = _checked_noise(paired, noise)
    factor, rows = paired.stacked(1.0 / deviation), _stretches(paired, deviation)
    instruments = factor.shape[1] - 1 - paired.base.count
    return validity_robust(rows, factor, instruments, paired.base.names, memory, level, correction)


def exogeneity_test(paired: Paired, noise: ArrayLike, *, memory: int = 10, level: float = 0.05) -> HypothesisTest:
    """Whether the measured regressor is uncorrelated with the torque error, judged by valid instruments; robust form.

    Arguments as for `instrument_test`, which comes first: with invalid instruments this test means nothing.
    """
    deviation = _checked_noise(paired, noise)
    factor, rows = paired.stacked(1.0 / deviation), _stretches(paired, deviation)
    return exogeneity_robust(rows, factor, factor.shape[1] - 1 - paired.base.count, memory, level)


def validity_f(
    factor: ArrayLike,
    instruments: int,
    rows: float,
    names: Sequence[str] | None = None,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Plain form: regress every x_i on Z and test that the answer is z_i itself, F(k, rows - k).

    `factor` is any T with T'T = [Z X y]'[Z X y], the rows themselves included; Z are its first `instruments` columns.
    `rows` is the number of independent rows; fewer than there are if the noise of X has memory.
    """
    R, k, b = _triangle(factor, instruments)
    labels = _labels(names, k, b)
    D = _difference(R, k)
    tails = [f_ratio(float(d[:k] @ d[:k]), k, float(d[k:] @ d[k:]), rows - k) for d in D.T]
    return _VALID.judge_each(labels, tails, level, correction)


def validity_robust(
    stretches: Iterable[Stretch],
    factor: ArrayLike,
    instruments: int,
    names: Sequence[str] | None = None,
    memory: int = 1,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Robust form: Z'(x_i - z_i) has mean zero, whatever the noise of x_i."""
    R, k, b = _triangle(factor, instruments)
    labels = _labels(names, k, b)
    noisy = np.atleast_1d(_difference(R, k).any(axis=0))

    def scores(part: Stretch) -> Iterator[Array]:
        Q = _orthonormal(part.Z, R[:k, :k])
        for i in np.flatnonzero(noisy):
            yield Q * (part.X[:, i] - part.Z[:, i])[:, None]

    found = iter(_mean_zero(stretches, scores, int(noisy.sum()), k, memory))
    tails = [next(found) if seen else f_ratio(0.0, k, 1.0, 1.0) for seen in noisy]
    return _VALID.judge_each(labels, tails, level, correction)


def exogeneity_f(factor: ArrayLike, instruments: int, rows: float, level: float = 0.05) -> HypothesisTest:
    """Plain form: y = X p + V d + e with V what Z leaves of X; F test of d = 0.

    Columns of V that are rounding, because measured and simulated columns are the same, are left out.
    """
    R, k, b = _triangle(factor, instruments)
    basis, _, kept = _unexplained(R, k, b)
    rest = _off(R[:, k:-1], R[:, -1:])[:, 0]
    part = basis.T @ rest
    tail = f_ratio(float(part @ part), len(kept), float(np.sum((rest - basis @ part) ** 2)), rows - b - len(kept))
    return _EXOGENOUS.judge(*tail, level)


def exogeneity_robust(
    stretches: Iterable[Stretch], factor: ArrayLike, instruments: int, memory: int = 1, level: float = 0.05
) -> HypothesisTest:
    """Robust form: what Z and X leave of V, times the error of least squares, has mean zero."""
    R, k, b = _triangle(factor, instruments)
    _, columns, kept = _unexplained(R, k, b)
    beta = np.linalg.lstsq(R[:, k:-1], R[:, -1], rcond=None)[0]

    def scores(part: Stretch) -> Iterator[Array]:
        error = part.y - part.X @ beta
        yield (np.hstack([part.Z, part.X]) @ columns) * error[:, None]

    (tail,) = _mean_zero(stretches, scores, 1, len(kept), memory)
    return _EXOGENOUS.judge(*tail, level)


def sargan(factor: ArrayLike, instruments: int, rows: float, level: float = 0.05) -> HypothesisTest:
    """More instruments than columns: do they agree on the error of two-stage least squares? Even noise."""
    R, k, b = _overidentified(factor, instruments)
    beta = np.linalg.lstsq(R[:k, k:-1], R[:k, -1], rcond=None)[0]
    error = R[:, -1] - R[:, k:-1] @ beta
    power = float(error @ error)
    statistic = rows * float(error[:k] @ error[:k]) / power if power > 0 else 0.0
    return _over("Sargan").judge(*chi2_tail(statistic, k - b), level)


def hansen(rows: Stretch, memory: int = 1, level: float = 0.05) -> HypothesisTest:
    """Hansen's J of two-step moments: as `sargan`, for noise of any covariance within batches of `memory` samples."""
    R, k, b = _overidentified(np.column_stack([rows.Z, rows.X, rows.y]), rows.Z.shape[1])
    A, c = R[:k, k:-1], R[:k, -1]
    beta = np.linalg.lstsq(A, c, rcond=None)[0]
    moments = _orthonormal(rows.Z, R[:k, :k]) * (rows.y - rows.X @ beta)[:, None]
    sums = batch_sums(moments, rows.index, _checked_memory(memory), usual_step(np.unique(rows.index)))
    if len(sums) <= k:
        raise DataError(f"{len(sums)} batches of samples are too few for {k} instruments; record longer")
    L = scipy.linalg.qr(sums, mode="economic")[1].T
    A, c = scipy.linalg.solve_triangular(L, A, lower=True), scipy.linalg.solve_triangular(L, c, lower=True)
    rest = c - A @ np.linalg.lstsq(A, c, rcond=None)[0]
    return _over("Hansen's J").judge(*chi2_tail(float(rest @ rest), k - b), level)


def _mean_zero(
    stretches: Iterable[Stretch], scores: Callable[[Stretch], Iterator[Array]], count: int, width: int, memory: int
) -> list[Tail]:
    """Hotelling's T2 of the sample sums of `count` kinds of scores (m, width); only triangular factors are kept.

    Where scores have a memory, their sums over `memory` samples vary more, or less, than independent ones would. T2 is
    divided by that ratio, on average over all directions, and samples that repeat one another count as fewer.
    """
    _checked_memory(memory)
    samples, batches = ([np.zeros((0, width + 1)) for _ in range(count)] for _ in range(2))
    step, total, parts = 0, 0, 0
    for part in stretches:
        step = step or usual_step(np.unique(part.index))
        number = np.unique(part.index)
        inside = batch_sums(np.ones((len(number), 1)), number, memory, step)
        for i, rows in enumerate(scores(part)):
            single = batch_sums(rows, part.index, 1, step)
            samples[i] = fold(np.vstack([samples[i], np.column_stack([np.ones(len(single)), single])]))
            several = batch_sums(rows, part.index, memory, step)
            batches[i] = fold(np.vstack([batches[i], np.column_stack([inside, several])]))
        total += len(number)
        parts += len(inside)
    return [_hotelling(a, b, total, parts) for a, b in zip(samples, batches, strict=True)]


def _hotelling(samples: Array, batches: Array, total: int, parts: int) -> Tail:
    """T2 from the factors of [1 scores] and [count sums]; the first row holds the mean, the others what varies."""
    about = samples[1:, 1:]
    kept = _independent(about, np.linalg.norm(about, axis=0))[1]
    k = len(kept)
    if min(total, parts) <= 1 or total <= k:
        raise DataError(f"{total} samples are too few for {k} directions; record longer")
    R = scipy.linalg.qr(about[:, kept], mode="economic")[1]
    mean, vary = (scipy.linalg.solve_triangular(R, x[:, 1:][:, kept].T, trans="T") for x in (samples[:1], batches[1:]))
    inflation = float(np.sum(vary**2)) / k * parts / (parts - 1)
    worth = total / max(1.0, inflation)
    if worth <= k + 1:
        raise DataError(f"{total} samples with this memory are worth {worth:.0f}, too few for {k} directions")
    t2 = float(np.sum(mean**2)) * (total - 1) / inflation
    return f_tail(t2 * (worth - k) / (k * (worth - 1)), k, worth - k)


def _triangle(factor: ArrayLike, instruments: int) -> tuple[Array, int, int]:
    """Triangular factor of [Z X y], the number of instruments and that of columns."""
    T = np.asarray(factor, dtype=float)
    if T.ndim != 2 or not np.all(np.isfinite(T)):
        raise DataError("the factor of [Z X y] must be a finite matrix")
    b = T.shape[1] - 1 - instruments
    if b < 1 or instruments < b:
        raise DataError(f"{instruments} instruments are too few for {b} columns")
    R = np.asarray(scipy.linalg.qr(T, mode="r")[0][: T.shape[1]])
    if len(R) <= instruments:
        raise DataError(f"{len(R)} rows are too few for {instruments} instruments")
    for first, last, what in ((0, instruments, "instruments"), (instruments, -1, "regressor")):
        part = R[:, first:last]
        norms = np.linalg.norm(part, axis=0)
        size = np.linalg.svd(part / np.where(norms > 0, norms, 1.0), compute_uv=False)
        if size[-1] <= _RANK * size[0]:
            raise DataError(f"columns of the {what} depend on one another in these rows; excite more, or drop some")
    return R, instruments, b


def _overidentified(factor: ArrayLike, instruments: int) -> tuple[Array, int, int]:
    R, k, b = _triangle(factor, instruments)
    if k == b:
        raise DataError(f"{k} instruments for {b} columns leave nothing to test: more instruments are needed")
    return R, k, b


def _difference(R: Array, k: int) -> Array:
    """X - Z in the coordinates of the factor, with rounding taken for nothing."""
    D = R[:, k:-1] - R[:, :k]
    rounding = np.linalg.norm(D, axis=0) <= _RANK * np.linalg.norm(R[:, :k], axis=0)
    return np.asarray(np.where(rounding, 0.0, D))


def _unexplained(R: Array, k: int, b: int) -> tuple[Array, Array, Index]:
    """What X leaves of V = X - Z (Z'Z)^-1 Z'X: a basis, the combination of [Z X] that gives it, and which columns."""
    X = R[:, k:-1]
    V = X.copy()
    V[:k] = 0.0
    basis, kept = _independent(_off(X, V), np.linalg.norm(X, axis=0))
    if not kept.size:
        raise DataError("the measured regressor is the simulated one: there is no noise to test by")
    on_z = scipy.linalg.solve_triangular(R[:k, :k], X[:k])
    on_x = np.linalg.lstsq(X, V, rcond=None)[0]
    columns = np.vstack([-on_z, np.eye(b) - on_x])[:, kept]
    return basis, columns / np.linalg.norm(X, axis=0)[kept], kept


def _off(columns: Array, target: Array) -> Array:
    """What `columns` leave of `target`; twice, so that rounding stays small."""
    Q = scipy.linalg.qr(columns, mode="economic")[0]
    for _ in range(2):
        target = target - Q @ (Q.T @ target)
    return np.asarray(target)


def _independent(columns: Array, sizes: Array) -> tuple[Array, Index]:
    """Orthonormal basis of the columns over their `sizes`, rounding left out, and the columns it was taken from."""
    unit = columns / np.where(sizes > 0, sizes, 1.0)
    Q, R, order = scipy.linalg.qr(unit, mode="economic", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > _LEFT))
    return np.asarray(Q[:, :rank]), np.asarray(order[:rank])


def _orthonormal(Z: Array, R: Array) -> Array:
    """Z R^-1: the instruments as orthonormal columns, so that units and near dependence do no harm."""
    return np.asarray(scipy.linalg.solve_triangular(R, Z.T, trans="T").T)


def _stretches(paired: Paired, noise: Array) -> Iterator[Stretch]:
    """Whitened rows of all channels, stretch by stretch: blocks until the channels begin again."""
    pending: list[PairedBlock] = []

    def joined() -> Stretch:
        return Stretch(
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
        raise DataError("the robust form needs the rows again, which are not kept; use validity_f or exogeneity_f")
    yield joined()


def _labels(names: Sequence[str] | None, k: int, b: int) -> Sequence[str]:
    if k != b:
        raise DataError(f"{k} instruments for {b} columns: validity is tested with one simulated column for each")
    labels = [f"column {i + 1}" for i in range(b)] if names is None else names
    if len(labels) != b:
        raise DataError(f"{len(labels)} names are given for {b} columns")
    return labels


def _checked_noise(paired: Paired, noise: ArrayLike) -> Array:
    deviation = np.asarray(noise, dtype=float)
    if deviation.shape != (len(paired.rows),) or not np.all(deviation > 0):
        raise DataError(f"noise must be {len(paired.rows)} positive numbers, one a channel")
    return deviation


def _checked_memory(memory: int) -> int:
    if not isinstance(memory, int | np.integer) or memory < 1:
        raise DataError(f"memory is a whole number of samples, at least one, got {memory!r}")
    return int(memory)


def _over(form: str) -> Hypothesis:
    return replace(_OVER, name=_OVER.name.format(form=form))
