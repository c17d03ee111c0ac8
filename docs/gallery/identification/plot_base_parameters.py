"""
What is identifiable
====================

Every base parameter is a combination of standard parameters. Of seven joints of a WAM, the weights on the standard
parameters of each link.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid

robot = dynid.load_robot("wam7")
base = dynid.base_parameters(robot)

fig, ax = plt.subplots(figsize=(7.0, 4.6), layout="constrained")
shown = np.where(base.matrix == 0, np.nan, np.log10(np.abs(base.matrix) + 1e-12))
image = ax.imshow(shown, cmap="cividis", aspect="auto", vmin=-3, vmax=0, interpolation="nearest")
ax.set(xlabel="standard parameter (-)", ylabel="base parameter (-)", title=f"{base.count} of {base.matrix.shape[1]}")
ax.grid(visible=False)
fig.colorbar(image, label="weight, power of ten (-)")
