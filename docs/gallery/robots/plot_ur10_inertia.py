"""
The inertia that the drives of a UR10 see
=========================================

Diagonal of the mass matrix over the angle of the elbow. The robot file is that of ``example-robot-data``.
"""

from importlib.metadata import files

import matplotlib.pyplot as plt
import numpy as np

import dynid


def robot_file(name):
    """A robot file of the package example-robot-data."""
    return next(f.locate() for f in files("example-robot-data") if f.name == name)


robot = dynid.load_robot(robot_file("ur10_robot.urdf"))
elbow = np.linspace(-3.0, 3.0, 200)
q = np.zeros((200, robot.n))
q[:, 2] = elbow
inertia = np.diagonal(dynid.mass_matrix(robot, q), axis1=1, axis2=2)

fig, ax = plt.subplots(figsize=(5.5, 2.8), layout="constrained")
ax.semilogy(elbow, inertia)
ax.set(xlabel="elbow (rad)", ylabel="inertia (kg m²)")
ax.legend(robot.coordinates, ncols=2, fontsize=7)
