"""
What the rigid model leaves
===========================

A Gaussian process learns stiction and ripple that no rigid model has. The band is its 95 % interval on unseen motion.
"""

import numpy as np

import dynid

arm = dynid.load_robot("twolink")
effects = dynid.simulation.UnmodeledEffects(stiction=[0.6, 0.3], ripple=[1.0, 0.5], harmonics=3.0)
law = dynid.controllers.pd(1000.0, [60.0, 30.0], [20.0, 8.0])
loop = dynid.ClosedLoop(controller=law, sensors=dynid.simulation.Sensors(torque_noise=0.02))
t = np.arange(8000) / 1000.0


def run(seed):
    rng = np.random.default_rng(seed)
    waves = [rng.uniform(-1, 1, 2) * np.sin(2 * np.pi * (k * t[:, None] / 8 + rng.uniform(size=2))) for k in (1, 2, 3)]
    return dynid.simulate(arm, loop, 0.5 * sum(waves), unmodeled=effects).run(f"run {seed}")


fitted = dynid.Recording(arm.coordinates, (run(1), run(2)))
model = arm.with_drives("viscous+coulomb+offset", rotor_inertia=True)
estimate = dynid.identify(model, fitted, "wls")
training = dynid.residual.Training(method="sparse", points=60, restarts=0)
residual = dynid.fit_residual(estimate, fitted, kernel="own", training=training)
axes = residual.plot(dynid.Recording(arm.coordinates, (run(4),)))

# %%
# Kernel, points and noise per joint.
residual
