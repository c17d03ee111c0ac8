"""
Autocorrelation of the residual
===============================

White residuals stay within the band. Here friction that the model does not have leaves a trace.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
recording = synthetic_recording(robot, seed=0, duration=8.0)
models = {"complete model": robot, "without Coulomb friction": robot.without("fc*")}

fig, axes = plt.subplots(1, 2, sharey=True, figsize=(7.0, 2.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    estimate = dynid.identify(model, recording, "wls")
    observation = dynid.identification.observe(model, recording, signals=estimate.signals)
    shown = dynid.stats.residual_tests(observation, estimate.beta).correlograms["joint1"]
    lags = np.arange(1, len(shown.autocorrelation) + 1)
    ax.fill_between(lags, shown.expected - shown.limits, shown.expected + shown.limits, color="#0072B2", alpha=0.2)
    ax.vlines(lags, 0.0, shown.autocorrelation, color="#0072B2")
    ax.set(xlabel="lag (samples)", title=name)
axes[0].set_ylabel("autocorrelation (-)")
