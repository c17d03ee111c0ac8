"""
A real Stäubli TX40
===================

Torques of a TX40, logged on the motor side at 5 kHz, as they were measured and as the identified model predicts them.
Where the recordings are not there, the script says so and draws nothing.
"""

import os
from pathlib import Path

import dynid

# Recordings are no part of dynid: set DYNID_DATA to their folder, or put them into shared/data beside the repository.
data = Path(os.environ.get("DYNID_DATA") or Path.cwd().parents[3] / "shared" / "data")
folder = data / "staubli-tx40-figaroh"
if not folder.exists():
    print("The recordings of this robot are not here: there is nothing to draw.")
else:
    robot = dynid.load_robot("tx40")
    files = {"q": folder / "pos_read_data.csv.gz", "torque": folder / "curr_data.csv.gz"}
    columns = {"q": "Joint_{i}", "torque": "Joint_{i}"}
    recording = dynid.load_recording(files, robot, columns=columns, rate=5000.0, time=None, motor_side=True)
    estimate = dynid.identify(robot, recording.between(0.0, 4.95), "wls")
    axes = estimate.validate(recording.between(5.85, 100.0)).plot(joints=["joint2", "joint3"])
