"""
Which friction model
====================

A joint with Stribeck friction: candidate models, the selected one as a thick line.
"""

import numpy as np

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
t = np.arange(4000) / 200.0
q = np.column_stack([np.sin(0.9 * t) + 0.3 * np.sin(2.3 * t), np.sin(1.3 * t) + 0.3 * np.cos(3.1 * t)])
v = np.gradient(q, t, axis=0)
a = np.gradient(v, t, axis=0)
torque = dynid.inverse_dynamics(robot, q, v, a) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
torque += 0.8 * np.exp(-((v / 0.25) ** 2)) * np.tanh(v / 0.01)
recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
fit = dynid.friction.fit_friction(robot, recording, "joint1", models=["viscous", "coulomb+viscous", "stribeck"])
ax = fit.plot(models=3)
