"""Recursive filters over many columns at once.

One section of second order in transposed direct form II, for input x and output y of a sample:

    y = b0 x + z0,    z0 <- b1 x - a1 y + z1,    z1 <- b2 x - a2 y.

Source: Oppenheim and Schafer, Discrete-Time Signal Processing (2010), chapter on structures for discrete-time
systems.
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel


@kernel
def filter_columns(sos, zi, x, backward):
    """Filter the columns of x (N, k) in place, in one direction, from the steady state of the first row."""
    rows, columns = x.shape
    sections = sos.shape[0]
    first = rows - 1 if backward else 0
    z = np.empty((sections, 2, columns))
    for s in range(sections):
        for c in range(columns):
            z[s, 0, c] = zi[s, 0] * x[first, c]
            z[s, 1, c] = zi[s, 1] * x[first, c]
    for n in range(rows):
        row = x[rows - 1 - n] if backward else x[n]
        for s in range(sections):
            b0, b1, b2, a1, a2 = sos[s, 0], sos[s, 1], sos[s, 2], sos[s, 4], sos[s, 5]
            early, late = z[s, 0], z[s, 1]
            for c in range(columns):
                value = row[c]
                out = b0 * value + early[c]
                early[c] = b1 * value - a1 * out + late[c]
                late[c] = b2 * value - a2 * out
                row[c] = out
