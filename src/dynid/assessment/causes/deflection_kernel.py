"""Integration of the deflections of many elastic joints: a kernel, because it goes from sample to sample.

    M d'' + c d' + k (d - half sign(d)) = force outside of the gap, M d'' = force inside; beta = 1/4, gamma = 1/2

Source: Newmark, A Method of Computation for Structural Dynamics (1959).
"""

import numpy as np

from dynid.dynamics.kernels.compiler import kernel


@kernel
def integrate_deflections(inertia, force, stiffness, damping, half, step, state, every, out):
    """Deflections (N, joint, spring, 3) under a force (M, joint) that is given at every so many samples.

    The state (joint, spring, 3) is deflection, velocity and acceleration; `half` is half the gap of each spring.
    Newmark's average acceleration; the contact of a gap is that of the predicted deflection. Between the steps the
    state is interpolated, after the last one it stays.
    """
    joints, springs, _ = state.shape
    before = np.empty(3)
    for i in range(len(force)):
        for j in range(joints):
            for s in range(springs):
                here = state[j, s]
                for n in range(3):
                    before[n] = here[n]
                v = here[1] + 0.5 * step * here[2]
                d = here[0] + step * here[1] + 0.25 * step**2 * here[2]
                k, c = (stiffness[j, s], damping[j, s]) if abs(d) >= half[s] else (0.0, 0.0)
                a = (force[i, j] - c * v - k * (d - half[s] * np.sign(d))) / (
                    inertia[i, j] + 0.5 * step * c + 0.25 * step**2 * k
                )
                here[0], here[1], here[2] = d + 0.25 * step**2 * a, v + 0.5 * step * a, a
                for r in range(every if i else 0):
                    part = r / every
                    for n in range(3):
                        out[(i - 1) * every + r, j, s, n] = (1.0 - part) * before[n] + part * here[n]
    for n in range((len(force) - 1) * every, len(out)):
        out[n] = state
