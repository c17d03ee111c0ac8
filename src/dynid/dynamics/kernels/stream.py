"""Compiled steps of a stream: filtered regressor rows of each sample, and their rotation into triangular factors.

No array is created here. What a step needs lies in the arrays of `Stream` and `Factors`, made once.

The rows [W y] of a sample pass one low-pass H each, which keeps H W pi = H y, and are rotated in with forgetting:

    R'R <- fade^2 R'R + [W y]'[W y],    weight <- fade^2 weight + 1.

Sources: Khalil and Dombre, Modeling, Identification and Control of Robots (2002), for one filter on both sides of the
equation; Haykin, Adaptive Filter Theory (2002), chapter on square-root adaptive filters, for the factor.
"""

from math import sqrt
from typing import Any, NamedTuple

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.dynamics.kernels.drives import drive_regressor
from dynid.dynamics.kernels.regressor import regressor_sample

# Values beyond this, in any unit, are faults of a sensor or of the transfer; so is what is no number.
LARGEST = 1e9
# Entries of Stream.state.
PLACE, SEEN, PHASE, REJECTED = 0, 1, 2, 3
# Entries of Factors.state.
SLOT, LEFT, LENGTH, FILLED = 0, 1, 2, 3


class Stream(NamedTuple):
    """Filters and work space of a stream of samples of n joints, with a low-pass of m taps and rows of f entries.

    A row is [W y] of every channel, one after another from `start`, each with the columns that the channel can have;
    then the velocity of the joint of every channel. `column` is the parameter of each entry, -1 for a torque.
    """

    taps: Any  # (3, m)
    sections: Any  # (s, 6)
    past_q: Any  # (n, 2 m), every sample twice, so that the last m of them are always contiguous
    past_v: Any  # (n, 2 m)
    past_torque: Any  # (m, n)
    q: Any  # (1, n)
    v: Any  # (1, n)
    a: Any  # (1, n)
    R: Any
    P: Any
    J: Any
    V: Any
    A: Any
    W: Any
    Y: Any  # (1, channel, p)
    start: Any  # (channel + 1,)
    column: Any  # (f,)
    joint: Any  # (channel,)
    delayed: Any  # (s, 2, f), state of the sections
    lowest: Any  # (n,)
    highest: Any  # (n,)
    fastest: Any  # (n,)
    state: Any  # (4,)
    period: Any  # (1,)


class Factors(NamedTuple):
    """Triangular factors of every channel, one set per block of time.

    The factor of channel c has start[c + 1] - start[c] columns and begins at place[c] of a block. `weight` is the
    number of rows in it, faded; `clock` counts the rows of a channel, and `last` is its value at the last rotation.
    """

    start: Any  # (channel + 1,)
    place: Any  # (channel + 1,)
    values: Any  # (block, size)
    weight: Any  # (block, channel)
    last: Any  # (block, channel)
    clock: Any  # (channel,)
    fade: Any  # (1,), square root of the weight that one row takes from those before it
    share: Any  # (channel,), of the largest velocity below which rows are left out
    least: Any  # (channel,), the same as a velocity
    smallest: Any  # (channel,), range below which a joint stands still
    state: Any  # (4,)
    window: Any  # (1,), one if a block is emptied before it is used again
    row: Any  # (f,)


@step
def _restart(s):
    """Forget the samples so far: filters begin at rest, which is the same for both sides of the equation."""
    s.state[SEEN] = 0
    s.state[PHASE] = 0
    for i in range(s.delayed.shape[0]):
        for k in range(2):
            for c in range(s.delayed.shape[2]):
                s.delayed[i, k, c] = 0.0


@step
def _usable(q, v, torque, k):
    good = True
    for j in range(q.shape[1]):
        good = good and abs(q[k, j]) <= LARGEST and abs(v[k, j]) <= LARGEST and abs(torque[k, j]) <= LARGEST
    return good


@step
def _motion(s, measured):
    """Position, velocity and acceleration of every joint, `m // 2` samples ago."""
    m = s.taps.shape[1]
    first = s.state[PLACE] + 1
    for j in range(s.past_q.shape[0]):
        x, y, z = 0.0, 0.0, 0.0
        if measured:
            for i in range(m):
                x += s.taps[0, i] * s.past_q[j, first + i]
                y += s.taps[0, i] * s.past_v[j, first + i]
                z += s.taps[1, i] * s.past_v[j, first + i]
        else:
            for i in range(m):
                p = s.past_q[j, first + i]
                x += s.taps[0, i] * p
                y += s.taps[1, i] * p
                z += s.taps[2, i] * p
        s.q[0, j], s.v[0, j], s.a[0, j] = x, y, z
        s.lowest[j] = min(s.lowest[j], x)
        s.highest[j] = max(s.highest[j], x)
        s.fastest[j] = max(s.fastest[j], abs(y))


@step
def _low_pass(s, row):
    """Pass the row through the sections in place (transposed direct form II)."""
    for i in range(s.sections.shape[0]):
        b0, b1, b2 = s.sections[i, 0], s.sections[i, 1], s.sections[i, 2]
        a1, a2 = s.sections[i, 4], s.sections[i, 5]
        near, far = s.delayed[i, 0], s.delayed[i, 1]
        for c in range(row.shape[0]):
            x = row[c]
            y = b0 * x + near[c]
            near[c] = b1 * x - a1 * y + far[c]
            far[c] = b2 * x - a2 * y
            row[c] = y


@kernel
def filtered_rows(tree, drives, s, q, v, torque, measured, restart, out):
    """Filter the samples q, v, torque (N, n) and fill out[:count] with the rows that are due; returns count.

    `measured` says whether v holds measured velocities. `restart` begins anew before the first sample. A sample
    with a value that is not finite or absurdly large is counted in s.state[REJECTED]; the filters begin anew after it.
    """
    if restart:
        _restart(s)
    count = 0
    m, channels = s.taps.shape[1], s.joint.shape[0]
    for k in range(q.shape[0]):
        if not _usable(q, v, torque, k):
            s.state[REJECTED] += 1
            _restart(s)
            continue
        place = (s.state[PLACE] + 1) % m
        s.state[PLACE] = place
        for j in range(q.shape[1]):
            s.past_q[j, place] = s.past_q[j, place + m] = q[k, j]
            s.past_v[j, place] = s.past_v[j, place + m] = v[k, j]
            s.past_torque[place, j] = torque[k, j]
        s.state[SEEN] += 1
        if s.state[SEEN] < m:
            continue
        _motion(s, measured)
        for i in range(s.Y.shape[1]):
            for c in range(s.Y.shape[2]):
                s.Y[0, i, c] = 0.0
        regressor_sample(tree, s.q, s.v, s.a, 0, s.R, s.P, s.J, s.V, s.A, s.W, s.Y)
        drive_regressor(tree, drives, s.q, s.v, s.a, 0, 1, s.Y)
        row, then = out[count], (place + 1 + m // 2) % m
        for c in range(channels):
            j = s.joint[c]
            for i in range(s.start[c], s.start[c + 1]):
                row[i] = s.Y[0, j, s.column[i]] if s.column[i] >= 0 else s.past_torque[then, j]
            row[s.start[channels] + c] = s.v[0, j]
        _low_pass(s, row)
        s.state[PHASE] += 1
        if s.state[PHASE] == s.period[0]:
            s.state[PHASE] = 0
            count += 1
    return count


@step
def _rotate(R, first, size, x, fade):
    """Rotate a row x (size,) into the triangular factor at R[first:], whose rows are multiplied by `fade` before."""
    for j in range(size):
        at = first + j * size
        # Givens rotation of the faded row j and the new row, which makes x[j] zero.
        r, y = fade * R[at + j], x[j]
        h = sqrt(r * r + y * y)
        if h == 0.0:
            continue
        c, d = r / h, y / h
        R[at + j] = h
        for i in range(j + 1, size):
            p, o = fade * R[at + i], x[i]
            R[at + i] = c * p + d * o
            x[i] = c * o - d * p


@kernel
def next_block(f):
    """Go on with the next block of time; blocks become twice as long after each turn unless something is forgotten."""
    blocks = f.values.shape[0]
    f.state[SLOT] += 1
    f.state[FILLED] = max(f.state[FILLED], min(f.state[SLOT] + 1, blocks))
    if f.state[SLOT] == blocks:
        f.state[SLOT] = 0
        if f.window[0] == 0 and f.fade[0] == 1.0:
            f.state[LENGTH] *= 2
    f.state[LEFT] = f.state[LENGTH]
    if f.window[0]:
        slot = f.state[SLOT]
        for i in range(f.values.shape[1]):
            f.values[slot, i] = 0.0
        for c in range(f.weight.shape[1]):
            f.weight[slot, c] = 0.0


@kernel
def fold_rows(s, f, rows, count):
    """Rotate rows[:count] into the factors of the current block, without those of joints that stand still.

    Returns the number of rows of channels that were used.
    """
    used, channels = 0, s.joint.shape[0]
    for k in range(count):
        slot = f.state[SLOT]
        for c in range(channels):
            j = s.joint[c]
            if not s.highest[j] - s.lowest[j] > f.smallest[c]:
                continue
            if abs(rows[k, s.start[channels] + c]) < max(f.share[c] * s.fastest[j], f.least[c]):
                continue
            size = f.start[c + 1] - f.start[c]
            for i in range(size):
                f.row[i] = rows[k, f.start[c] + i]
            f.clock[c] += 1.0
            # Rows of this channel in other blocks have faded this one as well: as many steps as there were rows.
            fade = f.fade[0] ** (f.clock[c] - f.last[slot, c]) if f.fade[0] < 1.0 else 1.0
            f.last[slot, c] = f.clock[c]
            f.weight[slot, c] = f.weight[slot, c] * fade * fade + 1.0
            _rotate(f.values[slot], f.place[c], size, f.row, fade)
            used += 1
        f.state[LEFT] -= 1
        if f.state[LEFT] <= 0:
            next_block(f)
    return used
