"""
Drive gains from currents
=========================

Torque per current of every joint, from runs with and without a body of known mass.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("tx40")
true = np.array([30.0, 30.0, 20.0, 12.0, 12.0, 8.0])
body = dynid.inertia.inertia_from_com(3.0, [0.0, 0.05, 0.1], 0.01 * np.eye(3))


def currents(arm, seed):
    recording = synthetic_recording(arm, seed, duration=4.0)
    runs = (replace(run, current=run.torque / true, torque=None) for run in recording.runs)
    return dynid.Recording(recording.joints, tuple(runs))


unloaded, loaded = currents(robot, 1), currents(robot.with_payload("link6", body), 2)
found = dynid.calibration.identify_drive_gains(robot, unloaded, loaded, payload=3.0, link="link6")

fig, ax = plt.subplots(figsize=(5.0, 2.6), layout="constrained")
ax.errorbar(found.joints, found.gains / true, 2.0 * found.std / true, fmt="o", capsize=3)
ax.axhline(1.0, color="#D55E00", ls="--")
ax.set_ylabel("gain over its true value (-)")

# %%
# Gains with their standard deviations.
found
