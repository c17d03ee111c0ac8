"""Update of a triangular factor by rows, at the same cost for every sample.

    R_i <- c R_i + s x,    x <- c x - s R_i,    c = R_ii / h,    s = x_i / h,    h = sqrt(R_ii^2 + x_i^2)

makes x_i zero, for every row i of R and a new row x. Rotations are orthogonal, so that R'R becomes R'R + x'x.

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), chapter 5 (Givens rotations).
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel


@kernel
def rotate_in(R, rows):
    """Fold rows (m, b), which are overwritten, into the upper triangle R (b, b) by Givens rotations."""
    size = R.shape[0]
    for k in range(rows.shape[0]):
        x = rows[k]
        for i in range(size):
            if x[i] == 0.0:
                continue
            y = R[i]
            h = np.hypot(y[i], x[i])
            c, s = y[i] / h, x[i] / h
            y[i] = h
            for j in range(i + 1, size):
                t = y[j]
                y[j] = c * t + s * x[j]
                x[j] = c * x[j] - s * t
