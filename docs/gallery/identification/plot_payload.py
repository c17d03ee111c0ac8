"""
A payload
=========

Mass and centre of mass of a body on the flange, from a run with it and a run without.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("tx40")
tool = dynid.inertia.inertia_from_com(1.2, [0.0, 0.03, 0.08], np.diag([0.004, 0.004, 0.002]))
unloaded = synthetic_recording(robot, seed=1, duration=4.0)
loaded = synthetic_recording(robot.with_payload("link6", tool), seed=2, duration=4.0)
found = dynid.calibration.identify_payload(robot, loaded, unloaded, link="link6")

fig, ax = plt.subplots(figsize=(4.6, 2.6), layout="constrained")
ax.errorbar(range(3), 1e3 * found.centre, 2e3 * found.centre_std, fmt="o", capsize=3, label="estimate, 95 %")
ax.plot(range(3), [0.0, 30.0, 80.0], "D", mfc="none", color="#D55E00", label="truth")
ax.set_xticks(range(3), ["x", "y", "z"])
ax.set(ylabel="centre of mass (mm)", title=f"{found.mass:.3f} kg, standard deviation {found.mass_std:.2g} kg")
ax.legend()

# %%
# All ten inertial parameters.
found
