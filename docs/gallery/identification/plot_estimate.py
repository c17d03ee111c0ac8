"""
Parameters with their intervals
===============================

Identified base parameters with 95 % intervals beside the a-priori values, which are off by up to 30 %.
"""

import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

truth = dynid.load_robot("tx40")
wrong = np.random.default_rng(0).uniform(0.7, 1.3, truth.parameters.size)
prior = truth.with_parameters(truth.parameters * wrong)
estimate = dynid.identify(prior, synthetic_recording(truth, seed=0, duration=10.0), "wls")
axes = estimate.plot(largest=24)
