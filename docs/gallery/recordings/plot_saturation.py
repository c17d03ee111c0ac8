"""
A drive that saturates
======================

The checks find a torque that is clipped, and show where.
"""

from dataclasses import replace

import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("tx40")
sound = synthetic_recording(robot, seed=0, duration=8.0)
run = sound.runs[0]
clipped = np.column_stack([run.torque[:, :1], np.clip(run.torque[:, 1], -30.0, 30.0), run.torque[:, 2:]])
recording = dynid.Recording(sound.joints, (replace(run, torque=clipped),))

findings = dynid.check(robot, recording)
axes = next(f for f in findings if f.code == "torque_saturated").plot(recording, robot=robot)

# %%
# All findings as a table; ``findings.to_frame()`` gives it to polars.
findings
