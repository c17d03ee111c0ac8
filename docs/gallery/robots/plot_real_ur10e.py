"""
A real UR10e
============

Motor currents of a UR10e, identified on one motion and held against another. Where the recordings are not there, the
script says so and draws nothing.
"""

import os
from pathlib import Path

import dynid

# Recordings are no part of dynid: set DYNID_DATA to their folder, or put them into shared/data beside the repository.
data = Path(os.environ.get("DYNID_DATA") or Path.cwd().parents[3] / "shared" / "data")
folder = data / "ur10e-mamedov"
if not folder.exists():
    print("The recordings of this robot are not here: there is nothing to draw.")
else:
    robot = dynid.load_robot(folder / "ur10e.urdf", friction="viscous+coulomb+offset", rotor_inertia=True)
    log = {"columns": {"q": "1:7", "v": "7:13", "current": "13:19"}, "time": 0}
    gains = [10.0, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232]  # N m/A
    fitted, unseen = (
        dynid.load_recording(folder / file, robot, gain=gains, rows=rows, **log)
        for file, rows in (
            ("identification/ur-20_02_10-30sec_12harm.csv.gz", (634, 3510)),
            ("validation/ur-20_01_17-ptp_10_points.csv.gz", (699, 4200)),
        )
    )
    estimate = dynid.identify(robot, fitted, "wls")
    axes = estimate.validate(unseen).plot(joints=[robot.coordinates[1], robot.coordinates[2]])
