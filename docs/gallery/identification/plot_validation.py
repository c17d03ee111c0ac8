"""
Measured against predicted torques
==================================

Torques of unseen motion, with the residual on its own axis.
"""

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
prior = robot.with_parameters(1.2 * robot.parameters)
estimate = dynid.identify(prior, synthetic_recording(robot, seed=0, duration=8.0), "wls")
validation = estimate.validate(synthetic_recording(robot, seed=3, duration=8.0))
axes = validation.plot()

# %%
# The errors per joint.
validation
