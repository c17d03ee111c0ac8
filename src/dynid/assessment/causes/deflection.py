"""Deflection of an elastic joint, with or without backlash, under the load of a recorded motion.

    M_jj d'' + c d' + k d = load,    k = mean(M_jj) (2 pi f)^2,    c = 2 ratio sqrt(k mean(M_jj))

Source: Spong, Modeling and Control of Elastic Joint Robots (1987), of whose robot each joint is taken by itself here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.batch import first_use
from dynid.dynamics.functions import mass_matrix
from dynid.dynamics.kernels.compiler import kernel
from dynid.robot.model import Robot
from dynid.signals.settings import Motion

__all__ = ["BETWEEN", "FREQUENCIES", "GAPS", "deflections"]


Array = NDArray[np.float64]

# Frequencies (Hz) at which the body behind a joint oscillates at its mean inertia, and their damping ratio; whole gaps
# (rad) and the frequency of their contact.
FREQUENCIES: Array = 3.0 * 1.2 ** np.arange(0.0, 10.0)
GAPS: Array = np.radians([0.3, 0.6, 1.0, 1.5])
_CONTACT = 25.0
_DAMPING = 0.07
# Factors from a frequency to those between it and its neighbours. The phase of so little damped an oscillation is lost
# where the frequency is wrong by more than the damping ratio; steps of 4 % stay within it.
BETWEEN = 1.2 ** (np.array([-4, -3, -2, -1, 1, 2, 3, 4]) / 5)
# Steps per second of the integration: an average-acceleration step is stable at any.
_RATE = 200.0


def deflections(
    robot: Robot, motion: Motion, load: Array, parameters: Array, frequencies: Array = FREQUENCIES, gaps: Array = GAPS
) -> tuple[Array, Array]:
    """Deflection of every joint, elastic or with a gap: (N, joint, spring, 3) with first and second derivative.

    The body behind joint j follows M_jj d'' + c d' + k d = load, where the load (N, joint) is that of the rigid robot;
    with a gap, the spring acts outside of it. The first result holds one spring per frequency (Hz), per unit of load;
    the second one gap per entry of `gaps`, in rad. A joint without positive inertia has no deflection.
    """
    n, count = robot.n, len(motion.t)
    every = max(1, int(motion.rate / _RATE))
    step = every / motion.rate
    q, force = motion.q[::every], load[::every]
    inertia = np.einsum("tjj->tj", mass_matrix(robot, q, parameters))
    # An estimate that is not physically consistent may have no positive inertia; such a joint is taken as rigid.
    heavy = inertia.mean(axis=0) > 0
    force = force * heavy
    inertia = np.where(heavy, np.maximum(inertia, 1e-3 * inertia.mean(axis=0)), 1.0)
    mean = inertia.mean(axis=0)[:, None]
    frequency = np.concatenate([frequencies, np.full(len(gaps), _CONTACT)])
    gap = np.concatenate([np.zeros(len(frequencies)), gaps])
    stiffness = mean * (2 * np.pi * frequency) ** 2
    damping = 2 * _DAMPING * np.sqrt(stiffness * mean)
    side = np.sign(force[0])[:, None]
    state = np.zeros((n, len(frequency), 3))
    state[:, :, 0] = force[0][:, None] / stiffness + 0.5 * gap * side
    out = np.empty((count, n, len(frequency), 3))
    with first_use(integrate_deflections):
        integrate_deflections(inertia, force, stiffness, damping, 0.5 * gap, step, state, every, out)
    out *= heavy[:, None, None]
    return out[:, :, : len(frequencies)], out[:, :, len(frequencies) :]


# Integration of the deflections of many elastic joints: a kernel, because it goes from sample to sample.
#
#     M d'' + c d' + k (d - half sign(d)) = force outside of the gap, M d'' = force inside; beta = 1/4, gamma = 1/2
#
# Source: Newmark, A Method of Computation for Structural Dynamics (1959).


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
