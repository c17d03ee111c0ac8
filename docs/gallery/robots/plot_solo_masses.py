"""
Where a quadruped has its mass
==============================

Links of a Solo 12 as its file describes them, and the base parameters that joint torques show while its trunk is fixed.
The robot file is that of ``example-robot-data``.
"""

from importlib.metadata import files

import matplotlib.pyplot as plt
import numpy as np

import dynid


def robot_file(name):
    """A robot file of the package example-robot-data."""
    return next(f.locate() for f in files("example-robot-data") if f.name == name)


robot = dynid.load_robot(robot_file("solo12.urdf"))
links = [link for link in robot.links if link.inertia[0] > 0]
base = dynid.base_parameters(robot)

fig, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
ax.barh(range(len(links)), [link.inertia[0] for link in links], color="#0072B2")
ax.set_yticks(range(len(links)), [link.name for link in links], fontsize=7)
ax.invert_yaxis()
total = np.sum([link.inertia[0] for link in links])
ax.set(xlabel="mass (kg)", title=f"{total:.2f} kg, {base.count} base parameters of {base.matrix.shape[1]}")
