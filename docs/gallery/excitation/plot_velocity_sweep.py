"""
A sweep of constant velocities
==============================

The motion from which a friction map is measured: one joint at constant velocities in both directions.
"""

import matplotlib.pyplot as plt

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
sweep = dynid.friction.velocity_sweep(robot, "joint2", velocities=[0.1, 0.3, 1.0])
t, q, v, a = sweep.sample(100.0)

fig, (top, below) = plt.subplots(2, 1, sharex=True, figsize=(7.0, 3.2), layout="constrained")
top.plot(t, q[:, 1], color="#0072B2")
below.plot(t, v[:, 1], color="#0072B2")
top.set_ylabel("position (rad)")
below.set(xlabel="time (s)", ylabel="velocity (rad/s)")
