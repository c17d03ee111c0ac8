"""
A friction map
==============

Friction at constant velocities: half the difference of the torques in both directions, without a model of the robot.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
sweep = dynid.friction.velocity_sweep(robot, "joint2", velocities=[0.1, 0.2, 0.5, 1.0, 1.5])
t, q, v, a = sweep.sample(200.0)
torque = dynid.inverse_dynamics(robot, q, v, a) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
found = dynid.friction.friction_map(robot, recording, "joint2")

fig, ax = plt.subplots(figsize=(4.6, 2.8), layout="constrained")
ax.errorbar(found.velocity, found.friction, 2.0 * found.std, fmt="o", capsize=3)
ax.set(xlabel="velocity (rad/s)", ylabel="friction (N m)", xlim=(0.0, None))

# %%
# The same as a table.
found
