"""Kernels of a predictor: rigid inverse dynamics, covariances to all points, mean, variance, fading."""

from math import cos, exp, log1p, sin, sqrt, tanh
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.drives import drive_torque
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import place_and_move
from dynid.dynamics.tree import DriveArrays, Tree
from dynid.residual.layout import CHUNK, NEIGHBOURS, Flag, Shape
from dynid.residual.layout import Field as F

# An exponential that the compiler can turn into vector instructions.


@intrinsic
def _bits_of(context, x):
    """The 64 bits of a number as an integer."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), code


@intrinsic
def _number_of(context, bits):
    """The number that 64 bits stand for."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), code


@step
def decay(x):
    """exp(-x) for x >= 0 to 1e-14 relative, without branches, so that a loop over it becomes vector instructions.

    exp(-x) = 2^n exp(r) with |r| <= ln(2) / 2 and the series of exp(r) to the eleventh power. Beyond 700 it stays at
    exp(-700), 1e-304.
    """
    x = -min(x, 700.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    p = 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # 1.5 * 2^52 + 1023: the last bits of the sum are the exponent of 2^n.
    return p * _number_of(_bits_of(n + 6755399441056767.0) << 52)


class Tables(NamedTuple):
    """The integers, with their head, and the numbers of `dynid.residual.layout`."""

    integers: np.ndarray
    numbers: np.ndarray


class Space(NamedTuple):
    """Preallocated arrays for intermediate results."""

    body: np.ndarray  # rotations, positions, velocities, accelerations, wrenches of bodies, twists of joints
    x: np.ndarray  # features (d,)
    squares: np.ndarray  # squared differences of every column (d, CHUNK)
    s: np.ndarray  # scaled squared distances (CHUNK,)
    k: np.ndarray  # covariances, as the weights stand
    part: np.ndarray  # of each block in the query
    mean: np.ndarray  # of each block
    r: np.ndarray  # (1 + d,)


# A step cannot return a view of an array; a function that numba inlines can.
view = njit(inline="always")


@step
def _at(t, field, i):
    """Entry i of an integer field."""
    return t.integers[t.integers[field] + i]


@step
def _count(t, field):
    """Number of entries of a field."""
    return t.integers[field + 1] - t.integers[field]


@step
def _number(t, field, i):
    """Entry i of a field of numbers."""
    return t.numbers[t.integers[field] + i]


@view
def _integers(t, field):
    """An integer field."""
    return t.integers[t.integers[field] : t.integers[field + 1]]


@view
def _numbers(t, field):
    """A field of numbers."""
    return t.numbers[t.integers[field] : t.integers[field + 1]]


@view
def _piece(t, field, start, count):
    """`count` entries of a field of numbers from `start` on."""
    return t.numbers[t.integers[field] + start : t.integers[field] + start + count]


@step
def _featured(t, w, q, v, a, i):
    """Features of sample i."""
    n, c = q.shape[1], 0
    for j in range(n):
        if _at(t, F.PERIODIC, j):
            w.x[c], w.x[c + 1] = sin(q[i, j]), cos(q[i, j])
            c += 2
        else:
            w.x[c] = q[i, j]
            c += 1
    for j in range(n):
        w.x[c + j] = v[i, j]
        w.x[c + n + j] = a[i, j]
        w.x[c + 2 * n + j] = tanh(v[i, j] / _number(t, F.VELOCITY_SCALE, j))
    for c in range(w.x.shape[0]):
        w.x[c] = (w.x[c] - _number(t, F.CENTER, c)) / _number(t, F.SCALE, c)


@step
def _divided(t, w, j):
    """Weights of the blocks of joint j at a query: the nearest ones share it."""
    first, last, d = _at(t, F.BLOCK_START, j), _at(t, F.BLOCK_START, j + 1), w.x.shape[0]
    if last - first == 1:
        w.part[first] = 1.0
        return
    p, nearest = _at(t, F.PART_START, j), np.inf
    for b in range(first, last):
        s = 0.0
        for i in range(_at(t, F.COLUMN_START, p), _at(t, F.COLUMN_START, p + 1)):
            c = _at(t, F.COLUMN, i)
            s += _number(t, F.INVERSE_SQUARED_LENGTH, i) * (w.x[c] - _number(t, F.BLOCK_CENTER, b * d + c)) ** 2
        w.mean[b] = s
        nearest = min(nearest, s)
    for b in range(first, last):
        w.mean[b] = exp(-0.5 * (w.mean[b] - nearest))
    least = 0.0
    if last - first > NEIGHBOURS:
        for b in range(first, last):
            ahead = 0
            for c in range(first, last):
                ahead += w.mean[c] > w.mean[b] or (w.mean[c] == w.mean[b] and c < b)
            if ahead == NEIGHBOURS:
                least = w.mean[b]
    total = 0.0
    for b in range(first, last):
        w.part[b] = max(w.mean[b] - least, 0.0)
        total += w.part[b]
    for b in range(first, last):
        w.part[b] = w.part[b] / total if total > 0.0 else 1.0 / (last - first)


@step
def _distances(t, squares, s, p, count):
    """Scaled squared distances of part p to `count` points."""
    for i in range(count):
        s[i] = 0.0
    e, last = _at(t, F.COLUMN_START, p), _at(t, F.COLUMN_START, p + 1)
    while e + 7 <= last:
        a0, a1, a2 = squares[_at(t, F.COLUMN, e)], squares[_at(t, F.COLUMN, e + 1)], squares[_at(t, F.COLUMN, e + 2)]
        a3, a4, a5 = (
            squares[_at(t, F.COLUMN, e + 3)],
            squares[_at(t, F.COLUMN, e + 4)],
            squares[_at(t, F.COLUMN, e + 5)],
        )
        a6 = squares[_at(t, F.COLUMN, e + 6)]
        c0, c1 = _number(t, F.INVERSE_SQUARED_LENGTH, e), _number(t, F.INVERSE_SQUARED_LENGTH, e + 1)
        c2, c3 = _number(t, F.INVERSE_SQUARED_LENGTH, e + 2), _number(t, F.INVERSE_SQUARED_LENGTH, e + 3)
        c4, c5 = _number(t, F.INVERSE_SQUARED_LENGTH, e + 4), _number(t, F.INVERSE_SQUARED_LENGTH, e + 5)
        c6 = _number(t, F.INVERSE_SQUARED_LENGTH, e + 6)
        for i in range(count):
            s[i] += c0 * a0[i] + c1 * a1[i] + c2 * a2[i] + c3 * a3[i] + c4 * a4[i] + c5 * a5[i] + c6 * a6[i]
        e += 7
    while e < last:
        a0, c0 = squares[_at(t, F.COLUMN, e)], _number(t, F.INVERSE_SQUARED_LENGTH, e)
        for i in range(count):
            s[i] += c0 * a0[i]
        e += 1


@step
def _covariances(shape, amplitude, power, s, k, count):
    """Add a part's covariances at distances s to k."""
    if shape == Shape.SE:
        for i in range(count):
            k[i] += amplitude * decay(0.5 * s[i])
    elif shape == Shape.MATERN32:
        for i in range(count):
            r = sqrt(3.0 * s[i])
            k[i] += amplitude * (1.0 + r) * decay(r)
    elif shape == Shape.MATERN52:
        for i in range(count):
            r = sqrt(5.0 * s[i])
            k[i] += amplitude * (1.0 + r + r * r / 3.0) * decay(r)
    elif shape == Shape.EXPONENTIAL:
        for i in range(count):
            k[i] += amplitude * decay(sqrt(s[i]))
    elif shape == Shape.RATIONAL_QUADRATIC:
        for i in range(count):
            k[i] += amplitude * decay(power * log1p(s[i] / (2.0 * power)))


@step
def _product(a, b, count):
    """Inner product of the first entries."""
    total = 0.0
    for i in range(count):
        total += a[i] * b[i]
    return total


@step
def _set_means(t, w, g):
    """Covariances to the points of set g and means of its blocks, those with a positive weight."""
    size, first, last = (
        _at(t, F.SET_SIZE, g),
        _at(t, F.SET_BLOCK_START, g),
        _at(t, F.SET_BLOCK_START, g + 1),
    )
    active = False
    for e in range(first, last):
        w.mean[_at(t, F.SET_BLOCK, e)] = 0.0
        active = active or w.part[_at(t, F.SET_BLOCK, e)] > 0.0
    if not active:
        return
    for low in range(0, size, CHUNK):
        count = min(CHUNK, size - low)
        start = _at(t, F.SET_POINT_START, g) + low
        for e in range(_at(t, F.SET_COLUMN_START, g), _at(t, F.SET_COLUMN_START, g + 1)):
            c = _at(t, F.SET_COLUMN, e)
            z, x, out = _piece(t, F.POINTS, start, count), w.x[c], w.squares[c]
            for i in range(count):
                out[i] = (z[i] - x) * (z[i] - x)
            start += size
        for e in range(first, last):
            b = _at(t, F.SET_BLOCK, e)
            if w.part[b] > 0.0:
                start, j = _at(t, F.WEIGHT_START, b) + low, _at(t, F.JOINT, b)
                k = w.k[start : start + count]
                for i in range(count):
                    k[i] = 0.0
                for p in range(_at(t, F.PART_START, j), _at(t, F.PART_START, j + 1)):
                    _distances(t, w.squares, w.s, p, count)
                    amplitude, power = _number(t, F.AMPLITUDE, p), _number(t, F.POWER, p)
                    _covariances(_at(t, F.SHAPE, p), amplitude, power, w.s, k, count)
                w.mean[b] += _product(_piece(t, F.WEIGHTS, start, count), k, count)


@step
def _basis(w, i):
    """Basis function i: 1, then the features."""
    return w.x[i - 1] if i > 0 else 1.0


@step
def _block_variance(t, w, b, prior):
    """Posterior variance of block b, in scaled units."""
    first, last = _at(t, F.WEIGHT_START, b), _at(t, F.WEIGHT_START, b + 1)
    left, at = prior, _at(t, F.FACTOR_START, b)
    for i in range(_at(t, F.ROWS, b)):
        start = first + (i if _at(t, F.TRIANGULAR, b) else 0)
        y = _product(_piece(t, F.FACTORS, at, last - start), w.k[start:last], last - start)
        left -= y * y
        at += last - start
    count = _at(t, F.COEFFICIENT_START, b + 1) - _at(t, F.COEFFICIENT_START, b)
    for i in range(count):
        w.r[i] = _basis(w, i) - _product(_piece(t, F.FACTORS, at, last - first), w.k[first:last], last - first)
        at += last - first
    at = _at(t, F.BASIS_ROOT_START, b)
    for c in range(count):
        y = 0.0
        for i in range(count):
            y += _number(t, F.BASIS_ROOT, at + i * count + c) * w.r[i]
        left += y * y
    return max(left, 0.0)


@step
def _faded(t, uncertainty):
    """Share of the learned torque that is used at a share of the prior variance."""
    whole, gone = _number(t, F.BLEND, 0), _number(t, F.BLEND, 1)
    if whole == gone:
        return 1.0 if uncertainty <= whole else 0.0
    return min(max((gone - uncertainty) / (gone - whole), 0.0), 1.0)


@step
def _inside(t, w, j):
    """1 where the positions in joint j's kernel are within the range of the training data, falling to 0 beyond."""
    beyond, d = 0.0, w.x.shape[0]
    for c in range(d):
        out = max(_number(t, F.LOW, c) - w.x[c], w.x[c] - _number(t, F.HIGH, c))
        beyond = max(beyond, out * _number(t, F.EDGE, j * d + c))
    return max(1.0 - beyond, 0.0)


@step
def _joint(t, w, j, i, learned, share, std):
    """Learned torque of joint j from its blocks, share of it that is used, standard deviation of a measurement."""
    first, last = _at(t, F.BLOCK_START, j), _at(t, F.BLOCK_START, j + 1)
    variance, scale, bound = (
        _at(t, F.FLAGS, Flag.VARIANCE),
        _number(t, F.OUTPUT_SCALE, j),
        _number(t, F.BOUND, j),
    )
    learned[i, j] = share[i, j] = 0.0
    std[i, j] = 0.0 if variance else np.nan
    if first == last:
        return
    mean = left = second = 0.0
    for b in range(first, last):
        if w.part[b] > 0.0:
            y, at = w.mean[b], _at(t, F.COEFFICIENT_START, b)
            for c in range(_at(t, F.COEFFICIENT_START, b + 1) - at):
                y += _number(t, F.COEFFICIENTS, at + c) * _basis(w, c)
            y *= scale
            mean += w.part[b] * y
            if variance:
                left = scale * scale * _block_variance(t, w, b, _number(t, F.PRIOR_VARIANCE, j))
                second += w.part[b] * (left + y * y)
    share[i, j] = _inside(t, w, j) * _number(t, F.TRUST, j)
    if variance:
        if last - first > 1:
            left = second - mean * mean
        share[i, j] *= _faded(t, left / (scale * scale * _number(t, F.PRIOR_VARIANCE, j)))
        log, c = 2.0 * _number(t, F.NOISE, 2 * j), _at(t, F.NOISE_COLUMN, j)
        if c >= 0:
            direction = w.x[c] * _number(t, F.SCALE, c) + _number(t, F.CENTER, c)
            log += 2.0 * _number(t, F.NOISE, 2 * j + 1) * (1.0 - direction * direction)
        std[i, j] = sqrt(_number(t, F.VARIANCE_FACTOR, j) * (left + scale * scale * exp(log)))
    learned[i, j] = min(max(share[i, j] * mean, -bound), bound)


@kernel
def predict(t, w, q, v, a, start, stop, rigid, learned, share, std):
    """Torques of samples start:stop, (N, n) each; without variances the standard deviation is NaN."""
    joints, terms = _count(t, F.PARENT), _count(t, F.KIND)
    none, empty = t.integers[:0], t.numbers[:0].reshape((0, 2))
    tree = Tree(
        _integers(t, F.PARENT), _integers(t, F.COORDINATE), _numbers(t, F.RATIO), _numbers(t, F.OFFSET),
        _numbers(t, F.ROTATION).reshape((joints, 3, 9)), _numbers(t, F.POSITION).reshape((joints, 4, 3)),
        _numbers(t, F.SUBSPACE).reshape((joints, 6)), none, none, none, none, none,
        _integers(t, F.MASSIVE), _numbers(t, F.GRAVITY), 0, 0,
    )  # fmt: skip
    drives = DriveArrays(
        _integers(t, F.KIND), none, _integers(t, F.TERM_START), _integers(t, F.TERM_JOINT), _numbers(t, F.TERM_WEIGHT),
        _numbers(t, F.REST), _integers(t, F.CROSS), _numbers(t, F.SLOPE), empty, empty,
    )  # fmt: skip
    inertia, values = _numbers(t, F.INERTIA).reshape((joints + 1, 10)), _numbers(t, F.VALUE)
    B = joints + 1
    R, P = w.body[: 9 * B].reshape((B, 9)), w.body[9 * B : 12 * B].reshape((B, 3))
    V, A = w.body[12 * B : 18 * B].reshape((B, 6)), w.body[18 * B : 24 * B].reshape((B, 6))
    wrench, J = w.body[24 * B : 30 * B].reshape((B, 6)), w.body[30 * B : 30 * B + 6 * joints].reshape((joints, 6))
    for i in range(start, stop):
        for j in range(rigid.shape[1]):
            rigid[i, j] = 0.0
        if _at(t, F.FLAGS, Flag.RIGID):
            place_and_move(tree, q, v, a, i, R, P, J, V, A)
            rigid_torque(tree, inertia, R, P, J, V, A, wrench, rigid, i)
            if terms:
                drive_torque(tree, drives, values, q, v, a, i, rigid)
        _featured(t, w, q, v, a, i)
        for j in range(rigid.shape[1]):
            _divided(t, w, j)
        for g in range(_count(t, F.SET_SIZE)):
            _set_means(t, w, g)
        for j in range(rigid.shape[1]):
            _joint(t, w, j, i, learned, share, std)


@step
def _room(t):
    """Size of the working array of one sample."""
    joints, d, blocks = _count(t, F.PARENT), _count(t, F.CENTER), _count(t, F.ROWS)
    return 36 * joints + 30 + (d + 1) * CHUNK + 2 * d + 1 + _count(t, F.WEIGHTS) + 2 * blocks


@view
def _space(t, work):
    """The working array divided."""
    joints, d, blocks, points = (
        _count(t, F.PARENT),
        _count(t, F.CENTER),
        _count(t, F.ROWS),
        _count(t, F.WEIGHTS),
    )
    a = d * CHUNK
    b = a + CHUNK
    c = b + points
    e = c + d
    f = e + 1 + d
    g = f + blocks
    h = g + blocks
    return Space(
        work[h : h + 36 * joints + 30], work[c:e], work[:a].reshape((d, CHUNK)), work[a:b], work[b:c], work[f:g],
        work[g:h], work[e:f],
    )  # fmt: skip


@kernel
def room(index, numbers):
    """Size of the working array of `single`."""
    return _room(Tables(index, numbers))


@kernel
def batch(index, numbers, q, v, a, start, stop, rigid, learned, share, std):
    """Torques of samples start:stop, all finite."""
    t = Tables(index, numbers)
    predict(t, _space(t, np.empty(_room(t))), q, v, a, start, stop, rigid, learned, share, std)


@kernel
def single(index, numbers, work, state, results, out):
    """Torque of the one sample `state` (q, v, a) into out (n,), and whether all of it was finite.

    `results` are the rigid and learned torque, share, standard deviation, and the last finite position. Values that are
    not finite are replaced in `state`, as in dynid.residual.residual.fill_missing. Both are (., 1, n).
    """
    t = Tables(index, numbers)
    q, v, a = state[0], state[1], state[2]
    rigid, learned, share, std, last = results[0], results[1], results[2], results[3], results[4]
    valid = True
    for j in range(out.shape[0]):
        if np.isfinite(q[0, j]):
            last[0, j] = q[0, j]
        else:
            q[0, j], valid = last[0, j], False
        if not np.isfinite(v[0, j]):
            v[0, j], valid = 0.0, False
        if not np.isfinite(a[0, j]):
            a[0, j], valid = 0.0, False
    predict(t, _space(t, work), q, v, a, 0, 1, rigid, learned, share, std)
    for j in range(out.shape[0]):
        if not valid:
            learned[0, j] = share[0, j] = 0.0
        out[j] = rigid[0, j] + learned[0, j]
    return valid
