"""
What the rigid model leaves
===========================

A cable pulls at the joints, which no rigid model has. A Gaussian process learns its torque; the band is the 95 %
interval on unseen motion.
"""

import numpy as np

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
t = np.arange(2000) / 200.0


def run(seed):
    rng = np.random.default_rng(seed)
    rate = 2.0 * np.pi * np.arange(1, 5) / 10.0
    size, phase = rng.uniform(-0.6, 0.6, (4, 2)), rng.uniform(0.0, 6.0, (4, 2))
    wave = t[:, None, None] * rate[:, None] + phase
    q, v = (size * np.sin(wave)).sum(axis=1), (size * rate[:, None] * np.cos(wave)).sum(axis=1)
    torque = dynid.inverse_dynamics(robot, q, v, -(size * rate[:, None] ** 2 * np.sin(wave)).sum(axis=1))
    cable = 0.5 * np.sin(3.0 * q)
    return dynid.Run(t, q, torque=torque + cable + 0.05 * rng.normal(size=q.shape), name=f"run {seed}")


fitted = dynid.Recording(robot.coordinates, (run(1), run(2), run(3)))
training = dynid.residual.Training(method="sparse", points=40, restarts=0)
residual = dynid.fit_residual(robot, fitted, kernel="own", training=training)
axes = residual.plot(dynid.Recording(robot.coordinates, (run(4),)))

# %%
# Kernel, points and noise per joint.
residual
