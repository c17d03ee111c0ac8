"""
How long a model can be simulated
=================================

Position errors some time after a measured state, of the identified and the a-priori model, beside a constant velocity.
"""

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
fitted, unseen = synthetic_recording(robot, 0, 8.0), synthetic_recording(robot, 1, 8.0)
estimate = dynid.identify(robot.with_parameters(1.2 * robot.parameters), fitted)
error = dynid.assessment.simulation_error(estimate, unseen)
axes = error.plot()
