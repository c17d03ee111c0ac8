"""
Designed against random motions
===============================

The confidence ellipsoid of the base parameters after a designed motion, and after a hundred random ones within the same
limits of position and velocity.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.excitation.basis import random_fourier

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
limits = {"joint*": {"lower": -1.5, "upper": 1.5, "velocity": 3.0}}
motion = dynid.design_excitation(robot, duration=6.0, limits=limits, budget=60, seed=0)

base, t = dynid.base_parameters(robot), np.arange(0.0, 6.0, 0.01)
bound, fastest = 1.5 * np.ones(2), 3.0 * np.ones(2)


def size(W):
    """Geometric mean of the half axes of the confidence ellipsoid for unit noise."""
    return np.exp(-np.mean(np.log(np.linalg.svd(W.reshape(-1, base.count), compute_uv=False))))


random = [size(base.regressor(*random_fourier(-bound, bound, fastest, 6.0, t, seed))) for seed in range(100)]
designed = size(motion.base_regressor(100.0))

fig, ax = plt.subplots(figsize=(5.0, 2.6), layout="constrained")
ax.hist(np.array(random) / designed, bins=25, color="#56B4E9", label="random motions")
ax.axvline(1.0, color="#D55E00", lw=2, label="designed")
ax.set(xlabel="size of the confidence ellipsoid, over that of the designed motion (-)", ylabel="motions (-)")
ax.legend()
