"""
Correlation of the estimates
============================

Parameters whose errors are correlated cannot be told apart well from the motion at hand.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
estimate = dynid.identify(robot, synthetic_recording(robot, seed=0, duration=8.0), "wls")
correlation = estimate.covariance / np.outer(estimate.std, estimate.std)

fig, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
image = ax.imshow(correlation, cmap="RdBu_r", vmin=-1, vmax=1)
places = range(estimate.beta.size)
ax.set_xticks(places, estimate.base.names, rotation=90)
ax.set_yticks(places, estimate.base.names)
ax.grid(visible=False)
fig.colorbar(image, label="correlation (-)")
