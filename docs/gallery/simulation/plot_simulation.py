"""
A robot under its controller
============================

Positions with their references, tracking errors and torques of a TX40 with a cascade controller.
"""

import numpy as np

import dynid

robot = dynid.load_robot("tx40")
kp, kv = dynid.controllers.bandwidth_gains(robot, [10, 10, 10, 20, 20, 20])
loop = dynid.ClosedLoop(controller=dynid.controllers.cascade(1000.0, kp, kv))
t = np.arange(3000) / 1000.0
path = 0.4 * (1.0 - np.cos(2 * np.pi * 0.5 * t))[:, None] * np.linspace(0.6, 1.2, 6)
simulation = dynid.simulate(robot, loop, path)
axes = simulation.plot(joints=["joint1", "joint2", "joint3"])

# %%
# The largest errors and torques.
simulation
