"""
Designed against random motions
===============================

The condition number of the base regressor, of a designed motion and of a hundred random ones within the same limits.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.excitation.fourier import random_fourier

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
limits = {"joint*": {"lower": -1.5, "upper": 1.5, "velocity": 3.0}}
motion = dynid.design_excitation(robot, duration=6.0, limits=limits, budget=1.0, seed=0)

base, t = dynid.base_parameters(robot), np.arange(0.0, 6.0, 0.02)
bound, fastest = 1.5 * np.ones(2), 3.0 * np.ones(2)
random = []
for seed in range(100):
    W = base.regressor(*random_fourier(-bound, bound, fastest, 6.0, t, seed))
    random.append(np.linalg.cond(W.reshape(-1, base.count)))

fig, ax = plt.subplots(figsize=(5.0, 2.6), layout="constrained")
ax.hist(random, bins=np.geomspace(min(random), max(random), 25), color="#56B4E9", label="random motions")
ax.axvline(motion.condition_number, color="#D55E00", lw=2, label="designed")
ax.set(xscale="log", xlabel="condition number (-)", ylabel="motions (-)")
ax.legend()
