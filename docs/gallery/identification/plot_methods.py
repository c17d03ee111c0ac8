"""
Methods on one recording
========================

Errors on unseen motion of several methods, per joint.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

truth = dynid.load_robot("twolink", friction="viscous+coulomb")
prior = truth.with_parameters(1.3 * truth.parameters)
fitted, unseen = synthetic_recording(truth, 0, 6.0), synthetic_recording(truth, 1, 6.0)
methods = ("ols", "wls", "irls", "ridge", "feasible")
errors = {m: dynid.identify(prior, fitted, m).validate(unseen) for m in methods}

fig, ax = plt.subplots(figsize=(6.0, 2.6), layout="constrained")
for k, joint in enumerate(truth.coordinates):
    ax.bar(np.arange(len(methods)) + 0.4 * k - 0.2, [errors[m].rmse[k] for m in methods], 0.36, label=joint)
ax.set_xticks(range(len(methods)), methods)
ax.set_ylabel("RMSE (N m)")
ax.legend(ncols=2)
