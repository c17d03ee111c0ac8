"""
Flexible joints
===============

The deflection of elastic gears, and the energy that they store.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid

robot = dynid.load_robot("tx40")
kp, kv = dynid.controllers.bandwidth_gains(robot, [10, 10, 10, 20, 20, 20])
loop = dynid.ClosedLoop(controller=dynid.controllers.cascade(1000.0, kp, kv))
t = np.arange(3000) / 1000.0
path = 0.4 * (1.0 - np.cos(2 * np.pi * 0.5 * t))[:, None] * np.linspace(0.6, 1.2, 6)
springs = dynid.simulation.UnmodeledEffects(stiffness=[4e4, 4e4, 2e4, 8e3, 8e3, 4e3], damping=10.0)
run = dynid.simulate(robot, loop, path, unmodeled=springs)
audit = dynid.simulation.energy_audit(run)

fig, (top, below) = plt.subplots(2, 1, sharex=True, figsize=(7.0, 3.4), layout="constrained")
top.plot(run.t, 1e3 * (run.motor_q - run.q)[:, :3])
top.set_ylabel("deflection (mrad)")
top.legend(robot.coordinates[:3], ncols=3)
below.plot(audit.t, 1e3 * audit.elastic, color="#009E73")
below.set(xlabel="time (s)", ylabel="elastic energy (mJ)")
