"""
Standard deviations over time
=============================

Longer recordings give smaller standard deviations: with the root of the duration (dotted), and faster as long as the
motion still comes to new postures.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
recording = synthetic_recording(robot, seed=0, duration=20.0)
seconds = np.array([3.0, 5.0, 10.0, 20.0])
std = [dynid.identify(robot, recording.between(0.0, s), "wls", noise_model="white").std for s in seconds]
names = dynid.base_parameters(robot).names

fig, ax = plt.subplots(figsize=(5.0, 3.0), layout="constrained")
ax.loglog(seconds, std, marker="o", ms=3)
ax.loglog(seconds, 0.05 / np.sqrt(seconds), "k:", label="root of the duration")
ax.set(xlabel="duration (s)", ylabel="standard deviation (SI units)")
ax.set_xticks(seconds, [f"{s:g}" for s in seconds])
ax.minorticks_off()
ax.legend([*names, "root of the duration"], ncols=2)
