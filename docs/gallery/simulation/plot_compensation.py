"""
Feed-forward of an identified model
===================================

The tracking error of the same controller alone, and with the torques of a model.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid

robot = dynid.load_robot("tx40")
kp, kv = dynid.controllers.bandwidth_gains(robot, [10, 10, 10, 20, 20, 20])
loop = dynid.ClosedLoop(controller=dynid.controllers.pd(1000.0, kp * kv, kv))
t = np.arange(3000) / 1000.0
path = 0.4 * (1.0 - np.cos(2 * np.pi * 0.5 * t))[:, None] * np.linspace(0.6, 1.2, 6)
law = loop.controller
fed = dynid.ClosedLoop(controller=law.with_feedforward("full", robot))

fig, ax = plt.subplots(figsize=(7.0, 2.6), layout="constrained")
for name, one in {"controller alone": loop, "with feed-forward": fed}.items():
    run = dynid.simulate(robot, one, path)
    ax.plot(run.t, 1e3 * (run.q - run.reference)[:, 1], label=name)
ax.set(xlabel="time (s)", ylabel="tracking error of joint 2 (mrad)")
ax.legend()
