"""
A recording
===========

Positions and torques of a Stäubli TX40 over time. A robot tells which joints are prismatic, and with it the units.
"""

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("tx40")
recording = synthetic_recording(robot, seed=0, duration=6.0)
axes = recording.plot(robot=robot)

# %%
# In a notebook, a recording shows its runs.
recording
