"""
How long to record
==================

The predicted relative standard deviation of every base parameter after some periods of a motion.
"""

import matplotlib.pyplot as plt

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
limits = {"joint*": {"lower": -1.5, "upper": 1.5, "velocity": 3.0}}
motion = dynid.design_excitation(robot, duration=6.0, limits=limits, budget=60, seed=0)
periods = [1, 2, 5, 10, 20, 50]
base = motion.criterion.base
known = base.values() != 0  # a relative error needs a value

fig, ax = plt.subplots(figsize=(5.0, 3.0), layout="constrained")
errors = [100.0 * motion.predicted_std(0.2, periods=n)[known] / abs(base.values()[known]) for n in periods]
ax.loglog(periods, errors, marker="o", ms=3)
ax.axhline(2.0, color="#8C8C8C", ls="--")
ax.set(xlabel="periods of 6 s (-)", ylabel="relative standard deviation (%)")
ax.legend([name for name, shown in zip(base.names, known) if shown], ncols=2)
