"""Motion of springs between motors that move as measured and links of a known mass matrix.

Newmark's method with gamma = 1/2:

    v_n = v_n-1 + h (a_n-1 + a_n) / 2,    x_n = x_n-1 + h v_n-1 + h^2 ((1/2 - beta) a_n-1 + beta a_n)
    (M + d h / 2 + beta k h^2) a_n = load - d (v_n-1 + h a_n-1 / 2) - k (x_n-1 + h v_n-1 + (1/2 - beta) h^2 a_n-1).

Source: Newmark, A Method of Computation for Structural Dynamics (1959).
"""

from typing import Any

import numpy as np

from dynid.dynamics.kernels.compiler import kernel


@kernel
def spring_responses(S: Any, load: Any, k: Any, d: Any, beta: float, h: float, x: Any, v: Any, a: Any) -> None:
    """Solve M x'' + d x' + k x = load by Newmark's method, for several loads at once.

    S (N, f, f) is the inverse of M + d h / 2 + beta k h^2, d (N, f), load (N, f, c); x, v, a (N, f, c) are written.
    The error is of fourth order in h with beta = 1/12 and of second order otherwise; 1/4 is stable for any stiffness.
    The first sample is that of a slow motion: x = load / k.
    """
    count, f, c = load.shape
    rest = np.empty((f, c))
    for i in range(f):
        for j in range(c):
            x[0, i, j] = load[0, i, j] / k[i]
            v[0, i, j] = (load[1, i, j] - load[0, i, j]) / (h * k[i])
            a[0, i, j] = 0.0
    for n in range(1, count):
        for i in range(f):
            for j in range(c):
                vp = v[n - 1, i, j] + 0.5 * h * a[n - 1, i, j]
                xp = x[n - 1, i, j] + h * v[n - 1, i, j] + (0.5 - beta) * h * h * a[n - 1, i, j]
                # Predictor with the acceleration before, corrected below by the one that balances the forces.
                x[n, i, j], v[n, i, j] = xp, vp
                rest[i, j] = load[n, i, j] - d[n, i] * vp - k[i] * xp
        for i in range(f):
            for j in range(c):
                total = 0.0
                for m in range(f):
                    total += S[n, i, m] * rest[m, j]
                a[n, i, j] = total
                v[n, i, j] += 0.5 * h * total
                x[n, i, j] += beta * h * h * total
