"""
Gravity torques of a Panda
==========================

The torque that the shoulder of a Franka Panda holds, over the angles of shoulder and elbow. The robot file is that of
the package ``example-robot-data`` (``pip install example-robot-data``).
"""

from importlib.metadata import files

import matplotlib.pyplot as plt
import numpy as np

import dynid


def robot_file(name):
    """A robot file of the package example-robot-data."""
    return next(f.locate() for f in files("example-robot-data") if f.name == name)


robot = dynid.load_robot(robot_file("panda.urdf"))
shoulder, elbow = np.meshgrid(np.linspace(-1.7, 1.7, 60), np.linspace(-3.0, -0.1, 60))
q = np.zeros((shoulder.size, robot.n))
q[:, 1], q[:, 3] = shoulder.ravel(), elbow.ravel()
torque = dynid.inverse_dynamics(robot, q, 0 * q, 0 * q)[:, 1].reshape(shoulder.shape)

fig, ax = plt.subplots(figsize=(5.0, 3.4), layout="constrained")
drawn = ax.contourf(shoulder, elbow, torque, 15, cmap="cividis")
ax.set(xlabel=f"{robot.coordinates[1]} (rad)", ylabel=f"{robot.coordinates[3]} (rad)")
fig.colorbar(drawn, label="torque of the shoulder (N m)")
