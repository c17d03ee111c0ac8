"""
A designed motion
=================

Positions, velocities, accelerations and a-priori torques; dashed lines are the limits that the motion comes near to.
"""

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
limits = {"joint*": {"lower": -1.5, "upper": 1.5, "velocity": 3.0, "acceleration": 12.0}}
motion = dynid.design_excitation(robot, duration=6.0, limits=limits, budget=60, seed=0)
axes = motion.plot()

# %%
# The use of limits, as notebooks show it.
motion
