"""
Plain and physically consistent masses
======================================

Least squares alone gives masses that no body can have; with constraints every link is physically consistent.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

truth = dynid.load_robot("tx40")
wrong = np.random.default_rng(1).uniform(0.4, 1.6, truth.parameters.size)
prior = truth.with_parameters(truth.parameters * wrong)
recording = synthetic_recording(truth, seed=0, duration=5.0)
found = {"least squares": dynid.identify(prior, recording, "wls")}
found["feasible"] = dynid.identify(prior, recording, "feasible")

masses = [f"m_{link.name}" for link in truth.links[1:]]
at = np.arange(len(masses))
places = [truth.parameter_names.index(name) for name in masses]
fig, ax = plt.subplots(figsize=(6.0, 2.8), layout="constrained")
ax.plot(at, prior.parameters[places], "D", mfc="none", color="#D55E00", label="a priori")
ax.plot(at - 0.1, found["least squares"].parameters[places], "s", color="#8C8C8C", label="least squares")
ax.plot(at + 0.1, found["feasible"].parameters[places], "o", color="#0072B2", label="feasible")
ax.axhline(0.0, color="k", lw=0.6)
ax.set_xticks(at, [link.name for link in truth.links[1:]])
ax.set_ylabel("mass (kg)")
ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
