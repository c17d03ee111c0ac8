"""
Some parameters only
====================

Patterns choose parameters: Coulomb and viscous friction here. Their axes are chosen by unit.
"""

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("tx40")
prior = robot.with_parameters(0.8 * robot.parameters)
estimate = dynid.identify(prior, synthetic_recording(robot, seed=1, duration=6.0), "wls")
axes = estimate.plot(["fc_*", "fv_*"])

# %%
# The same as a table.
estimate.to_frame().filter(estimate.to_frame()["parameter"].str.starts_with("fc_"))
